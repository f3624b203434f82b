"""Descriptions held against what tools do: by a judge, where a real model plays it, and by words.

The judge refuses a tool where it quotes words of the description that promise what the program does
not do, or a part of the program that the description hides or that has the wrong words, and the
quote stands there. Words alone, such as a result that the description names and the
answer lacks, are a hint: they are kept with the tool and never refuse it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from records.errors import ItemError
from synth.prompts.templates import render
from tool_specs.language.domain_file import DomainFile, ToolSpec
from tool_specs.language.statements import Return

if TYPE_CHECKING:  # processes that examine tools import this module, and ask no model
    from synth.llm.client import LLM

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
                                "kind": {"enum": ["promise", "hidden", "misnamed"]},
                                "quote": {"type": "string"},
                                "missing": {"type": "string"},
                            },
                            "required": ["kind", "quote", "missing"],
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

REASONS = {"promise": "promises_more", "hidden": "hides_effect", "misnamed": "misleads"}
"""Kind of a broken promise -> why the tool is refused."""

_MIN_QUOTE = 2
"""Words of a quote of the description that counts: a single one promises nothing."""

_SHOWN_CHARS = 300
_SHOWN_ITEMS, _SHOWN_CHANGES = 3, 6
"""Of each list, and of the changed rows, of an example."""


class BrokenPromise(NamedTuple):
    kind: str
    """A key of `REASONS`."""
    quote: str
    """Of the description for a promise, else of the program."""
    missing: str

    @property
    def words(self) -> str:
        """For the author of the tool."""
        said = {
            "promise": f"description: {self.quote!r} is promised and not done",
            "hidden": f"semantics: {self.quote!r} is done, and the description hides it",
            "misnamed": f"semantics: {self.quote!r} says what is not so",
        }
        return f"{said[self.kind]}: {self.missing}"


class AcceptedTool(NamedTuple):
    """What the judge is shown of a tool that validation accepts."""

    spec: ToolSpec
    proof: Mapping[str, Any]
    """As in the table `tools`; its `example` and `hints` are shown."""


class JudgedDescription(NamedTuple):
    answered: bool
    broken: tuple[BrokenPromise, ...]


async def judged(
    llm: "LLM", item: str, step: str, tools: Sequence[AcceptedTool], file: DomainFile
) -> dict[str, JudgedDescription]:
    """By name, in one request. Without an answer of use, no tool is refused for it."""
    messages = render(PROMPT, tools=[_shown(tool, file) for tool in tools]).messages
    try:
        answer = await llm.structured(
            "judge", messages, item=item, step=step, name="promises", schema=PROMISES
        )
    except ItemError:
        return {tool.spec.name: JudgedDescription(False, ()) for tool in tools}
    said = {entry["name"]: entry["broken"] for entry in answer["tools"]}
    return {
        spec.name: JudgedDescription(
            spec.name in said, tuple(_standing(spec, said.get(spec.name, ())))
        )
        for spec, _ in tools
    }


def _shown(tool: AcceptedTool, file: DomainFile) -> dict[str, Any]:
    """What the judge reads of a tool: no names of parents, no counts, no sampling."""
    spec = tool.spec
    does = _program(spec)
    example = tool.proof.get("example")
    return {
        "name": spec.name,
        "description": spec.description,
        "params": {
            name: param.model_dump(mode="json", exclude_defaults=True)
            for name, param in spec.params.items()
        },
        "does": does,
        "fields": _fields(file, set(_names_in(does))),
        "example": None if example is None else _example(example),
        "doubts": list(tool.proof.get("hints", ())),
    }


def _program(spec: ToolSpec) -> list[dict[str, Any]]:
    return [
        statement.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for statement in spec.semantics
    ]


def _fields(file: DomainFile, named: Set[str]) -> dict[str, str]:
    """Units, and statuses in their order, of the fields that the program names."""
    found: dict[str, str] = {}
    for entity, own in file.entities.items():
        for name, field in own.fields.items():
            if name not in named or not named & {entity, *_refs_to(file, entity)}:
                continue
            if field.unit is not None:
                found[f"{entity}.{name}"] = field.unit
            elif name == own.lifecycle_field:
                found[f"{entity}.{name}"] = " | ".join(field.values)
    return found


def _refs_to(file: DomainFile, entity: str) -> Iterator[str]:
    """Names by which rows of the entity are reached from others, such as `ticket.showing`."""
    for own in file.entities.values():
        for name, field in own.fields.items():
            if field.to == entity:
                yield name.removesuffix("_id")


def _example(example: Mapping[str, Any]) -> dict[str, Any]:
    """One call that succeeded: arguments, answer, and what changed; lists cut short."""
    changes = [
        {name: change[name] for name in ("op", "entity", "id", "before", "after")}
        for change in example["diff"][:_SHOWN_CHANGES]
    ]
    return {
        "arguments": example["arguments"],
        "answer": _cut(example["observation"]),
        "changes": changes,
    }


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in value.items()}
    return [_cut(item) for item in value[:_SHOWN_ITEMS]] if isinstance(value, list) else value


def _standing(spec: ToolSpec, broken: Sequence[Mapping[str, str]]) -> Iterator[BrokenPromise]:
    """Those whose quote stands where its kind is about, whatever the spaces and capitals: in the
    description, or as a whole name or expression of the program."""
    whole, parts = _plain(spec.description), set(map(_plain, _parts(_program(spec))))
    found = (
        BrokenPromise(
            entry["kind"], " ".join(entry["quote"].split()), " ".join(entry["missing"].split())
        )
        for entry in broken
        if (
            len(entry["quote"].split()) >= _MIN_QUOTE and _plain(entry["quote"]) in whole
            if entry["kind"] == "promise"
            else _plain(entry["quote"]) in parts
        )
    )
    for promise in islice(found, MAX_BROKEN):
        yield promise._replace(missing=promise.missing[:_SHOWN_CHARS])


def _parts(value: Any) -> Iterator[str]:
    """Every name and every text of a JSON value, whole."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield str(name)
            yield from _parts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, str):
        yield value


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
