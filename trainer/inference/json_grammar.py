"""JSON values under a schema as a grammar of llguidance, for constrained decoding.

Enforced are types, declared and required properties, enums, constants and items, also where they
come by unions, `allOf` or references within the schema (`trainer.inference.json_schema`). Left to
whoever executes the call: formats (dates, too), patterns, lengths, ranges. Where a schema declares
properties, others are refused, and each comes once, in any order; between tokens of JSON stands one
space or line break at most, since a model could go on with blanks for ever.

The library's own reading of schemas is not used: it fixes the order of properties, takes
undeclared ones and refuses some unions and schemas that lead back to themselves.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from records.errors import ConfigError
from trainer.inference.json_schema import Said, Schema

LARGEST_NUMBER = 2**53 - 1
"""Either way: above it not every whole number has a value of its own, and tools take none."""

MOST_PROPERTIES = 64
"""Of one object, which a rule of the grammar counts with as many bits. Required ones come first;
optional ones beyond cannot be written."""

_DEEPEST = 24
"""Here nothing is opened that need not be: where a schema says nothing, or leads back to itself, a
model could nest for ever."""


def _up_to(largest: int) -> str:
    """A pattern for whole numbers of as many digits as the largest, and not above it."""
    digits = str(largest)
    below = [
        f"{digits[:at]}[{'1' if at == 0 else '0'}-{int(digit) - 1}][0-9]{{{len(digits) - at - 1}}}"
        for at, digit in enumerate(digits)
        if int(digit) > (at == 0)
    ]
    return "|".join([*below, digits])


_SHORT = f"0|[1-9][0-9]{{0,{len(str(LARGEST_NUMBER)) - 2}}}"
_LONG = _up_to(LARGEST_NUMBER - 1)

TERMINALS = rf"""
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{{4}})*"/
INTEGER: /-?({_SHORT}|{_LONG}|{LARGEST_NUMBER})/
NUMBER: FIXED | SMALL | LARGE
FIXED: /-?(({_SHORT}|{_LONG})(\.[0-9]{{1,24}})?|{LARGEST_NUMBER}(\.0{{1,24}})?)/
SMALL: /-?({_SHORT})(\.[0-9]{{1,24}})?[eE]-[0-9]{{1,3}}/
LARGE: /-?[0-9](\.[0-9]{{1,24}})?[eE]\+?0?([0-9]|1[0-4])/
COLON: /[ \n]?:[ \n]?/
COMMA: /[ \n]?,[ \n]?/
OPEN_OBJECT: /\{{[ \n]?/
CLOSE_OBJECT: /[ \n]?\}}/
EMPTY_OBJECT: /\{{[ \n]?\}}/
OPEN_ARRAY: /\[[ \n]?/
CLOSE_ARRAY: /[ \n]?\]/
EMPTY_ARRAY: /\[[ \n]?\]/
NEVER: /a/ & /b/
"""
"""What the rules of `JsonGrammar` are made of; once in a grammar."""


def literal(text: str) -> str:
    """The very text, as grammars have it."""
    return json.dumps(text, ensure_ascii=False)


class JsonGrammar:
    """Rules for values under one schema. `prefix` keeps its rules' names apart from others'."""

    def __init__(self, schema: Schema, *, prefix: str) -> None:
        self._schema, self._prefix = schema, prefix
        self._names: dict[tuple[int, int], str] = {}
        self._known: list[Any] = []
        """Schemas that have rules, so that their identities stay theirs."""
        self._waiting: list[tuple[str, Any, int]] = []

    def rules(self) -> list[str]:
        """The first one is called `prefix`."""
        made: list[str] = []
        self._rule_for(self._schema.root, 0)
        while self._waiting:
            name, schema, depth = self._waiting.pop()
            options = self._schema.alternatives(schema)
            parts = [
                option
                for number, said in enumerate(options)
                for option in self._options(f"{name}_{number}", said, depth, made)
            ]
            # of no alternative is what was too much to work out, and turns out to have no value
            made.append(f"{name}: {' | '.join(dict.fromkeys(parts)) or 'NEVER'}")
        return made

    def _rule_for(self, schema: Any, depth: int) -> str:
        """Its name. From a depth on, rules lead back to themselves."""
        key = (id(schema), min(depth, _DEEPEST))
        if key not in self._names:
            self._names[key] = f"{self._prefix}_{len(self._names)}" if self._names else self._prefix
            self._known.append(schema)
            self._waiting.append((self._names[key], schema, key[1]))
        return self._names[key]

    def _options(self, name: str, said: Said, depth: int, made: list[str]) -> Iterator[str]:
        if said.values is not None:
            yield from (literal(json.dumps(v, ensure_ascii=False)) for v in said.values)
            return
        kinds = [said.kind] if said.kind else ["string", "number", "boolean", "null"]
        if not said.kind and depth < _DEEPEST:
            kinds += ["object", "array"]
        for kind in kinds:
            match kind:
                case "object":
                    yield from self._object(name, said, depth, made)
                case "array":
                    yield from self._array(said, depth)
                case "boolean":
                    yield '"true" | "false"'
                case "null":
                    yield '"null"'
                case _:
                    yield kind.upper()

    def _array(self, said: Said, depth: int) -> Iterator[str]:
        yield "EMPTY_ARRAY"
        if said.items is not False and depth < _DEEPEST:
            item = self._rule_for(said.items, depth + 1)
            yield f"OPEN_ARRAY {item} (COMMA {item})* CLOSE_ARRAY"

    def _object(self, name: str, said: Said, depth: int, made: list[str]) -> Iterator[str]:
        if not said.properties and said.others is not False:
            yield "EMPTY_OBJECT"
            if depth < _DEEPEST:
                pair = f"STRING COLON {self._rule_for(said.others, depth + 1)}"
                yield f"OPEN_OBJECT {pair} (COMMA {pair})* CLOSE_OBJECT"
            return
        if not said.required:
            yield "EMPTY_OBJECT"
        if properties := _in_order(said, depth):
            made += self._members(name, said, properties, depth)
            yield f"OPEN_OBJECT {name}_member::0x0"

    def _members(
        self, name: str, said: Said, properties: Sequence[str], depth: int
    ) -> Iterator[str]:
        """A bit for each property that is there, required ones lowest."""
        pairs = [
            f"{literal(json.dumps(key, ensure_ascii=False))} COLON "
            f"{self._rule_for(said.properties[key], depth + 1)}"
            for key in properties
        ]
        options = [
            f"{pair} {name}_more::set_bit({bit}) %if bit_clear({bit})"
            for bit, pair in enumerate(pairs)
        ]
        yield f"{name}_member::_: " + " | ".join(options)
        required = len(said.required)
        end = f"CLOSE_OBJECT %if is_ones([0:{required}])" if required else "CLOSE_OBJECT"
        more = f"COMMA {name}_member::_ %if not(is_ones([0:{len(pairs)}]))"
        yield f"{name}_more::_: {end} | {more}"


def _in_order(said: Said, depth: int) -> list[str]:
    """The properties that can be written, required ones first; where a schema goes on for ever, at
    last these alone. ConfigError where they are more than can be counted."""
    if len(said.required) > MOST_PROPERTIES:
        raise ConfigError(
            f"a tool has an object with {len(said.required)} required properties; constrained "
            f"decoding takes {MOST_PROPERTIES}: leave the tool out, or do without it"
        )
    others = [name for name in said.properties if name not in said.required]
    return [*said.required, *(others if depth < _DEEPEST else [])][:MOST_PROPERTIES]
