"""Descriptions held against what tools do: by a judge, where a real model plays it, and by words.

The judge refuses a tool where it quotes words of the description that promise what the program does
not do, and the quote stands there. Words alone, such as a result that the description names and the
answer lacks, are a hint: they are kept with the tool and never refuse it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from records.errors import ItemError
from synth.llm.client import LLM
from synth.prompts.templates import render
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.statements import Return

PROMPT = "tools_described"

PROMISES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "broken": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "quote": {"type": "string"},
                                "missing": {"type": "string"},
                            },
                            "required": ["quote", "missing"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["name", "broken"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["tools"],
    "additionalProperties": False,
}

MAX_BROKEN = 3
"""Broken promises of one tool that its author is shown."""

_MIN_QUOTE = 2
"""Words of a quote that counts: a single one promises nothing."""

_SHOWN_CHARS = 300


class BrokenPromise(NamedTuple):
    quote: str
    missing: str

    @property
    def words(self) -> str:
        """For the author of the tool."""
        return f"description: {self.quote!r} is promised and not done: {self.missing}"


class JudgedDescription(NamedTuple):
    answered: bool
    broken: tuple[BrokenPromise, ...]


async def judged(
    llm: LLM, item: str, step: str, specs: Sequence[ToolSpec]
) -> dict[str, JudgedDescription]:
    """By name, in one request. Without an answer of use, no tool is refused for it."""
    tools = [_shown(spec) for spec in specs]
    messages = render(PROMPT, tools=tools).messages
    try:
        answer = await llm.structured(
            "judge", messages, item=item, step=step, name="promises", schema=PROMISES
        )
    except ItemError:
        return {spec.name: JudgedDescription(False, ()) for spec in specs}
    said = {entry["name"]: entry["broken"] for entry in answer["tools"]}
    return {
        spec.name: JudgedDescription(
            spec.name in said, tuple(_standing(spec, said.get(spec.name, ())))
        )
        for spec in specs
    }


def _shown(spec: ToolSpec) -> dict[str, Any]:
    """What the judge reads of a tool: no names of parents, no proofs, no sampling."""
    return {
        "name": spec.name,
        "description": spec.description,
        "params": {
            name: param.model_dump(mode="json", exclude_defaults=True)
            for name, param in spec.params.items()
        },
        "does": [
            statement.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            for statement in spec.semantics
        ],
    }


def _standing(spec: ToolSpec, broken: Sequence[Mapping[str, str]]) -> Iterator[BrokenPromise]:
    """Those whose quote stands in the description, whatever the spaces and capitals."""
    whole = _plain(spec.description)
    found = (
        BrokenPromise(" ".join(entry["quote"].split()), " ".join(entry["missing"].split()))
        for entry in broken
        if len(entry["quote"].split()) >= _MIN_QUOTE and _plain(entry["quote"]) in whole
    )
    for promise in islice(found, MAX_BROKEN):
        yield promise._replace(missing=promise.missing[:_SHOWN_CHARS])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,;:'\"")


_NAME = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")


def hints_of(spec: ToolSpec) -> list[str]:
    """What the words of the description alone make doubtful: names in snake case that neither the
    parameters nor the program have."""
    program = [s.model_dump(mode="json", by_alias=True) for s in spec.semantics]
    known = set(_names_in(program)) | set(_names_in(list(spec.params))) | {spec.name}
    known |= set(_names_in([p.model_dump(mode="json") for p in spec.params.values()]))
    last = spec.semantics[-1]
    answer = last.value if isinstance(last, Return) else None
    known |= set(_names_in(list(answer) if isinstance(answer, dict) else []))
    named = dict.fromkeys(_NAME.findall(spec.description))
    return [
        f"description names {name}, which nothing in the tool does"
        for name in named
        if name not in known
    ]


def _names_in(value: Any) -> Iterator[str]:
    """Every name of a JSON value, members and words of texts alike."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield str(name)
            yield from _names_in(member)
    elif isinstance(value, list):
        for item in value:
            yield from _names_in(item)
    elif isinstance(value, str):
        yield from re.findall(r"[A-Za-z_][A-Za-z0-9_]*", value)
