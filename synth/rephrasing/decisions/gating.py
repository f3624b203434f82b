"""The stage `rephrasing-gates`: what each gate of a run finds in a stored rewrite.

A gate looks through a rewrite once a version, so a run with one more gate runs that gate alone.
"""

import asyncio
from typing import NamedTuple

from records.digest import digest
from records.reading.lookup import RowBy
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.sources.decontamination import IN_EVALUATION, decontaminator_of
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.gates import TextGate, gate_versions, gates_of

TABLE = "rephrasing_gates"


class RunGate(NamedTuple):
    version: str
    find: TextGate


def gates_in(config: RephraseConfig) -> dict[str, RunGate]:
    """What each rewrite of a run is looked through for, by the reason of the drop: its gates in
    their order, then the evaluations that nothing may be taken from."""
    versions = gate_versions(config.gates)
    gates = {name: RunGate(versions[name], find) for name, find in gates_of(config.gates)}
    if config.decontaminate:
        evaluations = decontaminator_of(config)
        gates[IN_EVALUATION] = RunGate(evaluations.version, evaluations.shared)
    return gates


class GatingStage:
    name = "rephrasing-gates"
    runs_in_workers = True

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        self.gates = gates_in(run.config)
        self.rewrites = RowBy(run.dataset, "rephrasings", "rephrasing_id")

    def plan(self) -> list[Item]:
        """For each rewrite of the dataset, whichever run wrote it, one item a gate."""
        return [
            Item(digest(self.name, name, gate.version, i), {"id": i, "gate": name})
            for i in self.rewrites
            for name, gate in self.gates.items()
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rewrite, name = self.rewrites[item.data["id"]], item.data["gate"]
        row = {
            "rephrasing_id": rewrite["rephrasing_id"],
            "gate": name,
            "version": self.gates[name].version,
            "found": await asyncio.to_thread(self.gates[name].find, rewrite["text"]),
            "split": rewrite["split"],
        }
        return ItemResult({TABLE: [row]})
