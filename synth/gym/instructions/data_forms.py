"""Answers that are data as a whole: JSON, YAML, CSV, lines of labels and values.

A code fence around the whole is no fault. What is longer than anyone asks for is not parsed.
"""

import csv
import json
import random
import re
from collections.abc import Mapping
from typing import Any, Self, cast

import yaml

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features, spelled
from synth.gym.instructions.words import vocabulary

MOST_CHARACTERS = 200_000
"""Of data that is parsed; nothing that is asked for is near it."""

MOST_YAML = 20_000
"""Of YAML, whose parser is slow."""

_FENCED = re.compile(r"(```|~~~)[a-zA-Z]*\n")


class _TextsAlone(yaml.BaseLoader):
    """Makes texts, lists and mappings. Aliases are refused: with them little text is much data."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def unfenced(text: str) -> str:
    """The text within a code fence that stands around all of it, else the text."""
    opened = _FENCED.match(text)
    if opened is None or not text.endswith("\n" + opened[1]):
        return text
    return text[opened.end() : -len(opened[1])].strip()


def json_in(text: str) -> Any:
    """The JSON value that the text is; None for none, and for the value null."""
    bare = unfenced(text)
    if len(bare) > MOST_CHARACTERS:
        return None
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def yaml_in(text: str) -> Any:
    """The YAML value that the text is, its scalars as they are written; None for none."""
    bare = unfenced(text)
    if len(bare) > MOST_YAML:
        return None
    try:
        return yaml.load(bare, Loader=_TextsAlone)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def says_something(value: Any) -> bool:
    """Whether a JSON value holds a letter or digit, or is a number or truth value."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            if any(map(str.isalnum, part)):
                return True
        elif isinstance(part, dict):
            left += cast("dict[str, Any]", part).values()
        elif isinstance(part, list):
            left += cast("list[Any]", part)
        elif part is not None:
            return True
    return False


def _data(*names: str, lines: int = 0) -> Demand:
    words = features(*(f"word:{name.lower()}" for name in names))
    return Demand(
        takes=features("form", "start", "end", "lines", "mark:,", "quotations") | words,
        needs=spelled(*names) | words | features("long words", "mark::", "repetition", "lower"),
        bars=features("prose", "flowing", "markdown"),
        least={"words": 3 * len(names) + lines, "characters": 30 * (len(names) + lines)},
    )


class JsonMapping(Constraint):
    """The answer is a JSON object with certain keys and no others, none of them without a value."""

    wordings = (
        "Answer with one JSON object and nothing else; its keys are {keys}, and each has a value.",
        "The whole answer must be a JSON object with exactly the keys {keys}, none left empty.",
    )
    keys: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(keys=tuple(rng.sample(vocabulary("keys"), rng.randint(2, 4))))

    def met(self, answer: AnswerText) -> bool:
        value = json_in(answer.text)
        return (
            isinstance(value, dict)
            and value.keys() == set(self.keys)
            and all(map(says_something, value.values()))
        )

    def demand(self) -> Demand:
        return _data(*self.keys)


class JsonList(Constraint):
    """The answer is a JSON list of exactly so many different texts."""

    wordings = (
        "Answer with a JSON list of exactly {number} strings and nothing else.",
        "The whole answer must be a JSON array of {number} different strings.",
    )
    number: int
    """Texts, all of them different and none empty."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(3, 6))

    def met(self, answer: AnswerText) -> bool:
        value = json_in(answer.text)
        if not isinstance(value, list):
            return False
        items = cast("list[Any]", value)
        texts = {item for item in items if isinstance(item, str) and says_something(item)}
        return len(items) == len(texts) == self.number

    def demand(self) -> Demand:
        demand = _data(lines=self.number)
        return demand._replace(needs=demand.needs - {"mark::", "lower", "repetition"})


class JsonRecords(Constraint):
    """The answer is a JSON list of exactly so many objects that all have certain keys."""

    wordings = (
        "Answer with a JSON list of exactly {number} objects, each with the keys {keys}.",
        "The whole answer must be a JSON array of {number} objects; each has exactly the keys"
        " {keys}.",
    )
    number: int
    """Objects."""
    keys: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(
            number=rng.randint(2, 4), keys=tuple(rng.sample(vocabulary("keys"), rng.randint(2, 3)))
        )

    def met(self, answer: AnswerText) -> bool:
        value = json_in(answer.text)
        return (
            isinstance(value, list)
            and len(value) == self.number
            and all(
                isinstance(row, dict)
                and row.keys() == set(self.keys)
                and all(map(says_something, row.values()))
                for row in cast("list[Any]", value)
            )
        )

    def demand(self) -> Demand:
        return _data(*self.keys, lines=3 * self.number * len(self.keys))


class YamlMapping(Constraint):
    """The answer is a YAML mapping with certain keys and no others, none without a value."""

    wordings = (
        "Answer with a YAML mapping and nothing else; its keys are {keys}, and each has a value.",
        "The whole answer must be YAML with exactly the top-level keys {keys}, none left empty.",
    )
    keys: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(keys=tuple(rng.sample(vocabulary("keys"), rng.randint(2, 4))))

    def met(self, answer: AnswerText) -> bool:
        if unfenced(answer.text).startswith("{"):
            return False  # JSON is YAML, but not what is asked for
        value = yaml_in(answer.text)
        return (
            isinstance(value, dict)
            and value.keys() == set(self.keys)
            and all(map(says_something, value.values()))
        )

    def demand(self) -> Demand:
        demand = _data(*self.keys)
        return demand._replace(needs=demand.needs | {"break"})


class CsvTable(Constraint):
    """The answer is CSV: a header of certain columns and exactly so many full rows."""

    wordings = (
        "Answer with CSV and nothing else: the header {columns}, then exactly {rows} rows.",
        "The whole answer must be CSV with the columns {columns} and {rows} rows below the header.",
    )
    columns: tuple[str, ...]
    """At least two."""
    rows: int
    """Rows below the header."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        columns = tuple(rng.sample(vocabulary("columns"), rng.randint(2, 4)))
        return cls(columns=columns, rows=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        bare = unfenced(answer.text)
        if len(bare) > MOST_CHARACTERS:
            return False
        try:
            rows = [row for row in csv.reader(bare.split("\n"), skipinitialspace=True) if row]
        except csv.Error:
            return False
        header = tuple(cell.strip().casefold() for cell in rows[0]) if rows else ()
        return (
            header == tuple(column.casefold() for column in self.columns)
            and len(rows) - 1 == self.rows
            and all(len(row) == len(header) and all(map(str.strip, row)) for row in rows)
        )

    def demand(self) -> Demand:
        demand = _data(*self.columns, lines=self.rows * len(self.columns))
        return demand._replace(needs=(demand.needs - {"lower", "mark::"}) | {"break", "mark:,"})


class LabelledLines(Constraint):
    """Each line is a label, a colon and a value; the labels are certain ones in this order."""

    wordings = (
        'Answer with lines of the form "Label: value" alone; the labels are {labels}, in this'
        " order.",
        "Write one line for each of {labels}, in this order: the label, a colon, then the value.",
    )
    labels: tuple[str, ...]
    """At least three."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(labels=tuple(rng.sample(vocabulary("columns"), rng.randint(3, 5))))

    def met(self, answer: AnswerText) -> bool:
        if len(answer.raw_lines) != len(self.labels):
            return False
        lines = [line[:2000].replace("**", "") for line in answer.raw_lines]
        parts = [re.split("[:\uff1a]", line, maxsplit=1) for line in lines]
        return all(len(part) == 2 and any(map(str.isalnum, part[1])) for part in parts) and tuple(
            part[0].strip().casefold() for part in parts
        ) == tuple(label.casefold() for label in self.labels)

    def demand(self) -> Demand:
        demand = _data(*self.labels)
        number = len(self.labels)
        return demand._replace(
            needs=(demand.needs - {"lower"}) | {"break"},
            least=dict(demand.least) | {"lines": number},
            most={"lines": number},
        )

    def shown(self) -> Mapping[str, object]:
        return {"labels": ", ".join(self.labels)}


KINDS: tuple[type[Constraint], ...] = (
    JsonMapping,
    JsonList,
    JsonRecords,
    YamlMapping,
    CsvTable,
    LabelledLines,
)
