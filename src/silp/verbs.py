"""The verb whitelist (protocol section 3.8): action codes whose function name is one token in six tokenizers.

Lives here: the approved verbs, and the excluded ones with what to use instead. Not here: the token census.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["APPROVED", "EXCLUDED", "TOKENIZERS", "ExcludedVerb"]

TOKENIZERS = ("gpt-4o", "gpt-3.5", "llama-2", "qwen2.5", "claude", "gemini")

APPROVED = frozenset(
    {
        "!BOOK",
        "!CANCEL",
        "!EMAIL",
        "!FETCH",
        "!NOTIFY",
        "!PROCESS",
        "!ROUTE",
        "!SEARCH",
        "!START",
        "!SUGGEST",
        "!SWITCH",
        "!TRANSLATE",
        "!UPDATE",
    }
)


class ExcludedVerb(NamedTuple):
    """Why a verb must not be used: its token counts in the order of TOKENIZERS, the reason, and what to use instead."""

    tokens: tuple[int, ...]
    reason: str
    replacement: str


EXCLUDED = {
    "!SWITCH_TOOL": ExcludedVerb((2, 2, 3, 2, 3, 3), "it is never a single token", "!SWITCH"),
    "!ESCALATE": ExcludedVerb(
        (3, 2, 3, 2, 3, 2),
        "it is several tokens, one of them the English verb 'ate'",
        "an approved verb, such as !ROUTE",
    ),
}
