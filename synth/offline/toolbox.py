"""What an agent can tell about a tool from its name, its description and its JSON Schema alone."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from synth.offline.reading import shape
from synth.offline.words import alike, plain, split, stem, stem_set, stems, table

READ_VERBS = frozenset(
    map(
        stem,
        table(
            "find search list show get look read view check see summarise summarize describe"
            " track locate count compare quote estimate calculate compute convert preview fetch"
            " query browse inspect tell retrieve lookup display return explain measure total"
            " suggest recommend"
        ),
    )
)
_EXAMPLE = re.compile(r"(?:such as|e\.g\.,?|for example,?|example:|like)\s+['\"`]?([^'\"`.;()]+)")
_EXAMPLE_DOT = re.compile(r"(?:such as|e\.g\.,?|for example,?)\s+['\"`]?(\S+@\S+\w|\S+\.\S+\w)")
_ID_NAME = re.compile(r"^(.*?)_?(?:ids?|number|no|code|key|ref|sku|uuid)$")
_RETURNS = re.compile(r"\breturns?\b", re.IGNORECASE)
_CURSOR = frozenset({"cursor", "page_token", "pagetoken", "next_token", "starting_after"})


@dataclass(frozen=True)
class Param:
    """One parameter. `nouns` are the stems of the thing that an identifier is of."""

    name: str
    schema: dict[str, Any] = field(hash=False)
    required: bool
    kind: str
    """string, integer, number, boolean, array or object."""
    enum: tuple[Any, ...]
    description: str
    name_words: frozenset[str]
    words: frozenset[str]
    """Stems of the name and the description, examples left out."""
    example: str
    nouns: frozenset[str]
    parts: tuple["Param", ...] = ()
    """The members of an object, or of the objects of a list."""

    @property
    def is_id(self) -> bool:
        return bool(self.nouns)

    @cached_property
    def is_text(self) -> bool:
        """Takes free words: a name, a title, something to search for."""
        plain_string = self.kind == "string" and self.form == "plain"
        return plain_string and not (self.enum or self.is_id or self.is_cursor)

    @cached_property
    def prefix(self) -> str:
        """Letters and mark before the digits of the example's identifier: `AP-`."""
        match = re.match(r"^([A-Za-z]+[-_])\d", self.example)
        return match.group(1) if match else ""

    @cached_property
    def form(self) -> str:
        """date, datetime, time or plain: what spelling a string must have."""
        wanted = self.schema.get("format")
        if wanted in ("date", "time"):
            return wanted
        if wanted == "date-time":
            return "datetime"
        if re.fullmatch(r"\d{4}-\d\d-\d\d", self.example):
            return "date"
        if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", self.example):
            return "datetime"
        if re.fullmatch(r"\d\d:\d\d", self.example) or "HH:MM" in self.description:
            return "time"
        return "plain"

    @cached_property
    def example_shape(self) -> str:
        return shape(self.example)

    @cached_property
    def is_cursor(self) -> bool:
        return self.name.lower() in _CURSOR


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    params: tuple[Param, ...]
    verbs: frozenset[str]
    """Stems that can stand for the action: first word of name and description, last of name."""
    name_words: tuple[str, ...]
    head_words: frozenset[str]
    """Stems of the first sentence."""
    tail_words: frozenset[str]
    """Stems of the rest of the description and of the parameters."""
    returns: frozenset[str]
    """Field names and words that the description says are returned."""
    reads: bool

    def param(self, name: str) -> Param | None:
        return next((p for p in self.params if p.name == name), None)

    @property
    def required(self) -> list[Param]:
        return [p for p in self.params if p.required]


@lru_cache(maxsize=512)
def toolbox(text: str) -> list[Tool]:
    """Tools from the JSON text of a request's functions, which requests repeat."""
    return [_tool(json.dumps(function)) for function in json.loads(text)]


@lru_cache(maxsize=4096)
def _tool(text: str) -> Tool:
    function = json.loads(text)
    name, description = function["name"], str(function.get("description") or "")
    schema = function.get("parameters") or {}
    required = schema.get("required") or []
    properties = schema.get("properties") or {}
    params = tuple(
        _param(key, value if isinstance(value, dict) else {}, key in required)
        for key, value in properties.items()
    )
    head = first_sentence(description)
    split_at = _RETURNS.search(description)
    tail = description[len(head) :]
    name_words = stems(plain(name))
    verbs = frozenset(name_words[:1] + stems(head)[:1])
    reads = bool(READ_VERBS & verbs) or (not description and bool(READ_VERBS & set(name_words)))
    reads = reads or (bool(split_at) and bool(params) and not required)
    return Tool(
        name=name,
        description=description,
        params=params,
        verbs=verbs if reads else verbs | set(name_words[-1:]),
        name_words=name_words,
        head_words=stem_set(head),
        tail_words=stem_set(tail, *(plain(p.name) for p in params))
        | frozenset(w for p in params for e in p.enum for w in stems(plain(str(e)))),
        returns=frozenset(re.findall(r"\w+", description[split_at.end() :].lower()))
        if split_at
        else frozenset(),
        reads=reads,
    )


def first_sentence(description: str) -> str:
    """Up to the first full stop that ends a sentence, at most the first line."""
    line = description.strip().split("\n")[0]
    return re.split(r"(?<=[a-z0-9)])\.(?:\s|$)", line, maxsplit=1)[0]


def _param(name: str, schema: dict[str, Any], required: bool, depth: int = 0) -> Param:
    schema = _plain_schema(schema)
    description = str(schema.get("description") or "")
    items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
    values = schema.get("enum") or (items or {}).get("enum") or ()
    bare = re.sub(r"\b(?:such as|e\.g\.|for example|example:).*", "", description)
    example = _example(description)
    return Param(
        name=name,
        schema=schema,
        required=required,
        kind=str(schema.get("type", "string")),
        enum=tuple(v for v in values if isinstance(v, str | int | float)),
        description=description,
        name_words=stem_set(plain(name)) | _ends(set(split(name))),
        words=stem_set(plain(name), bare),
        example=example,
        nouns=_nouns(name, bare, example, schema),
        parts=_parts(schema, depth),
    )


def _ends(words: set[str]) -> set[str]:
    """`from` and `to`, which tell two parameters of one kind apart, however they are called."""
    named = {
        "source": "from",
        "origin": "from",
        "base": "from",
        "target": "to",
        "destination": "to",
    }
    return {named.get(word, word) for word in words} & {"from", "to"}


def _parts(schema: dict[str, Any], depth: int) -> tuple[Param, ...]:
    inner = schema.get("items") if schema.get("type") == "array" else schema
    if depth > 2 or not isinstance(inner, dict) or not isinstance(inner.get("properties"), dict):
        return ()
    needed = inner.get("required") or []
    return tuple(
        _param(name, value, name in needed, depth + 1)
        for name, value in inner["properties"].items()
        if isinstance(value, dict)
    )


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """`anyOf` with null and lists of types become the one type that is meant."""
    for key in ("anyOf", "oneOf"):
        if options := [o for o in schema.get(key) or [] if isinstance(o, dict)]:
            chosen = next((o for o in options if o.get("type") != "null"), options[0])
            return {k: v for k, v in schema.items() if k != key} | chosen
    if isinstance(schema.get("type"), list):
        kinds = [k for k in schema["type"] if k != "null"] or ["string"]
        return schema | {"type": kinds[0]}
    return schema


def _example(description: str) -> str:
    match = _EXAMPLE_DOT.search(description) or _EXAMPLE.search(description)
    return match.group(1).strip().rstrip(",") if match else ""


def _nouns(name: str, described: str, example: str, schema: dict[str, Any]) -> frozenset[str]:
    """Stems of what an identifier identifies; empty when the parameter is no identifier."""
    if schema.get("type", "string") not in ("string", "array", "integer") or "enum" in schema:
        return frozenset()
    as_snake = "_".join(split(name))
    match = _ID_NAME.match(as_snake)
    of = re.match(r"(?i)(?:the\s+)?(?:unique\s+)?(?:ids?|identifiers?)\s+of\s+(.*)", described)
    if not of and not (match and as_snake.endswith(("id", "ids", "uuid"))):
        return frozenset()
    if schema.get("type") == "integer" and not as_snake.endswith("id"):
        return frozenset()
    own = stems(match.group(1).replace("_", " ")) if match else stems(plain(name))
    told = (
        stems(re.split(r"\b(?:that|which|to|from|whose|in|on|with)\b", of.group(1))[0])
        if of
        else ()
    )
    return frozenset(own[-1:]) | frozenset(told[-1:]) or frozenset({"id"})


def kin(params: list[Param]) -> dict[str, frozenset[str]]:
    """For each id prefix, the nouns of every parameter whose example carries it."""
    found: dict[str, frozenset[str]] = {}
    for param in params:
        if param.prefix:
            found[param.prefix] = found.get(param.prefix, frozenset()) | param.nouns
    return found


def speaks_of(words: Iterable[str], nouns: frozenset[str]) -> bool:
    return any(alike(a, b) for a in words for b in nouns)
