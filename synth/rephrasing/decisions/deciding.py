"""The stage `rephrasing-decisions`: what is kept of all rewrites of the dataset, at a barrier.

A decision applies thresholds, verdicts and gates to what is measured, and drops what repeats
another rewrite; of those the first by id stays. It costs no request and rewrites no row, so it can
be made again with other settings; the newest one counts (the views `rephrasings` and `pretrain`).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from records.tables.splits import own_split
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.matching.similarity import near_repeats, sketch
from synth.rephrasing.calibration.report import status_in
from synth.rephrasing.decisions.gating import TABLE as GATES_TABLE
from synth.rephrasing.decisions.gating import gates_in
from synth.rephrasing.decisions.measuring import TABLE as MEASUREMENTS
from synth.rephrasing.decisions.measuring import WHOLE, measured_by
from synth.rephrasing.fidelity.checks import flags_of, verdict
from synth.rephrasing.fidelity.part_judge import VERDICTS, judge_id_of
from synth.rephrasing.writing.config import RephraseConfig

STAGE_VERSION = 2
"""Raised when the same measurements and verdicts would be decided about otherwise."""

TABLE = "rephrasing_decisions"

REPEATS = "near_duplicate"

NOT_GATED = "not_gated"
"""The reason of a rewrite that some gate of the settings could not look through."""

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
        if not any(dataset.in_commits("rephrasings", ("rephrasing_id",))):
            return []
        judge_id = self._judge_that_counts()
        decided = digest(
            self.name,
            STAGE_VERSION,
            *(config.fidelity.identity(), config.selection.near, config.heldout_share),
            [[name, gate.version] for name, gate in self.gates.items()],
            measured_by(config),
            judge_id,
            _sum_of(self._keys(judge_id)),
        )
        return [Item(self._newest_id(decided))]

    def _keys(self, judge_id: str | None) -> Iterator[list[str | int]]:
        """Of all rows that the decision rests on, in the order of their commits."""
        version = measured_by(self.run.config)
        for row in self._rows("rephrasings", "rephrasing_id"):
            yield [row["rephrasing_id"]]
        # what is measured of a rewrite is committed together, so its whole stands for its parts
        for row in self._rows(MEASUREMENTS, "rephrasing_id", "part", "measured_by"):
            if row["part"] == WHOLE and row["measured_by"] == version:
                yield [MEASUREMENTS, row["rephrasing_id"]]
        for row in self._rows(GATES_TABLE, "rephrasing_id", "gate", "version"):
            if self._is_in_use(row):
                yield [GATES_TABLE, row["rephrasing_id"], row["gate"]]
        for row in self._rows(VERDICTS, "judge_id", "rephrasing_id", "part"):
            if row["judge_id"] == judge_id:
                yield [VERDICTS, row["rephrasing_id"], row["part"]]

    def _rows(self, table: str, *columns: str) -> Iterator[Row]:
        return chain.from_iterable(self.run.dataset.in_commits(table, columns))

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
        judge_id = self._judge_that_counts()
        standing = self._standing(judge_id)
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

    def _standing(self, judge_id: str | None) -> dict[str, Standing]:
        """By rewrite; one that today's checks have not measured has none."""
        config, verdicts, gated = self.run.config, self._verdicts(judge_id), self._gated()
        version = measured_by(config)
        found: defaultdict[str, Standing] = defaultdict(Standing)
        for row in chain.from_iterable(self.run.dataset.in_commits(MEASUREMENTS)):
            if row["measured_by"] != version:
                continue
            one = found[row["rephrasing_id"]]
            if row["part"] == WHOLE:
                gate = gated.found.get(row["rephrasing_id"])
                if gated.num_looked[row["rephrasing_id"]] < len(self.gates):
                    gate = gate or NOT_GATED
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

    def _gated(self) -> "_Gated":
        order = list(self.gates)
        found: dict[str, str] = {}
        num_looked: Counter[str] = Counter()
        for row in self._rows(GATES_TABLE, "rephrasing_id", "gate", "version", "found"):
            gate, i = row["gate"], row["rephrasing_id"]
            if not self._is_in_use(row):
                continue
            num_looked[i] += 1
            is_first = i not in found or order.index(gate) < order.index(found[i])
            if row["found"] is not None and is_first:
                found[i] = gate
        return _Gated(found, num_looked)

    def _is_in_use(self, gated: Row) -> bool:
        """Whether the settings have the gate of a row of `rephrasing_gates`, as it is there."""
        known = self.gates.get(gated["gate"])
        return known is not None and known.version == gated["version"]

    def _judge_that_counts(self) -> str | None:
        """The judge of the settings whose word decides: None where they ask none, and where its
        trial finds it below its minimum quality."""
        run = self.run
        if run.config.asks_judge and status_in(run.dataset, run.config) != "below_minimum":
            return self.judge_id
        return None

    def _verdicts(self, judge_id: str | None) -> dict[tuple[str, int], str]:
        """Of this judge, by rewrite and part."""
        return {
            (row["rephrasing_id"], row["part"]): row["verdict"]
            for row in self._rows(VERDICTS, "judge_id", "rephrasing_id", "part", "verdict")
            if row["judge_id"] == judge_id
        }


class _Gated(NamedTuple):
    found: dict[str, str]
    """Rewrite -> the first gate of the settings that finds something in it."""
    num_looked: Counter[str]
    """Rewrite -> how many gates of the settings have looked through it."""


def _sum_of(keys: Iterable[list[str | int]]) -> str:
    """A digest of different keys in whatever order they come, so that none need be held."""
    return f"{sum(int(digest(key, length=32), 16) for key in keys) % 16**32:032x}"
