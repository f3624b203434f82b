"""Whether an agent can know what the calls of a proposed goal hold.

A value is said in the goal, or an earlier answer shows it. A text of another kind is composed by
the agent itself, such as a query: it stands if its words are no secrets, and if it does not lie in
the state afterwards, where another agent's words would be compared with it. In a query the values
between quotation marks are what has to be known; the words around them are its grammar and the
names of tables and fields, which an agent looks up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import duckdb

from records.tables.schemas import Row
from synth.rubrics.built_in import EpisodeCall, StateChange, mentions
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.proof.chains import shows
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers.proving import NUMBER
from synth.tasks.servers.trying import TriedGoal

_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d]\w*")
_BY_RULE = re.compile(r"[^\w\s.,?!'/@:-]")
"""Signs of a text that is written by rules of its own, such as a query or a formula."""

MANY_WORDS = 4
"""A text of so many words is composed, too."""

NO_CHOICE = {"0", "1"}
"""Numbers that nobody has to be told."""

IN_FORMULAS = frozenset({2, 7, 10, 12, 24, 52, 60, 100, 360, 365, 1000, 3600})
"""Numbers that nobody has to be told who writes a formula: powers, and parts of other units."""

_LITERAL = re.compile(r"'((?:[^']|'')*)'|\"([^\"]*)\"")
"""A value in a query."""

_ANYTHING = "%*?"
"""Signs of patterns that stand for any text, at either end of a value."""

_NAMED = re.compile(r"""(?<![^\W_])(?:'([^'\s]+)'|"([^"\s]+)"|`([^`\s]+)`)(?![^\W_])""")
"""A value that a description names, such as 'local'."""


class _Secrets(NamedTuple):
    """What rows hold that nobody knows without having seen it, in lower case."""

    words: frozenset[str]
    """Of ids and of short values, such as names: longer ones hold words that everybody uses."""
    values: frozenset[str]
    """Ids and values that are one word."""


def check_said(proposed: Mapping[str, Any]) -> None:
    """What the person says stands in the goal's sentence. UnprovedError else."""
    for one in proposed["said"]:
        value = one["value"]
        if not isinstance(value, bool) and not mentions(proposed["goal"], value):
            raise UnprovedError("not_said", f"the goal does not say {one['label']} {value!r}")


def composed_in(
    proposed: Mapping[str, Any], tried: TriedGoal, tools: Mapping[str, Row]
) -> tuple[str, ...]:
    """`CALL.PARAMETER` of the arguments that the agent composes or chooses itself; all others are
    said or shown. UnprovedError for one that nobody could know."""
    goal = proposed["goal"]
    shown: list[str] = [goal, *(str(one["value"]) for one in proposed["said"])]
    secret = _secrets_of(tried.before)
    kept = list(_kept(tried.changes))
    found: list[str] = []
    for at, call in enumerate(tried.calls):
        for param, argument in call.arguments.items():
            unknown = [value for value in plain_values(argument) if not _known(value, goal, shown)]
            if unknown and tried.state_read_from == "calls":
                # nothing but the calls tells what came of it, so that they have to be the same
                kept += [value for value in unknown if isinstance(value, str)]
            for value in unknown:
                _check_own(value, call, shown, secret, kept, tools[call.tool])
            if any(isinstance(value, str) for value in unknown):
                found.append(f"{at}.{param}")
        shown.append(str(call.observation))
    return tuple(found)


def _known(value: Any, goal: str, shown: Sequence[str]) -> bool:
    """Whether the goal says it, a number also in words, or something shown holds it."""
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, str):
        return any(shows(source, value) for source in shown)
    numbers = (float(found) for source in shown for found in NUMBER.findall(source))
    return mentions(goal, value) or any(number == value for number in numbers)


def _check_own(
    value: Any,
    call: EpisodeCall,
    shown: Sequence[str],
    secret: _Secrets,
    kept: Sequence[Any],
    tool: Row,
) -> None:
    """UnprovedError where the agent cannot have made up the value itself."""
    failure = UnprovedError("underivable_argument", f"{call.tool}: {str(value)[:200]!r}")
    if isinstance(value, int | float):
        if str(value) not in NO_CHOICE and value in kept:
            raise failure
        return
    if _is_path_of(value, shown):
        return
    if value in choices_of(tool["input_schema"], tool["description"]):
        if value in kept and value not in defaults_of(tool["input_schema"]):
            raise failure  # another choice would be another state
        return
    if any(isinstance(text, str) and value and value in text for text in kept):
        raise failure
    by_rule = _BY_RULE.search(value) is not None
    if not by_rule and len(_WORD.findall(value)) < MANY_WORDS:
        raise failure
    known = {word.lower() for source in shown for word in _WORD.findall(source)}
    numbers = _in_formulas(known)

    def lacks(text: str, hidden: frozenset[str], free: frozenset[str] = frozenset()) -> bool:
        words = [word for word in _WORD.findall(text) if word.lower() not in known]
        words = [word for word in words if word not in NO_CHOICE]
        words = [word for word in words if not (_is_number(word) and float(word) in numbers)]
        return any(_must_be_shown(word, hidden, free) for word in words)

    grammar = grammar_words()
    if not by_rule:
        if lacks(value, secret.words, grammar):
            raise failure
        return
    for literal in (own or other for own, other in _LITERAL.findall(value)):
        bare = literal.strip(_ANYTHING)
        if not any(shows(source, bare) for source in shown) and lacks(bare, secret.words):
            raise failure
    if lacks(_LITERAL.sub(" ", value), secret.values - grammar, grammar):
        raise failure


def _is_path_of(value: str, shown: Sequence[str]) -> bool:
    """Whether it is a path whose parts are known: a folder that was listed, and a name in it that
    the person says."""
    parts = [part for part in value.split("/") if part]
    return len(parts) > 1 and all(any(part in source for source in shown) for part in parts)


def _must_be_shown(word: str, secret: frozenset[str], free: frozenset[str]) -> bool:
    """Numbers, names, and whatever rows hold: nobody makes these up. Of names those that are `free`
    are none."""
    is_name = word[:1].isupper() and not word.isupper() and word.lower() not in free
    return _is_number(word) or is_name or word.lower() in secret


def _is_number(word: str) -> bool:
    """Of a `_WORD`. A raised or a circled digit, as in 10² or ①, is none that can be read."""
    return word[0].isdecimal()


@lru_cache
def grammar_words() -> frozenset[str]:
    """Words of the grammar of SQL, in lower case."""
    with duckdb.connect() as database:
        rows = database.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    return frozenset(word.lower() for (word,) in rows)


def _in_formulas(known: Iterable[str]) -> set[float]:
    """Numbers that a formula may hold where these words are known: a percentage is also written as
    a share, or as the factor by which something grows or shrinks."""
    given = [float(word) for word in known if _is_number(word)]
    shares = (form for x in given for form in (x / 100, 1 + x / 100, 1 - x / 100))
    return {*IN_FORMULAS, *(round(share, 9) for share in shares)}


def choices_of(schema: Any, description: str = "") -> set[str]:
    """The texts that a schema lists to choose from, has as a default, or names in words, and those
    that the tool's `description` names."""
    found = {
        value
        for part in _parts(schema)
        for value in (
            *_listed(part.get("enum")),
            part.get("const"),
            *_named_in(part.get("description")),
        )
        if isinstance(value, str)
    }
    return found | defaults_of(schema) | {*_named_in(description)}


def defaults_of(schema: Any) -> set[str]:
    """The texts that a schema has as a default."""
    found = (part.get("default") for part in _parts(schema))
    return {value for value in found if isinstance(value, str)}


def _named_in(description: Any) -> Iterable[str]:
    found = _NAMED.findall(description) if isinstance(description, str) else ()
    return (next(filter(None, forms)) for forms in found)


def _listed(values: Any) -> Iterable[Any]:
    return values if isinstance(values, list) else ()


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from _parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _parts(part)


def _kept(changes: Sequence[StateChange]) -> Iterator[Any]:
    """Plain values that lie in the state afterwards and did not before."""
    for change in changes:
        yield change["id"]
        yield from plain_values(change["after"] or {})


def _secrets_of(state: Mapping[str, Mapping[str, Any]]) -> _Secrets:
    """How tables and fields are called is no secret: an agent can look it up wherever it may write
    queries."""
    texts = (
        str(part)
        for rows in state.values()
        for key, row in rows.items()
        for part in (key, *plain_values(row))
    )
    words: set[str] = set()
    values: set[str] = set()
    for text in texts:
        found = _WORD.findall(text.lower())
        if len(found) < MANY_WORDS:
            words.update(found)
        if len(found) == 1:
            values.update(found)
    return _Secrets(frozenset(words), frozenset(values))
