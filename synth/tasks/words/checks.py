"""What code finds wrong with the words of a task, in words for the one who wrote them."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from synth.rubrics.built_in import mentions
from synth.tasks.goals.goals import Draft, Fact, Goal

BORROWED = 6
"""So many words in a row of a tool's description are no request in a person's own words."""

LEAST_QUOTE = 4
"""Letters of words by which something is asked for; fewer ask for nothing."""

TELLING_NUMBER = 10
"""Whole numbers below it stand in many a text without telling anything."""

KEEP = "`keep`"
"""Where the words say what the assistant is to keep for a later conversation."""

_PLAIN_WORDS = frozenset(("none", "no", "yes"))
"""Values for which people have many words: `no reminders, please`."""

_ALSO_WORDS = frozenset(("may", "march", "mar"))
"""Months that stand in a text as something else: they need their year."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
_INTERNAL = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")


def said_together(draft: Draft) -> list[list[Goal]]:
    """The goals by the wish that they are said in: what is to wait for the one before it stands in
    one wish with that one."""
    groups: list[list[Goal]] = []
    for goal in draft.goals:
        if goal.after and groups:
            groups[-1].append(goal)
        else:
            groups.append([goal])
    return groups


def opening_goals(draft: Draft) -> int:
    """How many wishes stand in the first message; a goal that a draft has lost is none."""
    return min(draft.opening_goals, sum(g[0].session == 0 for g in said_together(draft)))


def faults_of(
    draft: Draft, words: dict[str, Any], *, persona: str, descriptions: Sequence[str]
) -> list[str]:
    """Everything that is wrong with the words, one phrase each. `persona`: its name;
    `descriptions`: of the tools at hand."""
    requests = {"the opening": words["opening"]} | {
        f"wish {number}": text for number, text in enumerate(words["wishes"], 1)
    }
    situations = {"the situation": words["situation"]}
    for number, back in enumerate(words.get("returns", ()), 2):
        requests[f"the opening of conversation {number}"] = back["opening"]
        situations[f"the situation of conversation {number}"] = back["situation"]
    if "keep" in words:
        requests[KEEP] = words["keep"]
    return [
        *(f"{missing} is missing" for missing in lacks(draft, words)),
        *told_too_early(draft, requests | situations),
        *foretold(draft, requests | situations),
        *unasked(draft, words),
        *internal_names(draft, requests),
        *(
            f"{place} repeats a description word for word: {run!r}; say it as the person would"
            for place, text in requests.items()
            if (run := borrowed(text, descriptions)) is not None
        ),
        *somebody_else(draft, words["person"], persona),
    ]


def lacks(draft: Draft, words: dict[str, Any]) -> list[str]:
    """Values that the words do not hold: in the opening of a conversation those of the wishes that
    it brings that are told at once, in a wish of several goals those of the later ones, in each
    wish what no call takes and it hangs on, such as a limit, and what is to be kept in `keep`."""
    groups = said_together(draft)
    openings = [words["opening"], *(back["opening"] for back in words.get("returns", ()))]
    missing = []
    for number, opening in enumerate(openings):
        brought = 1 if number else opening_goals(draft)
        first = [group for group in groups if group[0].session == number][:brought]
        place = "the opening" + (f" of conversation {number + 1}" if number else "")
        missing += [
            f"{fact.label} {fact.value} in {place}"
            for group in first
            for goal in group
            for fact in goal.known
            if fact.when == "opening" and not says(opening, fact)
        ]
    missing += [
        f"{fact.label} {fact.value} in {KEEP}"
        for goal in draft.goals
        for fact in goal.known
        if fact.when == "earlier" and not says(words["keep"], fact)
    ]
    missing += [
        f"{fact.label} {fact.value} in wish {number}"
        for number, (group, text) in enumerate(zip(groups, words["wishes"], strict=True), 1)
        for goal in group
        for fact in goal.known
        if (goal.after or not fact.param) and fact.when == "opening" and not says(text, fact)
    ]
    return missing


def says(text: str, fact: Fact) -> bool:
    """Whether the text says the fact. A yes or no and `none` can be said in too many ways to look
    for; the first day of a month is said as the month, and `in_depot` as in the depot."""
    is_plain_word = isinstance(fact.value, bool) or fact.value in _PLAIN_WORDS
    if is_plain_word or mentions(text, fact.value) or _says_month(text, fact):
        return True
    return _INTERNAL.fullmatch(str(fact.value)) is not None and _says_words(text, fact)


def _says_words(text: str, fact: Fact) -> bool:
    """Whether every word of a value from a list stands in one sentence of the text."""
    wanted = set(str(fact.value).split("_"))
    sentences = re.split(r"[.!?\n]", text.casefold())
    return any(wanted <= set(_WORD.findall(sentence)) for sentence in sentences)


def _says_month(text: str, fact: Fact) -> bool:
    value = str(fact.value)
    if "month" not in fact.label.split() or not value.endswith("-01"):
        return False
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return False
    words = [word.casefold() for word in _WORD.findall(text)]
    pairs = set(pairwise([*words, ""]))
    names = {day.strftime("%B").casefold(), day.strftime("%b").casefold()}
    with_year = any((name, str(day.year)) in pairs for name in names)
    alone = not names.isdisjoint(words) and names.isdisjoint(_ALSO_WORDS)
    return value[:7] in text or with_year or alone


def told_too_early(draft: Draft, requests: dict[str, str]) -> Iterator[str]:
    """Values that the person tells only when asked, or only to be kept, and that stand in another
    place all the same."""
    known = [fact for goal in draft.goals for fact in goal.known]
    at_once = [fact.value for fact in known if fact.when == "opening"]
    kept = {fact.label: fact for fact in known if fact.when != "opening"}
    for place, text in requests.items():
        for fact in kept.values():
            if fact.value in at_once or not _tells(fact.value):
                continue
            if fact.when == "earlier" and place == KEEP:
                continue
            if mentions(text, fact.value):
                told = "is told only when asked" if fact.when == "asked" else f"{KEEP} alone tells"
                yield f"{place} tells {fact.label} {fact.value}, which {told}"


def foretold(draft: Draft, requests: dict[str, str]) -> Iterator[str]:
    """Results that the person wants to be told and that the words say beforehand."""
    known = [fact.value for goal in draft.goals for fact in goal.known]
    texts = [text for goal in draft.goals for text in (goal.description, goal.wish)]
    given = "\n".join([*texts, *map(str, known)])
    for asked in (asked for goal in draft.goals for asked in goal.asks):
        for value in (v for v in asked.values if v not in known and _tells(v)):
            if mentions(given, value):
                continue
            for place, text in requests.items():
                if mentions(text, value):
                    yield f"{place} says {asked.label} {value}, which the person has yet to be told"


def _tells(value: Any) -> bool:
    """Whether the value in a text is no accident."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return abs(value) >= TELLING_NUMBER or value != int(value)
    return len(value) > 2


def unasked(draft: Draft, words: dict[str, Any]) -> Iterator[str]:
    """Results that the rubric wants to be told and by whose words in its wish nobody asks."""
    wishes = [
        text
        for group, text in zip(said_together(draft), words["wishes"], strict=True)
        for goal in group
        for _ in goal.asks
    ]
    labels = [asked.label for goal in draft.goals for asked in goal.asks]
    for label, wish, quote in zip(labels, wishes, words["asks"], strict=True):
        flat = _flat(quote)
        whole = f" {flat} " in f" {_flat(wish)} " if " " in flat else flat in _flat(wish)
        if len(flat) < LEAST_QUOTE or not whole:
            yield f"the words {quote!r}, by which {label} is asked for, do not stand in {wish!r}"


def _flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def internal_names(draft: Draft, requests: dict[str, str]) -> Iterator[str]:
    """Names as systems have them, other than in what the person knows."""
    known = " ".join(str(fact.value) for goal in draft.goals for fact in goal.known)
    for place, text in requests.items():
        for name in dict.fromkeys(_INTERNAL.findall(text)):
            if name not in known:
                yield f"{place} holds {name!r}, a name that no person uses"


def borrowed(text: str, descriptions: Sequence[str]) -> str | None:
    """The first six words in a row that the text has in common with one of the descriptions."""
    words = _WORD.findall(text.casefold())
    runs = [tuple(words[at : at + BORROWED]) for at in range(len(words) - BORROWED + 1)]
    if not runs:
        return None
    theirs: set[tuple[str, ...]] = set()
    for description in descriptions:
        own = _WORD.findall(description.casefold())
        theirs.update(tuple(own[at : at + BORROWED]) for at in range(len(own) - BORROWED + 1))
    return next((" ".join(run) for run in runs if run in theirs), None)


def somebody_else(draft: Draft, person: str, persona: str) -> Iterator[str]:
    """Who writes is the persona or a person whom the facts name from the start."""
    named = [
        fact.value
        for goal in draft.goals
        for fact in goal.known
        if fact.when == "opening" and fact.label.endswith("name")
    ]
    if person.strip() not in (persona, *named):
        yield f"`person` is {person!r}, whom neither the persona nor the known values name"
