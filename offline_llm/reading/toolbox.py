"""What an agent can tell about a tool from its name, its description and its JSON Schema alone."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from offline_llm.reading.reading import shape
from offline_llm.reading.words import alike, plain, split, stem_set, stems

READ_VERBS = stem_set(
    "find search list show get look read view check see summarise summarize describe track locate"
    " count compare quote estimate calculate compute convert preview fetch query browse inspect"
    " tell retrieve lookup display return explain measure total suggest recommend"
) | {"get", "see", "tell", "show", "list"}
_EXAMPLE = re.compile(r"(?:such as|e\.g\.,?|for example,?|example:|like)\s+['\"`]?([^'\"`.;()]+)")
_EXAMPLE_DOT = re.compile(r"(?:such as|e\.g\.,?|for example,?)\s+['\"`]?(\S+@\S+\w|\S+\.\S+\w)")
_EXAMPLES = re.compile(r"\b(?:such as|e\.g\.|for example|example:).*")
_ID_NAME = re.compile(r"^(.*?)_?(?:ids?|number|no|code|key|ref|sku|uuid)$")
_ID_OF = re.compile(r"(?i)(?:the\s+)?(?:unique\s+)?(?:ids?|identifiers?)\s+of\s+(.*)")
_ASIDE = re.compile(r"\b(?:that|which|to|from|whose|in|on|with)\b")
_RETURNS = re.compile(r"\breturns?\b", re.IGNORECASE)
_CURSOR = frozenset({"cursor", "page_token", "pagetoken", "next_token", "starting_after"})
_ENDS = {"source": "from", "origin": "from", "base": "from", "target": "to", "destination": "to"}


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
    """Stems of the name, and `from` or `to` for where something starts or goes."""
    words: frozenset[str]
    """Stems of the name and the description, examples left out."""
    example: str
    nouns: frozenset[str]
    parts: tuple["Param", ...] = ()
    """The members of an object, or of the objects of a list."""

    @property
    def is_id(self) -> bool:
        return bool(self.nouns)

    @property
    def is_cursor(self) -> bool:
        return self.name.lower() in _CURSOR

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
        wanted = str(self.schema.get("format", "")).replace("-", "")
        if wanted in ("date", "time", "datetime"):
            return wanted
        if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", self.example):
            return "datetime" if len(self.example) > 10 else "date"
        is_clock = re.fullmatch(r"\d\d:\d\d", self.example) or "HH:MM" in self.description
        return "time" if is_clock else "plain"

    @cached_property
    def example_shape(self) -> str:
        return shape(self.example)


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

    @cached_property
    def words(self) -> frozenset[str]:
        return self.head_words.union(self.name_words, self.tail_words)

    @cached_property
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
    params = _params(function.get("parameters"))
    head, told = first_sentence(description), _RETURNS.split(description, 1)[1:]
    name_words = stems(plain(name))
    verbs = frozenset(name_words[:1] + stems(head)[:1])
    reads = bool(READ_VERBS & (verbs if description else set(name_words)))
    reads = reads or bool(told and params and not any(p.required for p in params))
    choices = [plain(str(value)) for p in params for value in p.enum]
    return Tool(
        name=name,
        description=description,
        params=params,
        verbs=verbs if reads else verbs | set(name_words[-1:]),
        name_words=name_words,
        head_words=stem_set(head),
        tail_words=stem_set(description[len(head) :], *(plain(p.name) for p in params), *choices),
        returns=frozenset(re.findall(r"\w+", told[0].lower() if told else "")),
        reads=reads,
    )


def first_sentence(description: str) -> str:
    """Up to the first full stop that ends a sentence, at most the first line."""
    line = description.strip().split("\n")[0]
    return re.split(r"(?<=[a-z0-9)])\.(?:\s|$)", line, maxsplit=1)[0]


def _params(schema: Any, depth: int = 0) -> tuple[Param, ...]:
    """The members of an object's schema; deeper ones than three levels are not looked at."""
    members = schema.get("properties") if isinstance(schema, dict) and depth < 3 else None
    needed = (schema.get("required") or []) if members else []
    given = members.items() if isinstance(members, dict) else ()
    return tuple(_param(k, v, k in needed, depth) for k, v in given if isinstance(v, dict))


def _param(name: str, schema: dict[str, Any], required: bool, depth: int) -> Param:
    schema = _plain_schema(schema)
    description = str(schema.get("description") or "")
    items = schema["items"] if isinstance(schema.get("items"), dict) else {}
    values = schema.get("enum") or items.get("enum") or ()
    bare = _EXAMPLES.sub("", description)
    example = _EXAMPLE_DOT.search(description) or _EXAMPLE.search(description)
    ends = {_ENDS.get(word, word) for word in split(name)} & {"from", "to"}
    return Param(
        name=name,
        schema=schema,
        required=required,
        kind=str(schema.get("type", "string")),
        enum=tuple(v for v in values if isinstance(v, str | int | float)),
        description=description,
        name_words=stem_set(plain(name)) | ends,
        words=stem_set(plain(name), bare),
        example=example.group(1).strip().rstrip(",") if example else "",
        nouns=_nouns(name, bare, schema),
        parts=_params(items if schema.get("type") == "array" else schema, depth + 1),
    )


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """`anyOf` with null and lists of types become the one type that is meant."""
    for key in ("anyOf", "oneOf"):
        if options := [o for o in schema.get(key) or [] if isinstance(o, dict)]:
            chosen = next((o for o in options if o.get("type") != "null"), options[0])
            return {k: v for k, v in schema.items() if k != key} | chosen
    if isinstance(schema.get("type"), list):
        return schema | {"type": next((k for k in schema["type"] if k != "null"), "string")}
    return schema


def _nouns(name: str, described: str, schema: dict[str, Any]) -> frozenset[str]:
    """Stems of what an identifier identifies; empty when the parameter is no identifier."""
    kind, snake = schema.get("type", "string"), "_".join(split(name))
    match, of = _ID_NAME.match(snake), _ID_OF.match(described)
    called = snake.endswith("id") or (snake.endswith(("ids", "uuid")) and kind != "integer")
    if "enum" in schema or kind not in ("string", "array", "integer") or not (of or called):
        return frozenset()
    own = stems(match.group(1).replace("_", " ") if match else plain(name))
    told = stems(_ASIDE.split(of.group(1))[0]) if of else ()
    return frozenset(own[-1:] + told[-1:]) or frozenset({"id"})


def kin(params: list[Param]) -> dict[str, frozenset[str]]:
    """For each id prefix, the nouns of every parameter whose example carries it."""
    found: dict[str, frozenset[str]] = {}
    for param in params:
        if param.prefix:
            found[param.prefix] = found.get(param.prefix, frozenset()) | param.nouns
    return found


def speaks_of(words: Iterable[str], nouns: frozenset[str]) -> bool:
    return any(alike(a, b) for a in words for b in nouns)
