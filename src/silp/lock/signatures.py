"""Ed25519 signatures over the head of a record (docs/lock.md). Needs the extra `silp-codec[lock]`.

Lives here: key files, and the file of signatures beside the record. Not here: what a record holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from silp.errors import ErrorCode, Finding, SilpError
from silp.lock.chain import Head
from silp.lock.entries import canonical_json, digest
from silp.strict_json import parse_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Key = TypeVar("Key")

__all__ = ["create_keys", "read_signatures", "sign"]

_PURPOSE = "silp compile.lock head v1"
"""Stands in what is signed, so that no signature made for something else fits."""


def create_keys(private: str | os.PathLike[str]) -> Path:
    """Write a new Ed25519 key pair as PEM files, the public one beside the private one with `.pub` added to its name.

    Returns the path of the public one. The private file is not encrypted, and only its owner can read it. Raises
    SilpError (decode_failed) if a file cannot be written or exists already.
    """
    _, ed25519, serialization = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    path = Path(f"{os.fspath(private)}.pub")
    for file, content, mode in ((Path(private), secret, 0o600), (path, public, 0o644)):
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
                stream.write(content)
        except OSError as error:
            raise SilpError(ErrorCode.DECODE_FAILED, f"cannot create {file}: {error.strerror}") from None
    return path


def sign(record: str | os.PathLike[str], head: Head, private: str | os.PathLike[str]) -> None:
    """Add a signature over `head`, with the private key of a PEM file, to the signatures beside a record.

    Raises SilpError (decode_failed) if a file cannot be read or written, or is no Ed25519 key, or the record is empty.
    """
    _, ed25519, serialization = _cryptography()
    if not head.sequence:
        raise SilpError(ErrorCode.DECODE_FAILED, f"{os.fspath(record)} is empty: there is nothing to sign")
    key = _load(private, lambda pem: serialization.load_pem_private_key(pem, None), ed25519.Ed25519PrivateKey)
    statement = {
        "digest": head.digest,
        "key": _fingerprint(key.public_key()),
        "purpose": _PURPOSE,
        "sequence": head.sequence,
    }
    signed = {**statement, "signature": key.sign(canonical_json(statement)).hex()}
    path = _signatures_of(record)
    try:
        earlier = path.read_bytes() if path.exists() else b""
        fresh = path.with_name(f"{path.name}.new")
        with fresh.open("wb") as stream:
            stream.write(earlier + canonical_json(signed) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        raise SilpError(ErrorCode.DECODE_FAILED, f"cannot write {path}: {error.strerror}") from None


def read_signatures(
    record: str | os.PathLike[str], public: str | os.PathLike[str], errors: list[Finding]
) -> dict[int, str]:
    """Return the digest that each signed sequence number must have, by the signatures of one key beside a record.

    Adds a `bad_signature` to `errors` for each that was forged, and if there is none. Raises SilpError (decode_failed)
    if the key cannot be read.
    """
    exceptions, ed25519, serialization = _cryptography()
    key = _load(public, serialization.load_pem_public_key, ed25519.Ed25519PublicKey)
    path = _signatures_of(record)
    signed: dict[int, str] = {}
    try:
        lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise SilpError(ErrorCode.DECODE_FAILED, f"cannot read {path}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            statement = parse_json(line.decode())
            if (statement["key"], statement["purpose"]) != (_fingerprint(key), _PURPOSE):
                continue
            key.verify(bytes.fromhex(statement.pop("signature")), canonical_json(statement))
            signed[statement["sequence"]] = statement["digest"]
        except (SilpError, ValueError, KeyError, TypeError, AttributeError, exceptions.InvalidSignature):
            message = f"line {number} of {path.name} is no valid signature"
            errors.append(Finding("bad_signature", "$", message))
    if not signed:
        errors.append(Finding("bad_signature", "$", f"the record has no signature of the key {os.fspath(public)}"))
    return signed


def _signatures_of(record: str | os.PathLike[str]) -> Path:
    return Path(f"{os.fspath(record)}.sig")


def _fingerprint(key: Ed25519PublicKey) -> str:
    return digest(key.public_bytes_raw())


def _load(path: str | os.PathLike[str], load: Callable[[bytes], object], kind: type[Key]) -> Key:
    try:
        key = load(Path(path).read_bytes())
    except OSError as error:
        raise SilpError(ErrorCode.DECODE_FAILED, f"cannot read the key {path}: {error.strerror}") from None
    except (ValueError, TypeError) as error:
        raise SilpError(ErrorCode.DECODE_FAILED, f"{path} is no key in PEM form: {error}") from None
    if not isinstance(key, kind):
        raise SilpError(ErrorCode.DECODE_FAILED, f"{path} is no {kind.__name__}: make one with 'silp lock keygen'")
    return key


def _cryptography() -> tuple[Any, Any, Any]:
    try:
        from cryptography import exceptions
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        message = "signatures need the extra: pip install 'silp-codec[lock]'"
        raise SilpError(ErrorCode.DECODE_FAILED, message) from None
    return exceptions, ed25519, serialization
