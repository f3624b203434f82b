"""The figures of believability: of tools of a dataset or of domain files, and of real lists."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.catalogue.writing.config import WriteConfig, files_of
from tool_specs.coverage.believability import (
    REAL,
    CountedTool,
    figures,
    words_of_domain,
    words_to_mask,
)
from tool_specs.domains.domain import load_domain
from tool_specs.importing.tool_files import read_listings


class ComparedFigure(NamedTuple):
    name: str
    synthetic: float | None
    real: float | None
    """None where nobody has counted it."""


def compared(
    own: Sequence[CountedTool], real: Sequence[CountedTool] | None
) -> list[ComparedFigure]:
    """Every figure of both. ConfigError where there is no tool to count."""
    if not own or (real is not None and not real):
        raise ConfigError("there is no tool to count")
    mine, theirs = figures(own), REAL if real is None else figures(real)
    return [ComparedFigure(name, mine.get(name), theirs.get(name)) for name in mine | theirs]


def of_files(domains: Sequence[str]) -> list[CountedTool]:
    """The tools that these domains' files have."""
    found: list[CountedTool] = []
    for path in files_of(WriteConfig(domains=tuple(domains))).values():
        domain = load_domain(path)
        masked = words_of_domain([domain.name, *domain.entities])
        found += [
            CountedTool(domain.name, t.name, t.description, t.input_schema(), masked)
            for t in domain.tools
        ]
    return found


def of_dataset(dataset: Dataset) -> list[CountedTool]:
    """The usable synthetic tools."""
    domains = {row["domain_id"]: row for row in dataset.rows("domains", _DOMAIN)}
    masked = {
        place: words_of_domain([row["name"], *row["entities"]]) for place, row in domains.items()
    }
    return [
        CountedTool(
            row["domain_id"],
            row["name"],
            row["description"],
            row["input_schema"],
            masked.get(row["domain_id"], frozenset()),
        )
        for row in dataset.rows("tools", _TOOL)
        if row["source"] == "synthetic" and not row["drop_reason"]
    ]


def of_lists(path: Path) -> list[CountedTool]:
    """The tools of a file of lists, or of all files of a folder. ConfigError for what is none."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    found: list[CountedTool] = []
    for file in files:
        for listing in read_listings(file):
            tools = [t for t in listing.tools if isinstance(t, dict) and t.get("name")]
            masked = words_to_mask(listing.source.server, [str(t["name"]) for t in tools])
            found += [
                CountedTool(
                    listing.source.server,
                    str(tool["name"]),
                    str(tool.get("description") or ""),
                    schema if isinstance(schema := tool.get("inputSchema"), dict) else {},
                    masked,
                )
                for tool in tools
            ]
    return found


_DOMAIN = ["domain_id", "name", "entities"]
_TOOL = ["domain_id", "name", "description", "input_schema", "source", "drop_reason"]
