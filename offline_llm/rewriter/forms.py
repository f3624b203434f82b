"""How each form sets out the sentences of a paragraph, and what a point of view adds to them.

A form is chosen by the words of its title, so that instructions which came later find one too.
Nothing here says anything: what is added are questions made of the sentence's own words, labels
and ways of leading on.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

from offline_llm.rewriter.phrases import upper_first
from offline_llm.rewriter.wording import Remark, is_whole, lower_first

Form = Callable[[Sequence[Remark], Random, int], list[str]]
"""Points, and the number that the next numbered entry has, to blocks of text."""

_COUNTED = re.compile(r"^(\d+)\. ", re.MULTILINE)
_CELL_WORDS = 16
_LINKS = ("Besides, ", "At the same time, ", "In the same way, ", "What is more, ", "Further, ")
_EVENTS = ("To begin with, ", "As things go on, ", "After that, ", "From there on, ", "Then ")
_LETTER = ("You will see that ", "Keep in mind that ", "You should know that ", "As you go on, ")
_DOUBTS = ("What about {topic}?", "And {topic}, what of it?", "Tell me of {topic}.")


class View(NamedTuple):
    """What a point of view does to sentences, seldom enough not to be tiresome."""

    leads: tuple[str, ...]
    limits_first: bool = False
    """Sentences with a limit or a denial are brought forward where order is free."""
    splits: bool = False
    """Long sentences are cut at semicolons."""


_VIEWS = {
    "beginner": View(("Put simply, ", "In plain words, "), splits=True),
    "work": View(("In use, ", "When you work with it, ")),
    "examiner": View(("To be exact, ", "Strictly put, ")),
    "historian": View(("To begin with, ", "Going on from there, ")),
    "sceptic": View(("As far as it goes, ", "With due care, "), limits_first=True),
    "build": View(("As a rule to build on, ", "For the one who builds it, ")),
    "teacher": View(("Notice that ", "Remember that ")),
    "field": View(("Spelled out, ", "At full length, "), splits=True),
}
_LIMIT = re.compile(r"\b(?:not|only|unless|except|but|however|may|cannot|never)\b", re.IGNORECASE)


def view_of(perspective: str) -> View:
    title = perspective.partition("\n")[0].lower()
    return next((view for word, view in _VIEWS.items() if word in title), View(()))


def next_number(written: str) -> int:
    """One more than the last number of an entry in what is written so far."""
    found = _COUNTED.findall(written)
    return int(found[-1]) + 1 if found else 1


def with_leads(points: Sequence[Remark], view: View, rng: Random) -> list[Remark]:
    """Every few sentences one is led into as the point of view does it."""
    if not view.leads:
        return list(points)
    return [
        point._replace(text=f"{rng.choice(view.leads)}{lower_first(point.text)}")
        if not point.is_tied and lower_first(point.text) != point.text and rng.random() < 0.2
        else point
        for point in points
    ]


def halves(sentences: Sequence[str]) -> list[str]:
    """The sentences, those with semicolons cut there, unless they stand in brackets."""
    found: list[str] = []
    for one in sentences:
        first, *others = one.split("; ")
        if others and is_whole(first, *others) and all(half[:1].isalpha() for half in others):
            ended = [f"{half}." for half in (first, *others[:-1])]
            found += [ended[0], *map(upper_first, [*ended[1:], others[-1]])]
        else:
            found.append(one)
    return found


def announced(sentences: Iterable[str]) -> list[list[str]]:
    """Runs of sentences; one that announces what follows is a run of its own."""
    runs: list[list[str]] = []
    for one in sentences:
        if one.endswith(":") or not runs or runs[-1][-1].endswith(":"):
            runs.append([one])
        else:
            runs[-1].append(one)
    return runs


def limits_first(points: Sequence[Remark]) -> list[Remark]:
    if any(point.is_tied for point in points):
        return list(points)
    return sorted(points, key=lambda point: not _LIMIT.search(point.text))


def _question(point: Remark) -> str:
    """A question that the sentence answers."""
    if point.condition:
        return f"What happens {point.condition}?"
    if point.verb in ("is", "are", "was", "were"):
        return f"What {point.verb} {point.topic}?"
    if point.verb in ("can", "must", "may", "will", "should", "does", "do"):
        return f"What {point.verb} {point.topic} do, and how?"
    return f"What about {point.topic or 'that'}?"


def _grouped(points: Sequence[Remark], size: int) -> list[list[Remark]]:
    """Runs of points; what is tied to a sentence stays with it."""
    groups: list[list[Remark]] = []
    for point in points:
        if groups and (point.is_tied or len(groups[-1]) < size):
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def _said(points: Sequence[Remark]) -> str:
    return " ".join(point.text for point in points)


def _paragraphs(sentences: int) -> Form:
    return lambda points, rng, number: [_said(group) for group in _grouped(points, sentences)]


def _notes(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    return ["\n".join(f"- {_termed(point)}" for point in points)]


def _termed(point: Remark) -> str:
    """The sentence with its subject in bold."""
    if point.verb and point.text.lower().startswith(point.topic.lower()):
        subject = point.text[: len(point.topic)]
        return f"**{subject}**{point.text[len(subject) :]}"
    return point.text


def _pairs(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    return [
        f"**Q:** {_question(group[0])}\n\n**A:** {_said(group)}" for group in _grouped(points, 1)
    ]


def _worries(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    return [f"**{_question(group[0])}**\n\n{_said(group)}" for group in _grouped(points, 3)]


def _steps(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    lines = []
    for k, group in enumerate(_grouped(points, 1)):
        first = f"Note that {lower_first(group[0].text)}" if k % 2 else group[0].text
        lines += [f"{number + k}. {first}", *(f"   {point.text}" for point in group[1:])]
    return ["\n".join(lines)]


def _talk(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    blocks = []
    for group in _grouped(points, 2):
        doubt = rng.choice(_DOUBTS).format(topic=group[0].topic or "that")
        asked = _question(group[0]) if group[0].condition or rng.random() < 0.5 else doubt
        blocks += [f"Asker: {asked}", f"Expert: {_said(group)}"]
    return blocks


def _entries(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    return [
        f"**{upper_first(group[0].topic or 'note')}**: {_said(group)}"
        for group in _grouped(points, 1)
    ]


def _case(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    groups = _grouped(points, 2)
    leads = ["Take the case: ", *["The next move: "] * (len(groups) - 1)]
    return [f"{lead}{lower_first(_said(group))}" for lead, group in zip(leads, groups, strict=True)]


def _led(ways: Sequence[str]) -> Form:
    def form(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
        groups = _grouped(points, 3)
        free = [not group[0].is_tied and rng.random() < 0.7 for group in groups]
        return [
            f"{rng.choice(ways)}{lower_first(_said(group))}" if lead else _said(group)
            for group, lead in zip(groups, free, strict=True)
        ]

    return form


def _exam(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    return [
        f"{number + k}. {_question(group[0])}\n\nAnswer: {_said(group)}"
        for k, group in enumerate(_grouped(points, 1))
    ]


def _table(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    """Short statements with a subject side by side, the others as sentences below."""
    groups = _grouped(points, 1)
    rows = [g for g in groups if g[0].verb and len(g) == 1 and _fits(g[0])]
    rest = [point for group in groups if group not in rows for point in group]
    if len(rows) < 2:
        return [_said(points)]
    lines = [f"| {upper_first(g[0].topic)} | {g[0].text} |" for g in rows]
    table = "\n".join(["| What | What holds |", "|---|---|", *lines])
    return [table, _said(rest)] if rest else [table]


def _fits(point: Remark) -> bool:
    return "|" not in point.text and len(point.text.split()) <= _CELL_WORDS


def _card(points: Sequence[Remark], rng: Random, number: int) -> list[str]:
    lines = []
    for group in _grouped(points, 1):
        text = re.sub(r"^(?:The|A|An) ", "", group[0].text)
        lines.append(f"- {upper_first(text).rstrip('.')}")
        lines += [f"  - {point.text.rstrip('.')}" for point in group[1:]]
    return ["\n".join(lines)]


_PROSE = _paragraphs(1_000_000)
_FORMS: dict[str, Form] = {
    "notes": _notes,
    "question and": _pairs,
    "asked questions": _worries,
    "encyclop": _PROSE,
    "step": _steps,
    "dialogue": _talk,
    "glossary": _entries,
    "definition": _entries,
    "example": _case,
    "report": _paragraphs(2),
    "news": _paragraphs(2),
    "letter": _led(_LETTER),
    "exam": _exam,
    "table": _table,
    "narrative": _led(_EVENTS),
    "story": _led(_EVENTS),
    "card": _card,
    "list": _card,
    "essay": _led(_LINKS),
}


def form_of(style: str) -> Form:
    """By the first known word in the title of the style; plain prose for a title of none."""
    title = style.partition("\n")[0].lower()
    return next((form for word, form in _FORMS.items() if word in title), _PROSE)
