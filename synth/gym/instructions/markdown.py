"""Which Markdown: headings, lists, tables, bold, code, quotations, dividers, or none at all.

After CommonMark and the tables of GitHub, by lines: a list within a list counts with it.
"""

import random
import re
from collections.abc import Mapping
from typing import Self

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features, listed, spelled
from synth.gym.instructions.words import vocabulary

_PROGRAMS = ("python", "json", "bash", "sql")
_INLINE = re.compile(r"`[^`\n]+`|\]\([^()\s]{1,500}\)|(?<!\w)__[^_\n]+__(?!\w)")

LISTED = features("prose", "lists", "break", "markdown")
"""What structure by lines has; prose that is counted in sentences does not."""


def _structure(takes: str, *, lines: int, words: int = 0) -> Demand:
    return Demand(
        takes=features(takes),
        needs=LISTED,
        bars=features("flowing"),
        uses={"lines": lines, "words": words or 2 * lines, "characters": 30 * lines},
    )


class HeadingsExactly(Constraint):
    """Exactly so many Markdown headings, of any level."""

    wordings = (
        "Use exactly {number} Markdown headings.",
        "Structure the answer with {number} headings in Markdown.",
    )
    held_by_rest = True
    number: int
    """Headings."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.of_kind("heading")) == self.number

    def demand(self) -> Demand:
        return _structure("headings", lines=2 * self.number)


class SectionHeadings(Constraint):
    """The Markdown headings are certain ones, in this order and no others."""

    wordings = (
        "Use these Markdown headings, in this order and no others: {titles}.",
        "The sections must have the headings {titles} in Markdown, in this order.",
    )
    titles: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(titles=tuple(rng.sample(vocabulary("headings"), rng.randint(2, 4))))

    def met(self, answer: AnswerText) -> bool:
        found = [line.text.strip("*:_ ").casefold() for line in answer.of_kind("heading")]
        return found == [title.casefold() for title in self.titles]

    def demand(self) -> Demand:
        demand = _structure("headings", lines=2 * len(self.titles))
        words = features(*(f"word:{title.lower()}" for title in self.titles))
        return demand._replace(
            takes=demand.takes | words,
            needs=demand.needs | spelled(*self.titles) | words | {"long words", "repetition"},
        )


class BulletsExactly(Constraint):
    """Exactly so many bullet points."""

    wordings = (
        "Use exactly {number} bullet points.",
        "The answer must have {number} bullet points.",
    )
    held_by_rest = True
    number: int
    """Bullet points, those within others included."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(3, 6))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.of_kind("bullet")) == self.number

    def demand(self) -> Demand:
        demand = _structure("bullets", lines=self.number)
        return demand._replace(needs=demand.needs | {"mark:-", "bullet"})


class NumberedExactly(Constraint):
    """A numbered list of exactly so many items, numbered from 1 without a gap."""

    wordings = (
        "Include a numbered list of exactly {number} items, from 1 to {number}.",
        "Number your points from 1 to {number}, one a line.",
    )
    held_by_rest = True
    number: int
    """Items."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(3, 6))

    def met(self, answer: AnswerText) -> bool:
        found = [int(line.mark) for line in answer.of_kind("numbered")]
        return found == list(range(1, self.number + 1))

    def demand(self) -> Demand:
        demand = _structure("numbered", lines=self.number)
        return demand._replace(needs=demand.needs | {"digit"}, takes=demand.takes | {"numbers"})


class BulletsSorted(Constraint):
    """There are at least so many bullet points, and they stand in alphabetical order."""

    wordings = (
        "Give at least {least} bullet points, in alphabetical order.",
        "Write {least} or more bullet points and sort them alphabetically.",
    )
    held_by_rest = True
    least: int
    """Bullet points."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(3, 5))

    def met(self, answer: AnswerText) -> bool:
        found = [line.text.strip("*_ ").casefold() for line in answer.of_kind("bullet")]
        return len(found) >= self.least and found == sorted(found)

    def demand(self) -> Demand:
        demand = _structure("bullets", lines=self.least)
        return demand._replace(needs=demand.needs | {"mark:-", "bullet"})


class TableShape(Constraint):
    """One Markdown table with certain columns and exactly so many rows below them."""

    wordings = (
        "Include one Markdown table with the columns {columns} and exactly {rows} rows.",
        "Show a table in Markdown: its columns are {columns}, and below them are {rows} rows.",
    )
    columns: tuple[str, ...]
    rows: int
    """Rows, the header apart; none has an empty cell."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        columns = tuple(rng.sample(vocabulary("columns"), rng.randint(2, 4)))
        return cls(columns=columns, rows=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        if len(answer.tables) != 1:
            return False
        table = answer.tables[0]
        header = [cell.strip("*_ ").casefold() for cell in table.header]
        return (
            header == [column.casefold() for column in self.columns]
            and len(table.rows) == self.rows
            and all(len(row) == len(header) and all(row) for row in table.rows)
        )

    def demand(self) -> Demand:
        demand = _structure("table", lines=self.rows + 2, words=(self.rows + 1) * len(self.columns))
        words = features(*(f"word:{column.lower()}" for column in self.columns))
        return demand._replace(
            takes=demand.takes | words,
            needs=demand.needs | spelled(*self.columns) | words | {"mark:-", "table"},
        )


class BoldAtLeast(Constraint):
    """At least so many passages stand between double asterisks."""

    wordings = (
        "Set at least {least} phrases in **bold**.",
        "Highlight {least} or more phrases with Markdown's **double asterisks**.",
    )
    held_by_rest = True
    least: int
    """Passages, each within one line."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.bold) >= self.least

    def demand(self) -> Demand:
        return Demand(
            takes=features("bold"),
            needs=features("prose", "markdown"),
            uses={"words": self.least, "characters": 12 * self.least},
        )


class PlainText(Constraint):
    """No Markdown: no headings, lists, tables, rules, code, bold or links."""

    wordings = (
        "Use no Markdown at all: no headings, lists, tables, bold or code.",
        "Answer in plain text without any Markdown.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        marked = {line.kind for line in answer.lines} - {"text", "blank"}
        return not marked and not answer.bold and not _INLINE.search(answer.text)

    def demand(self) -> Demand:
        return Demand(
            takes=features("markdown"), bars=features("markdown"), needs=features("prose")
        )


class CodeBlock(Constraint):
    """Exactly one fenced code block, labelled with a certain language and not empty."""

    wordings = (
        "Include exactly one fenced code block, labelled `{program}`.",
        "The answer must hold one fenced block of code with the label `{program}`.",
    )
    program: str
    """What stands behind the opening fence."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(program=rng.choice(_PROGRAMS))

    def met(self, answer: AnswerText) -> bool:
        fences, code = answer.of_kind("fence"), answer.of_kind("code")
        return [fence.mark.lower() for fence in fences] == [self.program, ""] and any(
            line.text.strip() for line in code
        )

    def demand(self) -> Demand:
        demand = _structure("code", lines=3)
        return demand._replace(
            needs=demand.needs | spelled(self.program) | {"lower"} | {"code"},
            takes=demand.takes | {"code"},
        )


class QuoteBlock(Constraint):
    """At least one line is a Markdown quotation that says something."""

    wordings = (
        "Include a block quotation in Markdown, a line that begins with >.",
        'At least one line must be a Markdown block quotation, beginning with ">".',
    )
    held_by_rest = True

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return any(any(map(str.isalnum, line.text)) for line in answer.of_kind("quote"))

    def demand(self) -> Demand:
        return _structure("quote", lines=1, words=3)


class Divided(Constraint):
    """Lines of three asterisks part the answer into exactly so many parts, none of them empty."""

    wordings = (
        "Divide the answer into exactly {parts} parts with a line of three asterisks, ***.",
        "Write {parts} parts with a line *** between one part and the next.",
    )
    parts: int
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(parts=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        parts: list[list[str]] = [[]]
        for line in answer.raw_lines:
            if line.replace(" ", "") == "***":
                parts.append([])
            else:
                parts[-1].append(line)
        said = [part for part in parts if any(map(str.isalnum, "".join(part)))]
        return len(parts) == len(said) == self.parts

    def demand(self) -> Demand:
        return _structure("dividers", lines=2 * self.parts)

    def shown(self) -> Mapping[str, object]:
        return {"parts": self.parts}


class ListedItems(Constraint):
    """Certain items are bullet points of their own, in a given order and without others."""

    wordings = (
        "List {items} as bullet points in this order; each point begins with its item.",
        "Write one bullet point for each of {items}, in this order, beginning with the item.",
    )
    items: tuple[str, ...]
    """At least three."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(items=tuple(rng.sample(vocabulary("nouns"), 3)))

    def met(self, answer: AnswerText) -> bool:
        found = answer.of_kind("bullet")
        return len(found) == len(self.items) and all(
            AnswerText(line.text[:200]).runs[:1] == [item]
            for line, item in zip(found, self.items, strict=True)
        )

    def demand(self) -> Demand:
        demand = _structure("bullets", lines=len(self.items))
        words = features(*(f"word:{item}" for item in self.items))
        return demand._replace(
            takes=demand.takes | words,
            needs=demand.needs | spelled(*self.items) | words | {"mark:-", "bullet"},
        )

    def shown(self) -> Mapping[str, object]:
        return {"items": listed(self.items)}


KINDS: tuple[type[Constraint], ...] = (
    HeadingsExactly,
    SectionHeadings,
    BulletsExactly,
    NumberedExactly,
    BulletsSorted,
    TableShape,
    BoldAtLeast,
    PlainText,
    CodeBlock,
    QuoteBlock,
    Divided,
    ListedItems,
)
