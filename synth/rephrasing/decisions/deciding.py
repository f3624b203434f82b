"""The stage `rephrasing-decisions`: what is kept of all rewrites of the dataset, at a barrier.

A decision applies thresholds, verdicts and gates to what is measured, and drops what repeats
another rewrite; of those the first by id stays. It costs no request and rewrites no row, so it can
be made again with other settings; the newest one counts (the views `rephrasings` and `pretrain`).
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from records.tables.splits import own_split
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.calibration.report import status_in
from synth.rephrasing.decisions.measuring import GATES_TABLE, WHOLE, gates_in, measured_by
from synth.rephrasing.decisions.measuring import TABLE as MEASUREMENTS
from synth.rephrasing.decisions.similarity import near_repeats, sketch
from synth.rephrasing.fidelity.checks import flags_of, verdict
from synth.rephrasing.fidelity.part_judge import VERDICTS, judge_id_of
from synth.rephrasing.writing.config import RephraseConfig

STAGE_VERSION = 1
"""Raised when the same measurements and verdicts would be decided about otherwise."""

TABLE = "rephrasing_decisions"

REPEATS = "near_duplicate"

KEEP_ROWS = 200
"""Rewrites held while pairs of them are compared."""


@dataclass
class Standing:
    """What speaks against one rewrite, from its measurements and verdicts."""

    drop_reason: str | None = None
    flags: set[str] = field(default_factory=set)
    """Hints in parts that no judge has cleared."""


class DecisionStage:
    name = "rephrasing-decisions"
    needs_all = True

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        self.gates = gates_in(run.config)
        with run.config.prompts_in_use():
            self.judge_id = (
                judge_id_of(run.config.roles["judge"]) if run.config.asks_judge else None
            )

    def plan(self) -> list[Item]:
        """One item, or none where nothing was rewritten."""
        config, dataset = self.run.config, self.run.dataset
        known = hashlib.sha256()
        for table in ("rephrasings", MEASUREMENTS, GATES_TABLE, VERDICTS):
            for key in sorted(map(str, dataset.ids(table))):
                known.update(key.encode())
        if not dataset.ids("rephrasings"):
            return []
        settings = [config.fidelity.identity(), config.selection.near, config.heldout_share]
        decided = digest(
            self.name,
            STAGE_VERSION,
            *settings,
            {name: gate.version for name, gate in self.gates.items()},
            measured_by(config),
            self.judge_id if self._judge_counts() else None,
            known.hexdigest(),
        )
        return [Item(self._newest_id(decided))]

    def _newest_id(self, decision_id: str) -> str:
        """A decision that was overruled since is made again, under an id of its own."""
        made = list(self.run.dataset.item_statuses(self.name))
        while decision_id in made[:-1]:
            overruled_by = made[made.index(decision_id) + 1]
            decision_id = digest("decision again", decision_id, overruled_by)
        return decision_id

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rows = await asyncio.to_thread(self._decided, item.item_id)
        reasons = Counter(row["drop_reason"] for row in rows if not row["kept"])
        return ItemResult({TABLE: rows}, noted=dict(sorted(reasons.items())))

    def _decided(self, decision_id: str) -> list[Row]:
        judge_id = self.judge_id if self._judge_counts() else None
        standing = self._standing()
        kept = sorted(i for i, one in standing.items() if one.drop_reason is None)
        number_of = {rephrasing_id: number for number, rephrasing_id in enumerate(kept)}
        sketches = [b""] * len(kept)
        splits: dict[str, str] = {}
        columns = ("rephrasing_id", "source_id", "text")
        for rows in self.run.dataset.in_commits("rephrasings", columns):
            for row in rows:
                splits[row["rephrasing_id"]] = own_split(
                    "document", row["source_id"], heldout_share=self.run.config.heldout_share
                )
                number = number_of.get(row["rephrasing_id"])
                if number is not None:
                    sketches[number] = sketch(row["text"])
        texts = RowBy(self.run.dataset, "rephrasings", "rephrasing_id", keep=KEEP_ROWS)
        near = self.run.config.selection.near
        found = near_repeats(sketches, lambda number: texts[kept[number]]["text"], near=near)
        repeats = {kept[number]: kept[first] for number, first in found.items()}
        return [
            {
                "decision_id": decision_id,
                "rephrasing_id": i,
                "measured_by": measured_by(self.run.config),
                "judge_id": judge_id,
                "kept": one.drop_reason is None and i not in repeats,
                "drop_reason": one.drop_reason or (REPEATS if i in repeats else None),
                "flags": sorted(one.flags),
                "repeats": repeats.get(i),
                "split": splits[i],
            }
            for i, one in sorted(standing.items())
        ]

    def _standing(self) -> dict[str, Standing]:
        """By rewrite; one that today's checks have not measured has none."""
        config, verdicts, gated = self.run.config, self._verdicts(), self._gated()
        version = measured_by(config)
        found: defaultdict[str, Standing] = defaultdict(Standing)
        for row in self._measurements():
            if row["measured_by"] != version:
                continue
            one = found[row["rephrasing_id"]]
            if row["part"] == WHOLE:
                gate = gated.get(row["rephrasing_id"])
                one.drop_reason = verdict(row, config.fidelity) or gate or one.drop_reason
                continue
            said = verdicts.get((row["rephrasing_id"], row["part"]))
            if "exact_fault" in config.fidelity.drop_for and row["exact"]:
                one.drop_reason = one.drop_reason or f"{row['exact'][0][0]}_changed"
            if said == "unfaithful" and "unfaithful" in config.fidelity.drop_for:
                one.drop_reason = one.drop_reason or said
            if said != "faithful":
                one.flags.update(flags_of(row, config.fidelity))
                one.flags.update(["exact_fault"] if row["exact"] else [])
                one.flags.update(["unfaithful"] if said else [])
        return found

    def _measurements(self) -> Iterator[Row]:
        for rows in self.run.dataset.in_commits(MEASUREMENTS):
            yield from rows

    def _gated(self) -> dict[str, str]:
        """Rewrite -> the first gate of the settings that finds something in it."""
        order = list(self.gates)
        found: dict[str, str] = {}
        for rows in self.run.dataset.in_commits(GATES_TABLE):
            for row in rows:
                gate, i = row["gate"], row["rephrasing_id"]
                known = self.gates.get(gate)
                if row["found"] is None or known is None or known.version != row["version"]:
                    continue
                if i not in found or order.index(gate) < order.index(found[i]):
                    found[i] = gate
        return found

    def _judge_counts(self) -> bool:
        """Whether the word of the settings' judge decides: not where they ask none, and not where
        its trial finds it below its minimum quality."""
        run = self.run
        return run.config.asks_judge and status_in(run.dataset, run.config) != "below_minimum"

    def _verdicts(self) -> dict[tuple[str, int], str]:
        """Of the judge of the settings, by rewrite and part; none where its word does not count."""
        if not self._judge_counts():
            return {}
        columns = ("judge_id", "rephrasing_id", "part", "verdict")
        return {
            (row["rephrasing_id"], row["part"]): row["verdict"]
            for rows in self.run.dataset.in_commits(VERDICTS, columns)
            for row in rows
            if row["judge_id"] == self.judge_id
        }
