"""Whether the user was told a value: found in any usual spelling, plainly missing, or left open.

Found is what a reply says in so many words, with nothing in its sentence that may take it back and
no later reply that tells another value. Missing is said only where code is sure: the language and
the type of the value are read here, and nothing in any reply could be the value. All else is open,
and the judge decides.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from synth.rubrics.criteria import CheckedScalar, CommunicateCheck, ValuePlace
from synth.rubrics.episode import Episode, Verdict
from synth.rubrics.possible import NUMERIC, could_be_told, parts_of_text, says_part
from synth.rubrics.reading.locales import CODES, language_of, locale
from synth.rubrics.reading.messages import text_of
from synth.rubrics.reading.readings import TextReadings, ValueReading, read
from synth.rubrics.reading.sentences import sentences_in
from synth.rubrics.reading.today import today_of
from synth.rubrics.values import find_words, is_number, shape_of

QUOTED = 120
"""Characters of a reply that evidence quotes."""

_TOPIC = re.compile(r"[\u4e00-\u9fff]{2}|[^\W\d_\u4e00-\u9fff]{3,}")
_NAMED = re.compile(r"\b(?!It|That|There|Here|What|He|She|Who|Let)[A-Z][^\W\d_]+'s\b")


def words_to_user(episode: Episode) -> Iterator[str]:
    """What the agent told the user."""
    return (text for _, text in replies_in(episode.messages))


def replies_in(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """(place, text) of what was said to the user, who hears the words beside calls as well."""
    for place, message in enumerate(messages):
        text = text_of(message)
        if message["role"] == "assistant" and (text.strip() or not message.get("tool_calls")):
            yield place, text


@dataclass(frozen=True)
class _Reply:
    said: TextReadings
    is_last: bool
    is_known: bool
    """Whether its language has a table."""
    is_guessed: bool
    """Whether the replies are too short to tell it, so that it is taken from the user's words."""
    today: date | None

    def possible_readings(self) -> list[TextReadings]:
        """What is read in it, in every language that it may be in."""
        if not self.is_guessed:
            return [self.said]
        return [read(self.said.text, code, self.today) for code in CODES]

    @cached_property
    def _sentences(self) -> list[tuple[int, int]]:
        return sentences_in(self.said.text, self.said.table)

    def sentence(self, start: int) -> tuple[int, int]:
        """(start, end) of the sentence that goes on at a place; of the whole reply between two."""
        place = bisect_right(self._sentences, start, key=itemgetter(0)) - 1
        if place >= 0 and start < self._sentences[place][1]:
            return self._sentences[place]
        return 0, len(self.said.text)


class Telling(NamedTuple):
    told: bool | None
    """None: code leaves it open."""
    why: str


class _Hit(NamedTuple):
    """Where a value stands in a reply."""

    start: int
    end: int
    reading: ValueReading | None = None


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
    users = [text_of(m) for m in episode.messages if m["role"] == "user"]
    otherwise = "\n".join(texts), "\n".join(users)
    today = today_of(episode.messages, (call.observation for call in episode.calls))
    last = [m["role"] for m in episode.messages][-1:] == ["assistant"]
    replies = []
    for place, text in enumerate(texts, 1):
        language = language_of(text, *otherwise)
        is_last = last and place == len(texts)
        said = read(text, language, today)
        is_known = language is not None or _has_no_words(said)
        is_guessed = language_of(text, otherwise[0]) is None
        replies.append(_Reply(said, is_last, is_known, is_guessed, today))
    return replies


def _has_no_words(said: TextReadings) -> bool:
    """Whether a text is values and nothing else, which need no language."""
    rest = said.lower
    for reading in said.readings:
        rest = rest.replace(reading.words.lower(), " ")
    return not any(map(str.isalpha, rest))


def telling(value: CheckedScalar, place: ValuePlace | None, replies: Sequence[_Reply]) -> Telling:
    """Whether one value is told, and where."""
    is_open = not all(reply.is_known for reply in replies)
    why = ""
    for number, reply in enumerate(replies, 1):
        for hits in _found(value, reply.said):
            flaw = next((f for h in hits if (f := _flaw(h, hits, reply, place))), None)
            if flaw is None and _is_corrected(hits[0], reply, replies[number:]):
                flaw = "before another value"
            words = _quoted(reply, hits[0])
            if flaw is None:
                return Telling(True, f"{value} in {words}")
            is_open = is_open or flaw != ONE_OF_SEVERAL or not reply.is_last
            why = why or f"{value} only {flaw} in {words}"
    others = [
        said
        for reply in replies
        if not (why and reply.is_last)
        for said in reply.possible_readings()
    ]
    if is_open or (others and could_be_told(value, others)):
        return Telling(None, why or f"{value} not found")
    return Telling(False, why or f"not told: {value}")


ONE_OF_SEVERAL = "as one of several"
"""The way of saying a value that leaves no doubt that it is not told."""

_HEDGES = ("negations", "contrasts", "conditions", "doubts")
"""Words in whose sentence a value may not be what the user is told."""


def _found(value: CheckedScalar, said: TextReadings) -> Iterator[list[_Hit]]:
    """The places of a text that say the value; several at once for a day and a time."""
    if isinstance(value, int | float):
        for reading in said.readings:
            day = reading.days[0] if reading.days else (None, None, None)
            if is_number(reading, value) or (day[:2] == (None, None) and day[2] == value):
                yield [_hit(reading)]
        return
    parts = parts_of_text(value)
    if parts:
        found = [[r for r in said.readings if says_part(r, part)] for part in parts]
        if all(found):
            for first in found[0]:
                nearest = [min(rs, key=lambda r: abs(r.start - first.start)) for rs in found[1:]]
                yield [_hit(first), *map(_hit, nearest)]
        return
    if (match := find_words(said, value)) is not None:
        yield [_Hit(*match.span())]
    elif NUMERIC.fullmatch(value):
        for reading in said.readings:
            if is_number(reading, float(value)):
                yield [_hit(reading)]


def _hit(reading: ValueReading) -> _Hit:
    return _Hit(reading.start, reading.end, reading)


def _flaw(hit: _Hit, hits: Sequence[_Hit], reply: _Reply, place: ValuePlace | None) -> str | None:
    """Why the value does not count as told there; None where it does. `hits`: all its parts."""
    said, table = reply.said, reply.said.table
    start, end = reply.sentence(hit.start)
    before, after = said.lower[start : hit.start], said.lower[hit.end : end]
    is_question = after.rstrip("\"') ").endswith(("?", "\uff1f"))
    if pair := _alternatives(hit, said, start, end):
        plain = reply.is_last and not is_question and _is_opened(pair, said, start, end)
        return ONE_OF_SEVERAL if plain else "perhaps"
    rest = _words_beside(hits, said, start, end)
    tables = map(locale, CODES) if reply.is_guessed else (table,)
    if is_question or any(t.find(kind, rest) for t in tables for kind in _HEDGES):
        return "perhaps"
    if table.find("openers", before) or _is_joined(said, before, after):
        return "perhaps"
    if hit.reading is not None and _others(hit.reading, hits, said, start, end):
        return "among others"
    is_named = _NAMED.search(said.text[start : hit.start]) is not None
    if is_named and hit.reading and _others(hit.reading, hits, said, 0, len(said.text)):
        return "of somebody by name"
    if place is not None and _of_another(place, said, start, end):
        return "of another record"
    return None


def _words_beside(hits: Sequence[_Hit], said: TextReadings, start: int, end: int) -> str:
    """The sentence without the value and without the other values in it."""
    rest = said.lower[start:end]
    for part in (*hits, *said.readings):
        if part.start < end and start < part.end:
            first, then = max(part.start - start, 0), min(part.end, end) - start
            rest = f"{rest[:first]}{' ' * (then - first)}{rest[then:]}"
    return rest


def _others(
    own: ValueReading, hits: Sequence[_Hit], said: TextReadings, start: int, end: int
) -> list[ValueReading]:
    """Other values of the kind between two places."""
    return [
        other
        for other in said.of(own.kind)
        if start <= other.start < end
        and not any(hit.start <= other.start < hit.end for hit in hits)
        and not _overlap(own, other)
        and (other.unit == own.unit or (not own.unit and other.unit == "money"))
        and (own.kind != "id" or shape_of(own.words.lower()) == shape_of(other.words.lower()))
    ]


def _is_joined(said: TextReadings, before: str, after: str) -> bool:
    """Whether "or" stands right beside the value."""
    joint = said.table.patterns["either"]
    return joint.match(after) is not None or any(
        match.end() == len(before) for match in joint.finditer(before)
    )


def _is_corrected(hit: _Hit, reply: _Reply, later: Sequence[_Reply]) -> bool:
    """Whether a later reply tells another value of the kind in words of the same sentence."""
    if hit.reading is None:
        return False
    start, end = reply.sentence(hit.start)
    topic = _topic(reply.said, start, end)
    for then in later:
        for other in _others(hit.reading, (), then.said, 0, len(then.said.text)):
            if topic & _topic(then.said, *then.sentence(other.start)):
                return True
    return False


def _topic(said: TextReadings, start: int, end: int) -> set[str]:
    """The words of a sentence that tell what it is about."""
    words = _TOPIC.findall(_words_beside((), said, start, end))
    return set(words) - said.table.function_words - said.table.fillers - said.table.link_words


def _alternatives(
    hit: _Hit, said: TextReadings, start: int, end: int
) -> tuple[ValueReading, ValueReading] | None:
    """The value and another of its kind with "or" between the two, in their order."""
    if hit.reading is None:
        return None
    joint = said.table.patterns["either"]
    for other in said.of(hit.reading.kind):
        if not start <= other.start < end or _overlap(hit.reading, other):
            continue
        first, then = sorted((hit.reading, other), key=lambda r: r.start)
        if first.unit and then.unit and first.unit != then.unit:
            continue
        if joint.fullmatch(said.lower[first.end : then.start]):
            return first, then
    return None


def _is_opened(
    pair: tuple[ValueReading, ValueReading], said: TextReadings, start: int, end: int
) -> bool:
    """Whether "either" stands right before the two values, or "depending" right after them, so that
    nobody can tell which of them is meant. Amounts in two currencies may be one."""
    table, (first, then) = said.table, pair
    if table.find("offers", said.lower[start:end]):
        return False
    signs = {sign for r in pair if (sign := re.sub(r"[\d.,\s-]+", "", r.words.lower()))}
    if first.unit == then.unit == "money" and len(signs) > 1:
        return False
    for match in table.patterns["openers"].finditer(said.lower, start, end):
        gap = said.lower[match.end() : first.start]
        if match.end() <= first.start and table.patterns["glue"].fullmatch(gap):
            return True
        if match.start() >= then.end and not any(
            map(str.isalnum, said.lower[then.end : match.start()])
        ):
            return True
    return False


def _overlap(a: ValueReading, b: ValueReading) -> bool:
    """Whether two readings can be one value."""
    return bool({*a.numbers, *a.minutes} & {*b.numbers, *b.minutes}) or any(
        x == y for x in a.days for y in b.days
    )


def _of_another(place: ValuePlace, said: TextReadings, start: int, end: int) -> bool:
    """Whether the sentence names another record of the same make, and not the one in question."""
    named = {r.words.lower() for r in said.of("id") if start <= r.start < end}
    return place.id.lower() not in named and any(
        shape_of(name) == shape_of(place.id.lower()) for name in named
    )


def _quoted(reply: _Reply, hit: _Hit) -> str:
    start, end = reply.sentence(hit.start)
    if end - start > QUOTED:
        start = max(start, hit.start - QUOTED // 2)
        end = min(end, start + QUOTED)
    return repr(" ".join(reply.said.text[start:end].split()))
