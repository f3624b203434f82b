"""Whether the user was told a value: found in any usual spelling, plainly missing, or left open.

Found is what a reply says in so many words: neither denied, nor one of several, nor said of another
record. Missing is said only where code is sure: the language and the type of the value are read
here, and nothing in any reply could be the value. All else is open, and the judge decides.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from synth.rubrics.criteria import CheckedScalar, CommunicateCheck, ValuePlace
from synth.rubrics.episode import Episode, Verdict
from synth.rubrics.reading.locales import language_of
from synth.rubrics.reading.readings import Reading, ReadText, read
from synth.rubrics.reading.sentences import sentences_in
from synth.rubrics.reading.today import today_of
from synth.rubrics.values import (
    close,
    find_words,
    fits_day,
    is_day,
    is_number,
    is_time,
    minutes_of,
    moment_of,
)

SMALL = 12
"""Up to here a whole number may be told by a list or a word (both, a pair), so that it is never
plainly missing."""

ROUGHLY = 0.1
"""Share by which a number may be off that is called a rough one."""

FACTORS = (7, 12, 24, 30, 52, 60, 100, 365, 1000, 3600)
"""Between units that people exchange."""

MOST_SUMMED = 24
"""Numbers of a conversation whose sums, differences and products are looked at."""

QUOTED = 120
"""Characters of a reply that evidence quotes."""

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?")
_SPAN = re.compile(rf"{_CLOCK.pattern} ?(?:-|\u2013|to) ?{_CLOCK.pattern}")
_NUMERIC = re.compile(r"-?\d+(?:\.\d+)?")
_IDENTIFIER = re.compile(r"(?=.*\d)[A-Za-z\d]+(?:[-_./#:][A-Za-z\d]+)*")
_CLAUSE = re.compile(r"[.,;:!?()\n\u3002\uff0c\uff1b\uff1a\uff01\uff1f|]")
_FILLER = r"(?:[ \"'(]|\x00)*"


def words_to_user(episode: Episode) -> Iterator[str]:
    """What the agent told the user. Text beside tool calls is the agent thinking aloud."""
    for message in episode.messages:
        if message["role"] == "assistant" and not message.get("tool_calls"):
            yield message.get("content") or ""


@dataclass(frozen=True)
class _Reply:
    said: ReadText
    is_last: bool
    is_known: bool
    """Whether its language has a table."""

    def sentence(self, start: int) -> tuple[int, int]:
        spans = sentences_in(self.said.text, self.said.table)
        return next(((a, b) for a, b in spans if a <= start < b), (0, len(self.said.text)))


class Telling(NamedTuple):
    told: bool | None
    """None: code leaves it open."""
    why: str


class _Hit(NamedTuple):
    """Where a value stands in a reply."""

    start: int
    end: int
    reading: Reading | None = None


def check_communicate(check: CommunicateCheck, episode: Episode) -> Verdict:
    replies = replies_of(episode)
    places = check.places or (None,) * len(check.values)
    pairs = zip(check.values, places, strict=False)
    tellings = [telling(value, place, replies) for value, place in pairs]
    told = sum(t.told is True for t in tellings)
    evidence = f"Expected the user to be told {', '.join(map(str, check.values))}; told {told}"
    reasons = "; ".join(t.why for t in tellings)
    score = told / len(check.values)
    if any(t.told is False for t in tellings):
        return Verdict(False, score, f"{evidence}; {reasons}.")
    if any(t.told is None for t in tellings):
        return Verdict(None, 0.0, f"{evidence}; {reasons}.")
    return Verdict(True, score, f"{evidence}; {reasons}.")


def replies_of(episode: Episode) -> list[_Reply]:
    texts = [text for text in words_to_user(episode) if text.strip()]
    users = [m.get("content") or "" for m in episode.messages if m["role"] == "user"]
    common = language_of("\n".join(texts)) or language_of("\n".join(users))
    today = today_of(episode.messages, (call.observation for call in episode.calls))
    last = [m["role"] for m in episode.messages][-1:] == ["assistant"]
    replies = []
    for place, text in enumerate(texts, 1):
        language = language_of(text) or common
        is_last = last and place == len(texts)
        said = read(text, language, today)
        replies.append(_Reply(said, is_last, language is not None or _has_no_words(said)))
    return replies


def _has_no_words(said: ReadText) -> bool:
    """Whether a text is values and nothing else, which need no language."""
    rest = said.lower
    for reading in said.readings:
        rest = rest.replace(reading.words.lower(), " ")
    return not any(map(str.isalpha, rest))


def telling(
    value: CheckedScalar, place: ValuePlace | None, replies: Sequence[_Reply]
) -> Telling:
    """Whether one value is told, and where."""
    flaws: list[str | None] = []
    quote = ""
    for reply in replies:
        for hits in _found(value, reply.said):
            flaw = next((f for h in hits if (f := _flaw(h, reply, place))), None)
            words = _quoted(reply, hits[0])
            if flaw is None:
                return Telling(True, f"{value} in {words}")
            flaws.append(flaw)
            quote = quote or f"{value} only {flaw} in {words}"
    if flaws:
        plainly = all(flaw in PLAIN_FLAWS for flaw in flaws)
        is_open = not plainly or _could_be_told(value, replies, beside=True)
        return Telling(None if is_open else False, quote)
    if _could_be_told(value, replies, beside=False):
        return Telling(None, f"{value} not found")
    return Telling(False, f"not told: {value}")


DENIED, ONE_OF_SEVERAL = "denied", "as one of several"
PLAIN_FLAWS = (DENIED, ONE_OF_SEVERAL)
"""Ways of saying a value that leave no doubt that it is not told."""


def _found(value: CheckedScalar, said: ReadText) -> Iterator[list[_Hit]]:
    """The places of a text that say the value; several at once for a day and a time."""
    if isinstance(value, int | float):
        for reading in said.readings:
            day = reading.days[0] if reading.days else (None, None, None)
            if is_number(reading, value) or (day[:2] == (None, None) and day[2] == value):
                yield [_hit(reading)]
        return
    parts = _parts(value)
    if parts:
        found = [[r for r in said.readings if _says(r, part)] for part in parts]
        if all(found):
            for first in found[0]:
                nearest = [min(rs, key=lambda r: abs(r.start - first.start)) for rs in found[1:]]
                yield [_hit(first), *map(_hit, nearest)]
        return
    if (match := find_words(said, value)) is not None:
        yield [_Hit(*match.span())]
    elif _NUMERIC.fullmatch(value):
        for reading in said.readings:
            if is_number(reading, float(value)):
                yield [_hit(reading)]


def _parts(value: str) -> list[date | int]:
    """The day and the minutes since midnight that a stored value holds; empty for other text."""
    if moment := moment_of(value):
        return [moment.date()] if len(value) <= 10 else [moment.date(), minutes_of(moment)]
    if match := _SPAN.fullmatch(value):
        hours = [int(part) for part in match.groups()]
        return [hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]]
    if match := _CLOCK.fullmatch(value):
        return [int(match[1]) * 60 + int(match[2])]
    return []


def _says(reading: Reading, part: date | int) -> bool:
    return is_time(reading, part) if isinstance(part, int) else is_day(reading, part)


def _hit(reading: Reading) -> _Hit:
    return _Hit(reading.start, reading.end, reading)


def _flaw(hit: _Hit, reply: _Reply, place: ValuePlace | None) -> str | None:
    """Why the value does not count as told there; None where it does."""
    said, table = reply.said, reply.said.table
    start, end = reply.sentence(hit.start)
    before, after = said.lower[start : hit.start], said.lower[hit.end : end]
    clause = _CLAUSE.split(before)[-1]
    links = rf"(?:\W+(?:{'|'.join(map(re.escape, table.link_words))}))*\W*$"
    contrast = table.patterns["contrasts"]
    if contrast and re.search(rf"(?:{contrast.pattern}){links}", clause):
        return DENIED
    is_question = after.rstrip("\"') ").endswith(("?", "\uff1f"))
    if _is_alternative(hit, said, start, end):
        return ONE_OF_SEVERAL if reply.is_last and not is_question else "perhaps"
    if is_question or table.find("negations", clause) or table.find("openers", before):
        return "perhaps"
    if place is not None and _of_another(place, said, start, end):
        return "of another record"
    return None


def _is_alternative(hit: _Hit, said: ReadText, start: int, end: int) -> bool:
    """Whether another value of the kind stands beside it, with "or" between the two."""
    alternatives = said.table.patterns["alternatives"]
    if hit.reading is None or alternatives is None:
        return False
    link = "|".join(map(re.escape, said.table.link_words))
    joint = re.compile(rf"{_FILLER},?\W*(?:{alternatives.pattern})(?:\W+(?:{link}|full|even))*\W*")
    for other in said.of(hit.reading.kind):
        if not start <= other.start < end or _overlap(hit.reading, other):
            continue
        first, then = sorted((hit.reading, other), key=lambda r: r.start)
        if first.unit and then.unit and first.unit != then.unit:
            continue
        if joint.fullmatch(said.lower[first.end : then.start]):
            return True
    return False


def _overlap(a: Reading, b: Reading) -> bool:
    """Whether two readings can be one value."""
    return bool({*a.numbers, *a.minutes} & {*b.numbers, *b.minutes}) or any(
        x == y for x in a.days for y in b.days
    )


def _of_another(place: ValuePlace, said: ReadText, start: int, end: int) -> bool:
    """Whether the sentence names another record of the same make, and not the one in question."""
    named = {r.words.lower() for r in said.of("id") if start <= r.start < end}
    return place.id.lower() not in named and any(
        shape_of(name) == shape_of(place.id.lower()) for name in named
    )


def shape_of(name: str) -> str:
    """`LP-58213` and `LP-58231` have one shape: LP-00000."""
    return re.sub(r"\d", "0", name)


def _quoted(reply: _Reply, hit: _Hit) -> str:
    start, end = reply.sentence(hit.start)
    if end - start > QUOTED:
        start = max(start, hit.start - QUOTED // 2)
        end = min(end, start + QUOTED)
    return repr(" ".join(reply.said.text[start:end].split()))


def _could_be_told(
    value: CheckedScalar, replies: Sequence[_Reply], *, beside: bool
) -> bool:
    """Whether anything that was said could be the value: rounded, in other units, summed up, or in
    words that are not read here. `beside`: the exact value does not count, it has been found."""
    if not all(reply.is_known for reply in replies):
        return True
    if isinstance(value, int | float):
        return _could_be_number(value, replies, beside=beside)
    if parts := _parts(value):
        return all(_could_be_part(part, replies, beside=beside) for part in parts)
    if _NUMERIC.fullmatch(value):
        return _could_be_number(float(value), replies, beside=beside)
    return not _IDENTIFIER.fullmatch(value) or _could_be_id(value, replies)


def _could_be_id(value: str, replies: Sequence[_Reply]) -> bool:
    """Told without its marks, or by its last digits."""
    squeezed = re.sub(r"[\W_]+", "", "".join(reply.said.lower for reply in replies))
    whole = re.sub(r"[\W_]+", "", value.lower())
    return whole[-4:] in squeezed


def _could_be_number(value: float, replies: Sequence[_Reply], *, beside: bool) -> bool:
    if value == int(value) and abs(value) <= SMALL and not beside:
        return True
    numbers: list[float] = []
    for reply in replies:
        said = reply.said
        if said.table.find("parts", said.lower) and not beside:
            return True
        rough = said.table.find("estimates", said.lower)
        for reading in said.of("number"):
            if any(_rounds(value, number, reading.decimals, rough) for number in reading.numbers):
                if not (beside and close(reading.numbers[0], value)):
                    return True
            numbers += reading.numbers
        hours = (m for reading in said.of("time") for m in reading.minutes)
        if any(minutes in (value * 60, value) for minutes in hours):
            return True
    if any(close(value, n * k) or close(value * k, n) for n in numbers for k in FACTORS if n):
        return True
    return not beside and _reckoned(value, list(dict.fromkeys(numbers))[:MOST_SUMMED])


def _rounds(value: float, number: float, decimals: int, rough: bool) -> bool:
    """Whether the number is the value rounded, in the precision in which it is written."""
    if close(abs(value), abs(number)):
        return True
    step = 10.0**-decimals
    if not decimals and number:
        digits = str(int(abs(number)))
        step = 10.0 ** (len(digits) - len(digits.rstrip("0")))
    near = abs(abs(value) - abs(number))
    rounded = step > 1 or value != round(value, decimals)
    return (rounded and near < step) or (rough and near <= ROUGHLY * abs(value))


def _reckoned(value: float, numbers: Sequence[float]) -> bool:
    """Whether two of the numbers, or all of them, come to the value."""
    return close(sum(numbers), value) or any(
        any(close(value, abs(result)) for result in (a + b, a - b, a * b, a * b / 100))
        for a, b in itertools.combinations(numbers, 2)
    )


def _could_be_part(part: date | int, replies: Sequence[_Reply], *, beside: bool) -> bool:
    """Of a day: weekdays, days by their number, spans of days. Of a time: hours by their number."""
    for reply in replies:
        said = reply.said
        for reading in said.readings:
            if beside and _says(reading, part):
                continue
            if isinstance(part, int):
                if _could_be_time(reading, part):
                    return True
            elif _could_be_day(reading, part):
                return True
        if said.table.find("parts", said.lower) and isinstance(part, int) and not beside:
            return True
    return False


def _could_be_time(reading: Reading, minutes: int) -> bool:
    if reading.kind == "time":
        return minutes in reading.minutes
    hours = {minutes // 60, minutes // 60 % 12, (minutes // 60 + 1) % 12, minutes // 60 % 12 or 12}
    return reading.unit in ("hours", "minutes") or any(n in hours for n in reading.numbers)


def _could_be_day(reading: Reading, day: date) -> bool:
    if reading.kind == "date":
        own = day.date() if isinstance(day, datetime) else day
        return not reading.days or any(fits_day(said, own) for said in reading.days)
    if reading.kind != "number":
        return False
    spans = reading.unit in ("days", "weeks", "months")
    return spans or any(number == day.day for number in reading.numbers)
