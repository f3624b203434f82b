"""Where in a conversation a verdict points: its quotes in the texts, and the place it is about.

Texts are as they were written; what shows them makes them safe.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from synth.judging.transcript import places_of
from synth.publish.numbering import call_anchor, call_words, turn_anchor
from synth.publish.verdicts_shown import TO_BE_TOLD, ShownCriterion, ShownStatement
from synth.render.evidence import EvidentTelling, StateDifference, state_difference, tellings
from synth.render.foreign_text import shortened
from synth.render.transcript import ShownCall, ShownTurn
from synth.rubrics.criteria import JUDGED
from synth.rubrics.standing import TRUTH
from synth.rubrics.statements.known import is_id

MOST_QUOTES = 200
"""Marked in one conversation; those of what failed come first."""


SHORTEST_NAME = 4
"""Characters of a text by which a row is known in what the user says."""


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
    as_planned: Collection[str] = (),
) -> list[VerdictPlace]:
    """Where to look for why the criterion is not met: where its quote stands; else the calls that
    broke a rule, made another change than was expected, or that the verdict names; for what is
    missing the message that asks for it, what shows the value, and the reply that passes over it;
    else the last change, for tests that do not pass; else the end. Nowhere where a judge names
    nothing. `statements`: by `ShownTurn.place`; of `truth` the false ones are the places.
    `as_planned`: anchors of the calls that the reference plan has just so."""
    if failed.criterion == TRUTH and (places := _false_in(turns, statements or {})):
        return places
    if quoted := list(_quoted(turns, failed.quote)):
        return quoted
    if failed.kind == JUDGED:
        return []
    if failed.kind in ("format", "turns"):
        return _named_in(turns, failed) or _end_of(turns, "the last one")
    if failed.kind == "communicate" and (values := tellings(failed.stored)):
        return _of_untold(turns, failed, [one for one in values if not one.told])
    if failed.kind == "state" and (difference := state_difference(failed.stored)):
        return _of_difference(turns, difference, as_planned)
    return _calls_behind(turns, failed) or _end_of(
        turns, "the end: no message does what is missing"
    )


def _of_difference(
    turns: Sequence[ShownTurn], found: StateDifference, as_planned: Collection[str]
) -> list[VerdictPlace]:
    """The calls that made other changes than were expected, and who asked for what none made. A
    call that was made as it was planned is not to blame for a value that is not as expected."""
    calls = [*_calls_of(turns)]
    rows = {(change.entity, change.id) for change in found.unexpected}
    blamed = {place for place, call in calls if any(_changes(call, *row) for row in rows)}
    left = [(change.id, change.fields) for change in found.missing]
    for one in found.otherwise:
        row, fields = (one.seen.entity, one.seen.id), {*one.wrong, *one.beside}
        by = [place for place, call in calls if fields and _changes(call, *row, fields)]
        own = [place for place in by if place.anchor not in as_planned]
        blamed.update(own)
        undone = one.left if own else [*one.left, *one.wrong]
        if undone:
            left.append((one.seen.id, {name: one.expected.fields[name] for name in undone}))
    places = [place for place, _ in calls if place in blamed]
    asked = sorted({asking for row in left if (asking := _asking_for(turns, *row))})
    places += [
        VerdictPlace(turn_anchor(n), f"message {n + 1}, user, {how}, and no call did it")
        for n, how in asked
    ]
    if left:
        after = asked[-1][0] if asked else 0
        last = [n for n, turn in enumerate(turns) if turn.role == "assistant" and n > after][-1:]
        words = "message {}, assistant: the agent's last word, though no call did what is missing"
        places += [VerdictPlace(turn_anchor(n), words.format(n + 1)) for n in last]
    return places or _end_of(turns, "the end")


def _asking_for(
    turns: Sequence[ShownTurn], row_id: str, fields: Mapping[str, Any]
) -> tuple[int, str] | None:
    """The message of the user, from 0, that names a new value, the row, or what is known of it, and
    how it does: one that names the row alone may want something else of it."""
    wanted = [value for name in fields for value in _new_parts(turns, row_id, name, fields[name])]
    wanted += [name for value in wanted for name in _names_of(turns, value)]
    names = [row_id, *_names_of(turns, row_id)]

    def score(text: str) -> tuple[int, int]:
        return _num_in(text, wanted), _num_in(text, names)

    best = _best_of_user(turns, score)
    if best is None:
        return None
    return best, "asks for it" if score(turns[best].text)[0] else "names what was to change"


def _new_parts(turns: Sequence[ShownTurn], row_id: str, field: str, value: Any) -> list[str]:
    """Texts and numbers of an expected value; of a list those that it did not hold before."""
    before = value_shown(turns, row_id, field) if isinstance(value, list) else None
    parts = value if isinstance(value, list) else [value]
    known = before if isinstance(before, list) else []
    plain = [v for v in parts if isinstance(v, str | int | float) and v not in known]
    return [str(v) for v in plain if not isinstance(v, bool)]


def _names_of(turns: Sequence[ShownTurn], row_id: str) -> list[str]:
    """Texts by which a row is known, as results of calls show it."""
    known = [value for record in _records(turns, row_id) for value in record.values()]
    return [v for v in known if isinstance(v, str) and len(v) >= SHORTEST_NAME]


def _of_untold(
    turns: Sequence[ShownTurn], failed: ShownCriterion, untold: Sequence[EvidentTelling]
) -> list[VerdictPlace]:
    """Who asked for the value, the last call whose result holds it, and the reply where it stands
    otherwise, or which comes next and does not tell it."""
    asked = failed.words.removeprefix(TO_BE_TOLD)
    labels = [part.partition(" \u2014 ")[0] for part in asked.partition(" (")[0].split("; ")]
    goal = [word for word in re.findall(r"\w+", asked.partition(" (")[2]) if len(word) > 3]
    best = _best_of_user(turns, lambda text: (_num_in(text, labels), _num_in(text, goal)))
    places: list[VerdictPlace] = []
    if best is not None:
        places.append(VerdictPlace(turn_anchor(best), f"message {best + 1}, user: asks for it"))
    for one in untold:
        start = best or 0
        for place, number, call in reversed([*_numbered_calls(turns)]):
            if number >= start and _num_in(call.result or "", [one.value]):
                words = f"{place.words}, whose result holds {shortened(one.value, 40)}"
                places.append(place._replace(words=words))
                start = number
                break
        places += _reply_after(turns, start, one.value)
    return list(dict.fromkeys(places))


def _reply_after(turns: Sequence[ShownTurn], start: int, value: str) -> list[VerdictPlace]:
    replies = [n for n, t in enumerate(turns) if t.role == "assistant" and t.text.strip()]
    after = [number for number in replies if number >= start][:1] or replies[-1:]
    places: list[VerdictPlace] = []
    for number in after:
        turn, told = turns[number], shortened(value, 40)
        how = f"tells {told} otherwise" if _num_in(turn.text, [value]) else f"does not tell {told}"
        words = f"message {number + 1}, {turn.role}: {how}"
        places.append(VerdictPlace(turn_anchor(number), words))
    return places


def _best_of_user(
    turns: Sequence[ShownTurn], score: Callable[[str], tuple[int, int]]
) -> int | None:
    """The first message of the user with the best score above nothing."""
    of_user = [number for number, turn in enumerate(turns) if turn.role == "user"]
    best = max(of_user, key=lambda number: score(turns[number].text), default=None)
    return None if best is None or score(turns[best].text) == (0, 0) else best


def _num_in(text: str, words: Iterable[str]) -> int:
    """How many of the words stand in the text, whole and in any case."""
    return sum(
        bool(re.search(rf"(?<![\w.]){re.escape(word)}(?![\w]|\.\d)", text, re.IGNORECASE))
        for word in dict.fromkeys(words)
        if word.strip()
    )


def value_shown(turns: Sequence[ShownTurn], row_id: str, field: str) -> Any:
    """What the first result that holds the row itself says of a field; None where none does."""
    found = (record[field] for record in _records(turns, row_id) if field in record)
    return next(found, None)


def _records(turns: Sequence[ShownTurn], row_id: str) -> Iterator[Mapping[str, Any]]:
    """The row's own records in the results of calls, in order."""
    if not row_id:
        return
    for _, call in _calls_of(turns):
        if call.result and row_id in call.result:
            try:
                result = json.loads(call.result)
            except (ValueError, RecursionError):
                continue
            yield from _records_in(result, row_id)


def _records_in(value: Any, row_id: str) -> Iterator[Mapping[str, Any]]:
    """Those in which the id stands before any other: one that stands later is of another row."""
    if isinstance(value, Mapping):
        if next((v for v in value.values() if v == row_id or is_id(v)), None) == row_id:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _records_in(one, row_id)


def _numbered_calls(turns: Sequence[ShownTurn]) -> Iterator[tuple[VerdictPlace, int, ShownCall]]:
    """With the numbers of their messages, from 0."""
    for t, turn in enumerate(turns):
        for c, call in enumerate(turn.calls):
            yield VerdictPlace(call_anchor(t, c), call_words(t, c, call.name)), t, call


def _calls_of(turns: Sequence[ShownTurn]) -> Iterator[tuple[VerdictPlace, ShownCall]]:
    return ((place, call) for place, _, call in _numbered_calls(turns))


def _calls_behind(turns: Sequence[ShownTurn], failed: ShownCriterion) -> list[VerdictPlace]:
    if failed.kind == "test":
        changed = [place for place, call in _calls_of(turns) if call.changes]
        return [place._replace(words=f"{place.words}, the last change") for place in changed[-1:]]
    if failed.kind == "policy":
        return [
            place for place, call in _calls_of(turns) if any("breaks rule" in m for m in call.marks)
        ]
    named = _NAMED_CALL.findall(failed.stored)
    end = _end_of_time(turns, failed.stored)
    return [
        place
        for place, turn, call in _numbered_calls(turns)
        if turn < end
        and (call.name in named or ("any tool" in named and _may_be_meant(call, failed.stored)))
    ]


_NAMED_CALL = re.compile(r"\bcalls? of (any tool|[^\s;]+)")
"""A tool as evidence names it, whatever marks its name has, as `get-boats` of a server."""

_TOO_EARLY = re.compile(r"Expected no call of .+ before message (\d{1,7}) of the user; ", re.DOTALL)


def _may_be_meant(call: ShownCall, evidence: str) -> bool:
    """Whether evidence on calls of any tool can be about this one."""
    return bool(call.changes) or " that changes something" not in evidence


def _end_of_time(turns: Sequence[ShownTurn], evidence: str) -> int:
    """Number, from 0, of the message before which no call was to be made; the end where calls were
    forbidden at any time, or one was to be made."""
    found = _TOO_EARLY.match(evidence)
    users = [number for number, turn in enumerate(turns) if turn.role == "user"]
    nth = int(found[1]) if found else 0
    return users[nth - 1] if 1 <= nth <= len(users) else len(turns)


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


def _changes(
    call: ShownCall, entity: str, row_id: str, fields: Collection[str] | None = None
) -> bool:
    """Whether it changes this row: one of the fields, or anything where there are none."""
    return any(
        (change.entity, change.id) == (entity, row_id)
        and (fields is None or any(one.name in fields for one in change.fields))
        for change in call.changes or ()
    )
