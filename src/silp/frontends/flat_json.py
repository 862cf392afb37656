"""IR to flat JSON and back: the frontend `json` (protocol section 4.2; wire format, section 4).

Lives here: the writer, the reader, and the rule that says which IRs have slots. Not here: strict JSON itself.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Any

from pydantic import ValidationError

from silp.errors import ErrorCode, SilpError, syntax_error
from silp.ir import (
    IR_VERSION,
    Alternative,
    Constraint,
    Entity,
    Meta,
    SilpIR,
    function_name,
    invalid_ir,
    is_action_code,
    req_id,
    require_supported,
    trusted,
)
from silp.strict_json import JSON_WHITESPACE, locate, nesting, parse_json, write_json
from silp.text import escape_invisible, require_visible

__all__ = ["read", "write"]

_RESERVED = frozenset(SilpIR.model_fields)
_SECONDARY = "action_"
_SECONDARY_KEY = re.compile("action_([a-z][a-z_]*)")
_VERSION = re.compile("v[0-9]+")

_Path = list[str | int]


def write(ir: SilpIR, inline_meta: bool, max_depth: int) -> str:
    """Return the canonical payload of a valid IR; raises SilpError (invalid_syntax) for what no payload can carry."""
    root = ir.__dict__
    intent, entities = root["intent"], root["entities"]
    members = [] if root["version"] == IR_VERSION else [f'"version":{encode_basestring(root["version"])}']
    members.append(f'"intent":{_action(intent)}')
    slots = _slots(intent, entities, max_depth)
    if slots is None:
        written_out = [_entity(entity, intent, max_depth) for entity in entities]
        members.append(f'"entities":[{",".join(written_out)}]')
    else:
        members += slots
    if root["constraints"]:
        constraints = [_constraint(constraint, max_depth) for constraint in root["constraints"]]
        members.append(f'"constraints":[{",".join(constraints)}]')
    if root["alternatives"]:
        alternatives = [_alternative(alternative, max_depth) for alternative in root["alternatives"]]
        members.append(f'"alternatives":[{",".join(alternatives)}]')
    if inline_meta and (fields := _meta(root["meta"], max_depth)):
        members.append(f'"meta":{{{",".join(fields)}}}')
    text = escape_invisible(f"{{{','.join(members)}}}")
    if text.count("[") + text.count("{") > max_depth and nesting(text) > max_depth:
        message = f"the payload would be nested deeper than {max_depth} levels: flatten the data, or raise max_depth"
        raise SilpError(ErrorCode.INVALID_SYNTAX, message)
    return text


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
        text += f',"action":{_action(known["action"])}'
    return f"{text}{_extras(entity.__pydantic_extra__, max_depth)}}}"


def _action(action: str) -> str:
    function_name(action)  # raises for what is no action code
    return f'"{action}"'


def _constraint(constraint: Constraint, max_depth: int) -> str:
    known = constraint.__dict__
    text = f'{{"type":{encode_basestring(known["type"])},"value":{encode_basestring(known["value"])}'
    if known["time"] is not None:
        text += f',"time":{encode_basestring(known["time"])}'
    return f"{text}{_extras(constraint.__pydantic_extra__, max_depth)}}}"


def _alternative(alternative: Alternative, max_depth: int) -> str:
    known = alternative.__dict__
    text = f'{{"action":{_action(known["action"])}'
    for name in ("target", "location"):
        if known[name] is not None:
            text += f',"{name}":{encode_basestring(known[name])}'
    return f"{text}{_extras(alternative.__pydantic_extra__, max_depth)}}}"


def _extras(extra: dict[str, Any] | None, max_depth: int) -> str:
    if not extra:
        return ""
    return "," + ",".join([_member(key, value, max_depth) for key, value in extra.items()])


def _member(key: str, value: Any, max_depth: int) -> str:
    if type(value) is str:
        return f"{encode_basestring(key)}:{encode_basestring(value)}"
    return f"{encode_basestring(key)}:{write_json(value, max_depth=max_depth)}"


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


def read(text: str, max_depth: int) -> SilpIR:
    """Return the IR of a payload; raises SilpError: invalid_syntax with an offset, or unsupported_version."""
    require_visible(text, allowed=JSON_WHITESPACE)
    data = parse_json(text, max_depth=max_depth)
    if type(data) is not dict:
        raise _error(text, [], "a JSON object")
    root = {key: data[key] for key in data if key in _RESERVED}
    if "silp" in root and isinstance(root["silp"], str) and _VERSION.fullmatch(root["silp"]):
        require_supported(root["silp"], text=text, offset=locate(text, ["silp"]))
    meta = root.get("meta")
    if meta is None:
        root["meta"] = {"req_id": req_id(text)}
    elif type(meta) is dict:
        if "req_id" in meta:
            advice = "it follows from the payload text: leave it out"
            raise _error(text, ["meta", "req_id"], "a field other than req_id", advice)
        root["meta"] = {**meta, "req_id": req_id(text)}
    flat = root.get("entities") is None
    if flat:
        root["entities"] = _read_slots(text, data)
    else:
        root["entities"] = _with_actions(root["entities"], root.get("intent"))
    if not flat and len(root) < len(data.keys() | {"meta"}):
        slot = next(key for key in data if key not in _RESERVED)
        raise _error(text, [slot], "no slot beside entities", "write every entity in the array")
    try:
        return SilpIR.__pydantic_validator__.validate_python(root)  # type: ignore[no-any-return]
    except ValidationError as error:

        def place(path: _Path) -> int:
            if flat and path[0] == "entities":
                path = _slot_paths(data)[int(path[1])] + path[2:]
            return locate(text, path)

        raise invalid_ir(error, text=text, place=place) from None


def _read_slots(text: str, data: dict[str, Any]) -> list[Any]:
    """Return the entities that slots stand for, primary ones first, as models where they are valid beyond doubt."""
    intent = data.get("intent")
    # Validation refuses a bad intent; that its entities would be wrong as well needs no saying.
    primary = {"action": intent} if isinstance(intent, str) and is_action_code(intent) else {}
    entities: list[Any] = []
    secondary: list[str] = []
    for key, slot in data.items():
        if key in _RESERVED:
            continue
        if key.startswith(_SECONDARY):
            secondary.append(key)
        elif type(slot) is str and primary:
            entities.append(trusted(Entity, {"id": key, "value": slot, "action": intent}, {}))
        elif type(slot) is list and slot:
            for index, item in enumerate(slot):
                entities.append(_read_item(text, [key, index], item, {"id": key, **primary}, ("id", "action")))
        else:
            entities.append(_read_item(text, [key], slot, {"id": key, **primary}, ("id", "action")))
    for key in secondary:
        function = _SECONDARY_KEY.fullmatch(key)
        action = "!" + function[1].upper() if function else intent
        if action == intent:
            raise _error(text, [key], "action_ and the function of a secondary action", "rename the slot")
        if type(data[key]) is not list or not data[key]:
            raise _error(text, [key], "an array of one or more values")
        for index, item in enumerate(data[key]):
            if type(item) is str:
                entities.append(trusted(Entity, {"id": "act", "value": item, "action": action}, {}))
            else:
                entities.append(_read_item(text, [key, index], item, {"id": "act", "action": action}, ("action",)))
    return entities


def _with_actions(entities: Any, intent: Any) -> Any:
    """Return written-out entities with the action that is left out where it is the intent."""
    if type(entities) is not list:
        return entities
    return [
        {**entity, "action": intent} if type(entity) is dict and entity.get("action") is None else entity
        for entity in entities
    ]


def _slot_paths(data: dict[str, Any]) -> list[_Path]:
    """Return where in the text the entities of `_read_slots` are."""
    slots = sorted(data.keys() - _RESERVED, key=lambda key: (key.startswith(_SECONDARY), list(data).index(key)))
    paths: list[_Path] = []
    for key in slots:
        paths += [[key, index] for index in range(len(data[key]))] if type(data[key]) is list else [[key]]
    return paths


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
