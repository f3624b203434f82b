"""The committed tools of each domain, as a round of evolution finds them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from records.store.dataset import Dataset
from records.tables.schemas import Row
from tool_specs.language.domain_file import ToolSpec

_TOOL = ["tool_id", "name", "description", "domain_id", "params", "semantics_json", "evolve_op"]
_TOOL += ["generation", "parent_id", "source", "drop_reason"]
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
    """By domain, in order of their ids."""

    @classmethod
    def of(cls, dataset: Dataset, domain_ids: Collection[str]) -> "CatalogueSnapshot":
        made = {
            row["tool_id"]: row
            for row in dataset.rows("proposals", _PROPOSAL)
            if row["tool_id"] is not None
        }
        tools: dict[str, list[KnownTool]] = {domain_id: [] for domain_id in domain_ids}
        for row in dataset.rows("tools", _TOOL):
            if row["domain_id"] not in tools or row["drop_reason"] or row["params"] is None:
                continue
            by = made.get(row["tool_id"])
            known = (
                KnownTool(row, -1, None, None, None)
                if by is None
                else KnownTool(row, by["batch"], by["item_id"], by["semantics_key"], by["skeleton"])
            )
            tools[row["domain_id"]].append(known)
        return cls(tools)

    def evolved(self, domain_id: str) -> int:
        """Tools of the domain that evolution made."""
        return sum(tool.item_id is not None for tool in self.tools[domain_id])

    def before(self, domain_id: str, later: Collection[str]) -> list[KnownTool]:
        """The domain's tools without those that the items `later` made: what a batch may see."""
        return [tool for tool in self.tools[domain_id] if tool.item_id not in later]
