"""Imported tools that nothing here can run, played by a model in an environment of their own.

The generator writes that environment once for each source: entities with typed fields, seed rows
and invariants, checked like any domain file. It becomes a row of `domains`; the source's tools
become rows of `tools` that belong to it, each with the imported tool as its parent. From there on
they are tools of a domain that no program defines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from records.digest import canonical_json, digest
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.engine.stages import ItemResult
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render, version_of
from tool_specs.domains.catalogue import domain_id, domain_of_rows, domain_row
from tool_specs.domains.domain import Domain
from tool_specs.importing.tool_files import CATEGORY
from tool_specs.language.domain_file import CATEGORIES

PROMPT = "world_sketch"

SKETCH_VERSION = 1
"""Raised when the same source and answer would give other rows."""

PLAYED = "played"
"""What `evolve_op` says of these tools."""

ALL = "all"

MAX_TOOLS = 40
"""Of a source that the generator is shown, by id; the environment serves the others as it may."""

MAX_ENTITIES, MAX_ROWS = 8, 30
"""Of an environment, and of one entity's seed: a model that plays it has to see it."""

SHOWN_CHARS = 300
"""Of a description."""

SHOWN_PARAMS = 16

_object = {"type": "object"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 600},
        "now": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$"},
        "entities": _object | {"minProperties": 1, "maxProperties": MAX_ENTITIES},
        "seed": _object
        | {"additionalProperties": {"type": "array", "maxItems": MAX_ROWS, "items": _object}},
        "rules": {"type": "array", "maxItems": 12, "items": _object},
    },
    "required": ["title", "description", "now", "entities", "seed", "rules"],
    "additionalProperties": False,
}
"""Schema of an environment as the generator writes it: a domain file without tools and policy."""


class PlayedSource(NamedTuple):
    server: str
    tools: tuple[Row, ...]
    """As imported, sorted by id."""

    def item_id(self, generator: RoleConfig) -> str:
        ids = [tool["tool_id"] for tool in self.tools]
        written_by = [version_of(PROMPT), generator.identity()]
        return digest("played", SKETCH_VERSION, written_by, self.server, ids)

    def domain_name(self, item_id: str) -> str:
        words = re.sub(r"[^a-z0-9]+", "_", self.server.lower()).strip("_")[:40]
        return f"played_{words}_{item_id[:8]}".replace("__", "_")


def sources_to_play(
    dataset: Dataset, names: Sequence[str], *, run_id: str, served: Sequence[str] = ()
) -> list[PlayedSource]:
    """The imported sources that a run is told to play, with the tools they had when it began.

    `served` are servers of the run's own. ConfigError for a name that the dataset does not hold.
    """
    if not names:
        return []
    began = next((c.number for c in dataset.commits() if c.run_id == run_id), None)
    there = dataset.ids("tools", before=began)
    found: dict[str, list[Row]] = {}
    for row in dataset.rows("tools"):
        imported = row["source"] == "mcp" and row["evolve_op"] == "imported" and row["server"]
        if imported and row["tool_id"] in there and not row["drop_reason"]:
            found.setdefault(row["server"], []).append(row)
    for name in names:
        if name != ALL and name not in found:
            known = ", ".join(sorted(found)[:10]) or "none"
            raise ConfigError(
                f"simulate.sources names {name!r}, of which the dataset {dataset.root} holds no "
                f"usable tool; sources there: {known}; `synth tools import` brings them"
            )
    wanted = found.keys() - set(served) if ALL in names else set(names)
    return [PlayedSource(name, tuple(found[name])) for name in sorted(wanted)]


async def write_environment(
    source: PlayedSource, llm: LLM, *, item_id: str, generator: RoleConfig
) -> ItemResult:
    """Rows of `domains` and `tools`. ItemError when the generator writes no sound environment."""
    made: list[Domain] = []

    def check(value: dict[str, Any]) -> None:
        try:
            made.append(domain_of(source, value, item_id=item_id))
        except ConfigError as error:
            raise InvalidOutputError(str(error)) from None

    shown = {"server": source.server, "num_tools": len(source.tools)}
    prompt = render(PROMPT, source=shown, tools=[_shown(t) for t in source.tools[:MAX_TOOLS]])
    await llm.structured(
        "generator",
        prompt.messages,
        item=item_id,
        step="world",
        name=PROMPT,
        schema=SCHEMA,
        check=check,
    )
    domain = made[-1]
    place = domain_id(domain)
    tools = [_played(tool, place) for tool in source.tools]
    return ItemResult({"domains": [domain_row(domain)], "tools": tools})


def domain_of(source: PlayedSource, environment: Mapping[str, Any], *, item_id: str) -> Domain:
    """The environment as a domain. ConfigError lists every fault."""
    name, category = source.domain_name(item_id), source.tools[0]["category"]
    data = {
        **environment,
        "domain": name,
        # imported tools have categories of their own, which stay with the tools
        "category": category if category in CATEGORIES else CATEGORY,
        "split": "train",
    }
    domain = Domain.of(data, origin="the world")
    if empty := [entity for entity in domain.entities if not domain.seed[entity]]:
        raise ConfigError(f"the world: seed has no rows of {', '.join(empty)}")
    return domain


def _shown(tool: Row) -> dict[str, Any]:
    members = tool["input_schema"].get("properties", {})
    return {
        "name": tool["name"],
        "description": tool["description"][:SHOWN_CHARS],
        "read_only": bool((tool["annotations"] or {}).get("readOnlyHint")),
        "input_schema": {
            "properties": {
                param: _shown_param(schema)
                for param, schema in list(members.items())[:SHOWN_PARAMS]
            },
            "required": tool["input_schema"].get("required", []),
        },
    }


def _shown_param(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return {}
    kept = {name: schema[name] for name in ("type", "enum", "format") if name in schema}
    words = schema.get("description")
    if isinstance(words, str):
        kept["description"] = words[:SHOWN_CHARS]
    return kept if len(canonical_json(kept)) < 2 * SHOWN_CHARS else {"type": kept.get("type")}


def _played(tool: Row, place: str) -> Row:
    """The imported tool as one of the environment."""
    return tool | {
        "tool_id": digest("tool", PLAYED, place, tool["tool_id"]),
        "domain_id": place,
        "server": None,
        "evolve_op": PLAYED,
        "generation": 1,
        "parent_id": tool["tool_id"],
    }


class PlayedDomains(Mapping[str, Domain]):
    """By domain_id; built when they are asked for."""

    def __init__(self, rows: Mapping[str, Row], tools: Mapping[str, Row]) -> None:
        self._rows = rows
        self.tools = tools
        """By tool_id."""

    def __getitem__(self, place: str) -> Domain:
        return _built(_Row(self._rows[place]))

    def __contains__(self, place: object) -> bool:  # the default would build the domain
        return place in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class _Row:
    """A domain's row, equal to another of its id."""

    def __init__(self, row: Row) -> None:
        self.row = row

    def __hash__(self) -> int:
        return hash(self.row["domain_id"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Row) and other.row["domain_id"] == self.row["domain_id"]


@lru_cache(maxsize=256)
def _built(row: _Row) -> Domain:
    return domain_of_rows(row.row)


def played_domains(
    dataset: Dataset, sources: Sequence[PlayedSource], generator: RoleConfig
) -> PlayedDomains:
    """The committed domains of the sources, as this run's generator writes them."""
    if not sources:
        return PlayedDomains({}, {})
    names = {source.domain_name(source.item_id(generator)) for source in sources}
    rows = {r["domain_id"]: r for r in dataset.rows("domains") if r["name"] in names}
    tools = {
        row["tool_id"]: row
        for row in dataset.rows("tools")
        if row["domain_id"] in rows and row["evolve_op"] == PLAYED
    }
    return PlayedDomains(rows, tools)
