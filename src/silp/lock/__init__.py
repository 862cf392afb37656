"""compile.lock: the first payload compiled from an IR is frozen, and its record shows if anybody touched it.

Protocol section 1.3, principle 4; the format is in docs/lock.md.
"""

from silp.lock.chain import Head
from silp.lock.entries import Entry, ir_digest
from silp.lock.record import DEFAULT_PATH, LOCK_TIMEOUT, MAX_ENTRY_BYTES, Lock, LockReport
from silp.lock.signatures import create_keys, sign

__all__ = [
    "DEFAULT_PATH",
    "LOCK_TIMEOUT",
    "MAX_ENTRY_BYTES",
    "Entry",
    "Head",
    "Lock",
    "LockReport",
    "create_keys",
    "ir_digest",
    "sign",
]
