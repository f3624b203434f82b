"""The committed tools of each domain, as a round of evolution finds them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from records.store.dataset import Dataset
from records.tables.schemas import Row
from tool_specs.coverage.believability import CountedTool, words_of_domain
from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.domain import Domain
from tool_specs.language.domain_file import ToolSpec

_TOOL = ["tool_id", "name", "description", "domain_id", "params", "semantics_json", "evolve_op"]
_TOOL += ["generation", "parent_id", "source", "drop_reason", "input_schema"]
_PROPOSAL = ["item_id", "number", "batch", "tool_id", "semantics_key", "skeleton"]


class KnownTool(NamedTuple):
    row: Row
    batch: int
    """That made it; -1 for tools that came with the domain or from elsewhere."""
    item_id: str | None
    semantics_key: str | None
    """None where it was never computed: the tool was not evolved."""
    skeleton: str | None

    @property
    def tool_id(self) -> str:
        return self.row["tool_id"]

    @property
    def name(self) -> str:
        return self.row["name"]

    @property
    def semantics(self) -> list[dict[str, Any]]:
        return self.row["semantics_json"]

    def spec(self) -> ToolSpec:
        return ToolSpec.model_validate(
            {
                "name": self.row["name"],
                "description": self.row["description"],
                "params": self.row["params"],
                "semantics": self.semantics,
            }
        )


@dataclass(frozen=True, slots=True)
class CatalogueSnapshot:
    tools: Mapping[str, list[KnownTool]]
    """By domain, in order of their ids: those of the run's domains with what came with them, and
    those of other domains of the dataset."""
    masked: Mapping[str, frozenset[str]]
    """By domain, its words, which are no part of an idea."""

    @classmethod
    def of(cls, dataset: Dataset, domains: Mapping[str, Domain]) -> "CatalogueSnapshot":
        made = {
            row["tool_id"]: row
            for row in dataset.rows("proposals", _PROPOSAL)
            if row["tool_id"] is not None
        }
        tools: dict[str, list[KnownTool]] = {place: [] for place in domains}
        committed: set[str] = set()
        for row in dataset.rows("tools", _TOOL):
            committed.add(row["tool_id"])
            if row["source"] != "synthetic" or row["drop_reason"] or row["params"] is None:
                continue
            by = made.get(row["tool_id"])
            known = (
                KnownTool(row, -1, None, None, None)
                if by is None
                else KnownTool(row, by["batch"], by["item_id"], by["semantics_key"], by["skeleton"])
            )
            tools.setdefault(row["domain_id"], []).append(known)
        for place, domain in domains.items():  # what came with it and is committed with a batch
            came = [row for row in tool_rows(domain) if row["tool_id"] not in committed]
            tools[place] += [KnownTool(row, -1, None, None, None) for row in came]
            tools[place].sort(key=lambda tool: tool.tool_id)
        names = {
            row["domain_id"]: [row["name"], *row["entities"]]
            for row in dataset.rows("domains", ["domain_id", "name", "entities"])
        }
        names |= {place: [own.name, *own.entities] for place, own in domains.items()}
        return cls(tools, {place: words_of_domain(own) for place, own in names.items()})

    @property
    def num_domains(self) -> int:
        return len(self.tools)

    def evolved(self, domain_id: str) -> int:
        """Tools of the domain that evolution made."""
        return sum(tool.item_id is not None for tool in self.tools[domain_id])

    def without(self, items: Collection[str]) -> "CatalogueSnapshot":
        """Without the tools that these items made."""
        left = {
            place: [tool for tool in tools if tool.item_id not in items]
            for place, tools in self.tools.items()
        }
        return CatalogueSnapshot(left, self.masked)

    def counted(self) -> Iterator[tuple[str | None, CountedTool]]:
        """Every tool as far as its looks go, with the item that made it."""
        for place, tools in self.tools.items():
            masked = self.masked.get(place, frozenset())
            for tool in tools:
                row = tool.row
                looks = CountedTool(
                    place, row["name"], row["description"], row["input_schema"], masked
                )
                yield tool.item_id, looks
