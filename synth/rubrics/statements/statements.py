"""The statements of an assistant's replies, each with what code can tell of it.

Code passes a statement whose every value is the record's, and fails one only where it names an
entity and a field whose record holds another value. Everything else stays open: a question to the
judge, with the parts of the conversation that it is about beside it.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.rubrics.episode import Verdict
from synth.rubrics.reading.locales import language_of, locale
from synth.rubrics.reading.readings import READ_IN, read
from synth.rubrics.reading.sentences import sentences_in
from synth.rubrics.reading.today import today_of
from synth.rubrics.statements.beside import beside
from synth.rubrics.statements.binding import OPEN, StatementOutcome, bind, unknown_ids
from synth.rubrics.statements.known import KnownRecords
from synth.rubrics.telling import replies_in

UNKNOWN = "no such id stands anywhere in the conversation."

STATEMENTS_VERSION = "3"
"""Raised when a statement of a stored episode can come out differently; stored with verdicts."""


class ReplyStatement(NamedTuple):
    id: str
    """`s1`, `s2`, ... in the order in which they are said."""
    message: int
    """Place of the reply in the conversation's messages."""
    text: str
    """The sentence or the line, as it is said."""
    outcome: StatementOutcome
    evidence: str
    """What code compared: the value and the record that it is, or is not. Empty where open."""
    beside: tuple[str, ...] = ()
    """Excerpts of calls, results and records that an open statement is about."""


def statements_of(
    messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]
) -> list[ReplyStatement]:
    """Every statement to the user. `messages`: in wire form; `calls`: rows of `tool_calls`, in
    call order."""
    known = KnownRecords(messages, calls)
    today = today_of(messages, (call["observation"] for call in calls))
    replies = "\n".join(text for _, text in replies_in(messages))
    last_call = max((i for i, m in enumerate(messages) if m.get("tool_calls")), default=-1)
    found: list[ReplyStatement] = []
    for place, text in replies_in(messages):
        language = language_of(text, replies, known.user_words)
        for start, end in sentences_in(text, locale(language or READ_IN)):
            number = f"s{len(found) + 1}"
            said = text[start:end]
            found.append(_statement(number, place, said, language, today, known, place > last_call))
    return found


def _statement(
    number: str,
    place: int,
    text: str,
    language: str | None,
    today: date | None,
    known: KnownRecords,
    is_last: bool,
) -> ReplyStatement:
    """In a language without a table nothing is decided; values are looked for all the same."""
    said = read(text, language, today)
    finding = bind(said, known, is_last=is_last) if language else OPEN
    if finding is not OPEN:
        return ReplyStatement(number, place, text, finding.outcome, finding.evidence)
    hints = (f"{name}: {UNKNOWN}" for name in (unknown_ids(said, known) if language else ()))
    excerpts = (*hints, *beside(said, known))
    return ReplyStatement(number, place, text, finding.outcome, finding.evidence, excerpts)


def truth_by_code(statements: Sequence[ReplyStatement]) -> Verdict:
    """False where a statement contradicts a record, open where one is left to the judge."""
    if wrong := next((s for s in statements if s.outcome == "contradicted"), None):
        return Verdict(False, 0.0, f"{wrong.text!r}: {wrong.evidence}")
    num_open = sum(s.outcome == "open" for s in statements)
    if num_open:
        matched = len(statements) - num_open
        return Verdict(None, 0.0, f"{matched} statements match the records, {num_open} are open.")
    return Verdict(True, 1.0, f"All {len(statements)} statements match the records.")
