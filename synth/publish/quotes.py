"""Where in a conversation a verdict points: its quotes in the texts, and the place it is about.

Texts are as they were written; what shows them makes them safe.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from synth.judging.transcript import places_of
from synth.publish.numbering import call_anchor, call_words, turn_anchor
from synth.publish.verdicts_shown import ShownCriterion, ShownStatement
from synth.render.foreign_text import shortened
from synth.render.transcript import ShownCall, ShownTurn
from synth.rubrics.criteria import JUDGED
from synth.rubrics.standing import TRUTH

MOST_QUOTES = 200
"""Marked in one conversation; those of what failed come first."""


class ShownQuote(NamedTuple):
    words: str
    of: str
    """The criterion."""
    passed: bool | None


class TextPiece(NamedTuple):
    text: str
    quote: ShownQuote | None
    """The verdict that quotes it; None for the text between."""


class VerdictPlace(NamedTuple):
    anchor: str
    words: str
    """What stands there, for a link."""


class QuoteMarks:
    """Cuts the texts of one conversation into pieces at the words that verdicts quote."""

    def __init__(self, quotes: Sequence[ShownQuote]) -> None:
        self._quotes = quotes

    def __call__(self, text: str, limit: int) -> list[TextPiece]:
        """The beginning of the text, as long as `limit`, and what was left out in a last piece."""
        head = text[:limit]
        pieces: list[TextPiece] = []
        end = 0
        for start, stop, quote in self._spans(head):
            if start > end:
                pieces.append(TextPiece(head[end:start], None))
            pieces.append(TextPiece(head[start:stop], quote))
            end = stop
        rest = shortened(text, limit)[end:]
        return [*pieces, TextPiece(rest, None)] if rest else pieces

    def _spans(self, text: str) -> list[tuple[int, int, ShownQuote]]:
        """In the order of the text, none over another; what failed goes before what passed."""
        taken: list[tuple[int, int, ShownQuote]] = []
        for quote in self._quotes:
            for place in places_of(quote.words, text):
                start, stop = in_whole_words(text, *place)
                if all(stop <= before or start >= after for before, after, _ in taken):
                    taken.append((start, stop, quote))
        return sorted(taken, key=lambda span: span[:2])


_LETTER = r"[^\W\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""Of a writing that parts its words, as Thai, Khmer, Chinese and Japanese do not."""

_WORD = re.compile(rf"{_LETTER}+(?:[.,:'\u2019-]{_LETTER}+)*")
"""A word, a number or an id, with the marks inside it: `1,200.50`, `B-17`."""

LONGEST_WORD = 80
"""Characters beside a quote that are looked at for the word that it begins or ends in."""


def in_whole_words(text: str, start: int, stop: int) -> tuple[int, int]:
    """The place widened so that it begins and ends in no word or number: in `120 EUR` that says
    `20 EUR` the number is another one."""
    first, last = max(0, start - LONGEST_WORD), stop + LONGEST_WORD
    for word in _WORD.finditer(text, first, last):
        if word.start() < start < word.end():
            start = word.start()
        if word.start() < stop < word.end():
            stop = word.end()
    return start, stop


def quotes_of(
    criteria: Sequence[ShownCriterion], statements: Sequence[ShownStatement]
) -> list[ShownQuote]:
    """Those of the verdicts that count, each once."""
    found = [ShownQuote(one.quote, one.criterion, one.passed) for one in criteria if one.quote]
    for one in statements:
        words = one.says if one.is_true is False else one.quote
        if words:
            found.append(ShownQuote(words, TRUTH, one.is_true))
    found.sort(key=lambda quote: quote.passed is not False)
    return list({quote.words: quote for quote in reversed(found)}.values())[::-1][:MOST_QUOTES]


def places_in(
    turns: Sequence[ShownTurn],
    failed: ShownCriterion,
    statements: Mapping[int, Sequence[ShownStatement]] | None = None,
) -> list[VerdictPlace]:
    """Where to look for why the criterion is not met: where its quote stands; else the calls that
    broke a rule, changed what the verdict names, or that it names; else the last change, for tests
    that do not pass; else the end, where something is missing. Nowhere where a judge names nothing.
    `statements`: by `ShownTurn.place`; of `truth` the false ones are the places."""
    if failed.criterion == TRUTH and (places := _false_in(turns, statements or {})):
        return places
    if quoted := list(_quoted(turns, failed.quote)):
        return quoted
    if failed.kind == JUDGED:
        return []
    if failed.kind in ("format", "turns"):
        return _named_in(turns, failed) or _end_of(turns, "the last one")
    what = "tells it" if failed.kind == "communicate" else "does what is missing"
    return _calls_behind(turns, failed) or _end_of(turns, f"the end: no message {what}")


def _calls_behind(turns: Sequence[ShownTurn], failed: ShownCriterion) -> list[VerdictPlace]:
    calls = [
        (VerdictPlace(call_anchor(t, c), call_words(t, c, call.name)), call)
        for t, turn in enumerate(turns)
        for c, call in enumerate(turn.calls)
    ]
    if failed.kind == "test":
        changed = [place for place, call in calls if call.changes]
        return [place._replace(words=f"{place.words}, the last change") for place in changed[-1:]]
    if failed.kind == "policy":
        return [place for place, call in calls if any("breaks rule" in m for m in call.marks)]
    evidence = " ".join(one.words for one in failed.evidence)
    unwanted = re.findall(r"\b(?:update|create|delete) (\S+) ([^\s;]+)", _unexpected(evidence))
    if unwanted:
        rows = {(entity, row_id.rstrip(".")) for entity, row_id in unwanted}
        return [place for place, call in calls if _changes_one_of(call, rows)]
    named = re.findall(r"\bcalls? of (\w+)", evidence)
    return [place for place, call in calls if call.name in named]


def _named_in(turns: Sequence[ShownTurn], failed: ShownCriterion) -> list[VerdictPlace]:
    """The messages that the evidence gives numbers of."""
    evidence = " ".join(one.words for one in failed.evidence)
    numbers = [int(n) for n in re.findall(r"\bmessage (\d{1,7})\b", evidence)]
    return [
        VerdictPlace(turn_anchor(n - 1), f"message {n}, {turns[n - 1].role}")
        for n in dict.fromkeys(numbers)
        if 1 <= n <= len(turns)
    ]


def _false_in(
    turns: Sequence[ShownTurn], statements: Mapping[int, Sequence[ShownStatement]]
) -> list[VerdictPlace]:
    return [
        VerdictPlace(turn_anchor(number), f"message {number + 1}, {turn.role}")
        for number, turn in enumerate(turns)
        if turn.place is not None
        and any(one.is_true is False for one in statements.get(turn.place, ()))
    ]


def _end_of(turns: Sequence[ShownTurn], what: str) -> list[VerdictPlace]:
    if not turns:
        return []
    return [VerdictPlace(turn_anchor(len(turns) - 1), f"message {len(turns)}, {what}")]


def _quoted(turns: Sequence[ShownTurn], quote: str) -> Iterator[VerdictPlace]:
    for number, turn in enumerate(turns):
        if places_of(quote, turn.text):
            yield VerdictPlace(turn_anchor(number), f"message {number + 1}, {turn.role}")
        for place, call in enumerate(turn.calls):
            if any(places_of(quote, text) for text in (call.arguments, call.result or "")):
                words = call_words(number, place, call.name)
                yield VerdictPlace(call_anchor(number, place), words)


def _unexpected(evidence: str) -> str:
    """What code did not expect among the changes that it saw."""
    return evidence.partition("not expected:")[2]


def _changes_one_of(call: ShownCall, rows: Collection[tuple[str, str]]) -> bool:
    return any((change.entity, change.id) in rows for change in call.changes or ())
