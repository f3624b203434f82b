"""Can a reader tell tools that a model wrote from those of real servers?

    python -m benchmarks.believable draw --real LISTS --out sheet.md --key key.json [--number 100]
    python -m benchmarks.believable score --key key.json answers.txt [answers.txt ...]

`draw` mixes tools of the taxonomy's worlds with as many of the lists, all rendered alike, with a
number and nothing that says where they are from. A reader answers a line a tool, `12: believable`
or `12: not, the reason`; `score` counts both kinds. Repeated real tools are drawn once; what lists
lack, such as a description, stays missing.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ConfigError
from records.files import write_atomic
from records.seeds import rng_of
from synth.catalogue.writing.quality import of_files, of_lists
from synth.render.intervals import Interval, wilson
from tool_specs.coverage.believability import CountedTool
from tool_specs.domains.domain import BUILT_IN
from tool_specs.domains.taxonomy import taxonomy_files

WRITTEN, REAL = "written", "real"

INTRODUCTION = """# Tools of application servers

Each entry is one tool as its API documentation shows it. For every number answer one line,
`NUMBER: believable` or `NUMBER: not, REASON`: is this a tool that a maintainer would publish for
agents and that people would use?
"""

_ANSWER = re.compile(r"^\s*(\d+)\s*[:.)]\s*(believable|not)\b[\s,:;-]*(.*)$", re.IGNORECASE)


class KeyEntry(NamedTuple):
    """Where the tool of a number is from."""

    number: int
    kind: str
    place: str
    name: str


class ReadTool(NamedTuple):
    believable: bool
    reason: str


class ReadShare(NamedTuple):
    """What readers said of the tools of one kind."""

    kind: str
    answered: int
    believable: int
    interval: Interval
    """Of the share that is believable, with 95%."""
    missing: int
    """Answers that no reader gave."""


def drawn(
    written: Sequence[CountedTool], real: Sequence[CountedTool], *, number: int, seed: int
) -> list[tuple[str, CountedTool]]:
    """`number` of each with its kind, mixed by the seed alone. ConfigError for too few."""
    found: list[tuple[str, CountedTool]] = []
    for kind, tools in ((WRITTEN, written), (REAL, real)):
        distinct = list({shown(tool): tool for tool in tools}.values())
        if len(distinct) < number:
            raise ConfigError(f"--number {number}: there are {len(distinct)} {kind} tools")
        chosen = _rng(seed, kind).sample(distinct, number)
        found += [(kind, tool) for tool in chosen]
    _rng(seed, "order").shuffle(found)
    return found


def sheet_of(tools: Sequence[CountedTool]) -> str:
    """What a reader gets, numbered from 1."""
    entries = [f"## {number}\n\n{shown(tool)}" for number, tool in enumerate(tools, 1)]
    return "\n\n".join([INTRODUCTION.rstrip(), *entries]) + "\n"


def shown(tool: CountedTool) -> str:
    """Name, description and parameters of a tool as documentation has them."""
    description = " ".join(tool.description.split())
    lines = list(_params(tool.input_schema)) or ["no parameters"]
    parts = [f"`{tool.name}`", description, "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def scored(key: Sequence[KeyEntry], readers: Sequence[Mapping[int, ReadTool]]) -> list[ReadShare]:
    """For each kind, over the answers of all readers."""
    found = []
    for kind in (WRITTEN, REAL):
        numbers = [entry.number for entry in key if entry.kind == kind]
        said = [reader[n].believable for reader in readers for n in numbers if n in reader]
        interval = wilson(sum(said), len(said))
        missing = len(numbers) * len(readers) - len(said)
        found.append(ReadShare(kind, len(said), sum(said), interval, missing))
    return found


def answers_of(text: str, key: Sequence[KeyEntry]) -> dict[int, ReadTool]:
    """By number. ConfigError for a line that is no answer, a number that is unknown or said twice;
    empty lines and headings do not count."""
    known = {entry.number for entry in key}
    found: dict[int, ReadTool] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _ANSWER.match(line)
        if match is None:
            raise ConfigError(f"{line!r} is no answer: NUMBER: believable, or NUMBER: not, REASON")
        number = int(match[1])
        if number not in known or number in found:
            fault = "is answered twice" if number in found else "is no number of the sheet"
            raise ConfigError(f"{line!r}: {number} {fault}")
        found[number] = ReadTool(match[2].lower() == "believable", match[3].strip())
    return found


def report(key: Sequence[KeyEntry], readers: Sequence[Mapping[int, ReadTool]]) -> str:
    lines = []
    for share in scored(key, readers):
        low, high = share.interval
        part = f"{share.believable / share.answered:.1%}" if share.answered else "-"
        lines.append(
            f"{share.kind:<8} {share.believable} of {share.answered} believable ({part}, 95% "
            f"interval {low:.1%} to {high:.1%}), {share.missing} unanswered"
        )
    refused = [
        (entry, reader[entry.number].reason)
        for reader in readers
        for entry in key
        if entry.number in reader and not reader[entry.number].believable
    ]
    for entry, reason in sorted(refused, key=lambda one: (one[0].kind, one[0].number)):
        lines.append(f"{entry.number} {entry.kind} {entry.place} {entry.name}: {reason or '-'}")
    return "\n".join(lines)


def _rng(seed: int, use: str) -> Random:
    return rng_of(digest("believable", seed), use)


def _params(schema: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A line a parameter, the members of objects under it."""
    properties = schema.get("properties")
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    for name, spec in (properties if isinstance(properties, dict) else {}).items():
        own = spec if isinstance(spec, dict) else {}
        notes = [_type(own), "required" if name in needed else "optional"]
        if isinstance(own.get("enum"), list):
            values = [json.dumps(v, ensure_ascii=False) for v in own["enum"] if v is not None]
            notes.append(f"one of {', '.join(values)}")
        if own.get("default") is not None:
            notes.append(f"default {json.dumps(own['default'], ensure_ascii=False)}")
        words = " ".join(str(own.get("description") or "").split())
        yield f"{indent}- `{name}` ({', '.join(notes)})" + (f": {words}" if words else "")
        items = own.get("items")
        for inner in (own, items if isinstance(items, dict) else {}):
            yield from _params(inner, f"{indent}  ")


def _type(spec: Mapping[str, Any]) -> str:
    """A type that may be null besides is that type: `optional` says it."""
    return " or ".join(dict.fromkeys(_kinds(spec))) or "any"


def _kinds(spec: Mapping[str, Any]) -> list[str]:
    own = spec.get("type")
    branches = spec.get("anyOf") or spec.get("oneOf")
    if own is None and isinstance(branches, list):
        return [kind for branch in branches if isinstance(branch, dict) for kind in _kinds(branch)]
    if own is None:
        return ["string"] if isinstance(spec.get("enum"), list) else []
    items = spec.get("items")
    return [
        f"array of {_type(items)}" if kind == "array" and isinstance(items, dict) else str(kind)
        for kind in (own if isinstance(own, list) else [own])
        if kind != "null"
    ]


def _worlds() -> list[str]:
    """Names of the taxonomy's domains whose tools a model wrote."""
    return [name for name, path in taxonomy_files().items() if path.parent != BUILT_IN]


def _draw(args: argparse.Namespace) -> str:
    mixed = drawn(
        of_files(args.domains or _worlds()), of_lists(args.real), number=args.number, seed=args.seed
    )
    key = [KeyEntry(n, kind, tool.place, tool.name) for n, (kind, tool) in enumerate(mixed, 1)]
    write_atomic(args.out, sheet_of([tool for _, tool in mixed]).encode())
    lines = {"seed": args.seed, "tools": [entry._asdict() for entry in key]}
    write_atomic(args.key, (json.dumps(lines, indent=1, ensure_ascii=False) + "\n").encode())
    return f"{len(mixed)} tools in {args.out}, what they are in {args.key}"


def _score(args: argparse.Namespace) -> str:
    key = [KeyEntry(**entry) for entry in json.loads(args.key.read_text())["tools"]]
    return report(key, [answers_of(path.read_text(), key) for path in args.answers])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parts = parser.add_subparsers(required=True)
    draw = parts.add_parser("draw", help="write a sheet for readers, and its key")
    draw.add_argument("--real", type=Path, required=True, help="a file or folder of tool lists")
    draw.add_argument("--domains", nargs="+", help="worlds or files to draw from; else all")
    draw.add_argument("--number", type=int, default=100, help="tools of each kind")
    draw.add_argument("--seed", type=int, default=0)
    draw.add_argument("--out", type=Path, required=True, help="the sheet, Markdown")
    draw.add_argument("--key", type=Path, required=True, help="where each tool is from, JSON")
    draw.set_defaults(act=_draw)
    score = parts.add_parser("score", help="count what readers said")
    score.add_argument("--key", type=Path, required=True)
    score.add_argument("answers", type=Path, nargs="+", help="a file a reader")
    score.set_defaults(act=_score)
    args = parser.parse_args(argv)
    try:
        print(args.act(args))
    except ConfigError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
