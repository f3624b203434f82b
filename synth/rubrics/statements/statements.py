"""The statements of an assistant's replies, each with what code can tell of it.

Code passes a statement whose every value is the record's, and fails one only where it names an
entity and a field whose record holds another value. Everything else stays open: a question to the
judge, with the parts of the conversation that it is about beside it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.tables.schemas import Row
from synth.rubrics.episode import Verdict

STATEMENTS_VERSION = "1"
"""Raised when a statement of a stored episode can come out differently; stored with verdicts."""

Outcome = Literal["matched", "contradicted", "open"]

_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])(?:\s+|(?=[^\x00-\x7f]))|\n+")


class Statement(NamedTuple):
    id: str
    """`s1`, `s2`, ... in the order in which they are said."""
    message: int
    """Place of the reply in the conversation's messages."""
    text: str
    """The sentence or the line, as it is said."""
    outcome: Outcome
    evidence: str
    """What code compared: the value and the record that it is, or is not. Empty where open."""
    beside: tuple[str, ...] = ()
    """Excerpts of calls, results and records that an open statement is about."""


def statements_of(messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]) -> list[Statement]:
    """Every statement to the user. `messages`: in wire form; `calls`: rows of `tool_calls`, in
    call order."""
    found = [
        (place, sentence)
        for place, message in enumerate(messages)
        if message["role"] == "assistant" and not message.get("tool_calls")
        for sentence in _sentences(message.get("content") or "")
    ]
    return [
        Statement(f"s{number}", place, sentence, "open", "")
        for number, (place, sentence) in enumerate(found, 1)
    ]


def truth_by_code(statements: Sequence[Statement]) -> Verdict:
    """False where a statement contradicts a record, open where one is left to the judge."""
    if wrong := next((s for s in statements if s.outcome == "contradicted"), None):
        return Verdict(False, 0.0, f"{wrong.text!r}: {wrong.evidence}")
    num_open = sum(s.outcome == "open" for s in statements)
    if num_open:
        matched = len(statements) - num_open
        return Verdict(None, 0.0, f"{matched} statements match the records, {num_open} are open.")
    return Verdict(True, 1.0, f"All {len(statements)} statements match the records.")


def _sentences(text: str) -> list[str]:
    parts = (part.strip() for part in _END.split(text))
    return [part for part in parts if any(map(str.isalnum, part))]
