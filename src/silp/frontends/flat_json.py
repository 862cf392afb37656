"""IR to flat JSON and back: the frontend `json` (protocol section 4.2; wire format, section 4).

Lives here: the writer, the reader, and the rule that says which IRs have slots. Not here: strict JSON itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

from pydantic import BaseModel, ValidationError

from silp.errors import SilpError, syntax_error
from silp.ir import IR_VERSION, Entity, Meta, SilpIR, function_name, invalid_ir, req_id, require_supported
from silp.strict_json import JSON_WHITESPACE, locate, parse_json, write_json
from silp.text import escape_invisible, require_visible

__all__ = ["read", "write"]

_RESERVED = frozenset(SilpIR.model_fields)
_SECONDARY = "action_"
_SECONDARY_KEY = re.compile("action_([a-z][a-z_]*)")
_VERSION = re.compile("v[0-9]+")

_Path = list[str | int]


def write(ir: SilpIR, *, inline_meta: bool, max_depth: int) -> str:
    """Return the canonical payload of a valid IR; raises SilpError (invalid_syntax) for what no payload can carry."""
    root = ir.__dict__
    intent, entities = root["intent"], root["entities"]
    members = [] if root["version"] == IR_VERSION else [f'"version":{encode_basestring(root["version"])}']
    members.append(f'"intent":"!{function_name(intent).upper()}"')
    slots = _slots(intent, entities, max_depth)
    if slots is None:
        written_out = [_entity(entity, intent, max_depth) for entity in entities]
        members.append(f'"entities":[{",".join(written_out)}]')
    else:
        members += slots
    for name in ("constraints", "alternatives"):
        if root[name]:
            members.append(f'"{name}":[{",".join([_object(part, max_depth) for part in root[name]])}]')
    if inline_meta and (fields := _meta(root["meta"], max_depth)):
        members.append(f'"meta":{{{",".join(fields)}}}')
    return escape_invisible(f"{{{','.join(members)}}}")


def _slots(intent: str, entities: list[Entity], max_depth: int) -> list[str] | None:
    """Return the members that stand for the entities in the flat form, or None if the flat form would lose something:
    the order of primary and secondary entities, a reserved id, or the order of equal ids and actions."""
    slots: dict[str, list[str]] = {}
    last = ""
    secondary = False
    for entity in entities:
        known, extra = entity.__dict__, entity.__pydantic_extra__
        key, action = known["id"], known["action"] or intent
        item = encode_basestring(known["value"])
        if action != intent:
            secondary = True
            if extra or key != "act":
                name = "" if key == "act" else f'"id":{encode_basestring(key)},'
                item = f'{{{name}"value":{item}{_extras(extra, max_depth)}}}'
            key = _SECONDARY + function_name(action)
        elif secondary or key in _RESERVED or key.startswith(_SECONDARY):
            return None
        elif extra:
            item = f'{{"value":{item}{_extras(extra, max_depth)}}}'
        if key not in slots:
            slots[key] = [item]
        elif key == last:
            slots[key].append(item)
        else:
            return None
        last = key
    return [
        f"{encode_basestring(key)}:[{','.join(items)}]"
        if len(items) > 1 or key.startswith(_SECONDARY)
        else f"{encode_basestring(key)}:{items[0]}"
        for key, items in slots.items()
    ]


def _entity(entity: Entity, intent: str, max_depth: int) -> str:
    known = entity.__dict__
    text = f'{{"id":{encode_basestring(known["id"])},"value":{encode_basestring(known["value"])}'
    if known["action"] not in (None, intent):
        text += f',"action":"!{function_name(known["action"]).upper()}"'
    return f"{text}{_extras(entity.__pydantic_extra__, max_depth)}}}"


def _object(part: BaseModel, max_depth: int) -> str:
    known = [f'"{name}":{encode_basestring(value)}' for name, value in part.__dict__.items() if value is not None]
    return f"{{{','.join(known)}{_extras(part.__pydantic_extra__, max_depth)}}}"


def _extras(extra: dict[str, Any] | None, max_depth: int) -> str:
    return "".join([f",{_member(key, value, max_depth)}" for key, value in extra.items()]) if extra else ""


def _member(key: str, value: Any, max_depth: int) -> str:
    text = encode_basestring(value) if type(value) is str else write_json(value, max_depth=max_depth)
    return f"{encode_basestring(key)}:{text}"


def _meta(meta: Meta, max_depth: int) -> list[str]:
    known, extra = meta.__dict__, meta.__pydantic_extra__
    session_id, priority, confidence, seq = known["session_id"], known["priority"], known["confidence"], known["seq"]
    fields = []
    if session_id is not None:
        fields.append(f'"session_id":{encode_basestring(session_id)}')
    if priority != 0:
        fields.append(f'"priority":{int.__repr__(priority)}')
    if confidence != 1:
        fields.append(f'"confidence":{float.__repr__(confidence)}')
    if seq:
        fields.append(f'"seq":[{",".join(map(encode_basestring, seq))}]')
    if known["out"] != "natural":
        fields.append(f'"out":{encode_basestring(known["out"])}')
    if known["next_agent"] is not None:
        fields.append(f'"next_agent":{encode_basestring(known["next_agent"])}')
    if extra:
        fields += [_member(key, value, max_depth) for key, value in extra.items()]
    return fields


def read(text: str, *, max_depth: int) -> SilpIR:
    """Return the IR of a payload; raises SilpError: invalid_syntax with an offset, or unsupported_version."""
    require_visible(text, allowed=JSON_WHITESPACE)
    data = parse_json(text, max_depth=max_depth)
    if not isinstance(data, dict):
        raise syntax_error(text, locate(text, ()), "a JSON object")
    version = data.get("silp")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        require_supported(version)
    intent, meta = data.get("intent"), data.get("meta")
    root = {name: data[name] for name in ("silp", "version", "intent", "constraints", "alternatives") if name in data}
    if meta is None:
        root["meta"] = {"req_id": req_id(text)}
    elif isinstance(meta, dict) and "req_id" in meta:
        advice = "it follows from the payload text: leave it out"
        raise _error(text, ["meta", "req_id"], "a field other than req_id", advice)
    else:
        root["meta"] = {**meta, "req_id": req_id(text)} if isinstance(meta, dict) else meta
    entities = root["entities"] = data.get("entities")
    paths: list[_Path] = []
    if entities is None:
        root["entities"] = _read_slots(text, data, intent, paths)
    elif extra := next((key for key in data if key not in _RESERVED), None):
        raise _error(text, [extra], "no slot beside entities", "write every entity in the array")
    try:
        return SilpIR.__pydantic_validator__.validate_python(root)  # type: ignore[no-any-return]
    except ValidationError as error:

        def place(path: _Path) -> int:
            slot = path[0] == "entities" and len(path) > 1 and paths
            return locate(text, paths[int(path[1])] + path[2:] if slot else path)

        raise invalid_ir(error, text=text, place=place) from None


def _read_slots(text: str, data: dict[str, Any], intent: object, paths: list[_Path]) -> list[dict[str, Any]]:
    """Return the entities that slots stand for, primary ones first, and put the path of each into `paths`."""
    entities: list[dict[str, Any]] = []
    secondary: list[str] = []
    for key, slot in data.items():
        if key in _RESERVED:
            continue
        if key.startswith(_SECONDARY):
            secondary.append(key)
        elif isinstance(slot, str):
            paths.append([key])
            entities.append({"id": key, "value": slot, "action": intent})
        else:
            items: Iterable[tuple[_Path, Any]] = [([key], slot)]
            if isinstance(slot, list):
                items = [([key, index], item) for index, item in enumerate(slot)]
            for path, item in items or [([key], None)]:
                paths.append(path)
                entities.append(_read_item(text, path, item, {"id": key, "action": intent}, ("id", "action")))
    for key in secondary:
        function = _SECONDARY_KEY.fullmatch(key)
        action = "!" + function[1].upper() if function else ""
        if not function or action == intent:
            raise _error(text, [key], "action_ and the function of a secondary action", "rename the slot")
        if not isinstance(data[key], list) or not data[key]:
            raise _error(text, [key], "an array of one or more values")
        for index, item in enumerate(data[key]):
            paths.append([key, index])
            entities.append(_read_item(text, paths[-1], item, {"id": "act", "action": action}, ("action",)))
    return entities


def _read_item(text: str, path: _Path, item: object, entity: dict[str, Any], given: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(item, str):
        entity["value"] = item
    elif isinstance(item, dict):
        if repeated := next((name for name in given if name in item), None):
            raise _error(text, [*path, repeated], f"a field other than {repeated}", "the slot says it already")
        entity.update(item)
    else:
        raise _error(text, path, "a string, or an object with value")
    return entity


def _error(text: str, path: _Path, expected: str, advice: str = "") -> SilpError:
    return syntax_error(text, locate(text, path), expected, advice)
