"""The stage `rephrasing-calibration`: it tries the judge of rewrites on their parts."""

from itertools import chain
from typing import Any

from records.digest import digest
from records.reading.lookup import RowBy
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.judging.panel import judge_identity
from synth.rephrasing.calibration.planning import (
    STAGE,
    STAGE_VERSION,
    RewrittenPartId,
    TrialParts,
    parts_in,
    plan_trial,
)
from synth.rephrasing.calibration.trial import TABLE, TrialPart, try_judge
from synth.rephrasing.calibration.writing import WRITTEN_BY, writer_version
from synth.rephrasing.fidelity.part_judge import VERDICTS, prompt_version
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.part_checks import UNFAITHFUL


def trial_id_of(config: RephraseConfig) -> str:
    """What results of a trial belong to: the judge with its settings and its prompt. Several runs
    add up where they have the same."""
    with config.prompts_in_use():
        return digest(STAGE, STAGE_VERSION, judge_identity(config.roles["judge"]), prompt_version())


def parts_of(dataset: Dataset) -> TrialParts:
    """Of all rewrites of a dataset. Where judges differ, unfaithful counts: such a part is none to
    change."""
    verdicts: dict[RewrittenPartId, str] = {}
    columns = ("rephrasing_id", "part", "verdict")
    for row in chain.from_iterable(dataset.in_commits(VERDICTS, columns)):
        part = RewrittenPartId(row["rephrasing_id"], row["part"])
        if verdicts.get(part) != UNFAITHFUL:
            verdicts[part] = row["verdict"]
    rewrites = dataset.in_commits("rephrasings", ("rephrasing_id", "chunks"))
    return parts_in(chain.from_iterable(rewrites), verdicts)


def was_asked(dataset: Dataset) -> bool:
    """Whether a judge was asked about any part of a rewrite; of a part that it gave back and that
    the source stands for there is no verdict."""
    if any(dataset.in_commits(VERDICTS, ("part",))):
        return True
    rewrites = chain.from_iterable(dataset.in_commits("rephrasings", ("chunks",)))
    return any(UNFAITHFUL in chunk.get("faults", ()) for row in rewrites for chunk in row["chunks"])


class RephrasingTrialStage:
    """Where the judge is not tried (`RephraseConfig.tries_judge`) it plans nothing."""

    name = STAGE
    needs_all = True

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        self.trial_id = trial_id_of(run.config)
        with run.config.prompts_in_use():
            self.writer = writer_version(run.config.roles[WRITTEN_BY])
        self.rewrites = RowBy(run.dataset, "rephrasings", "rephrasing_id")

    def plan(self) -> list[Item]:
        if not self.run.config.tries_judge:
            return []
        return plan_trial(
            parts_of(self.run.dataset),
            self._before(),
            trial_id=self.trial_id,
            writer=self.writer,
            config=self.run.config.calibration,
        )

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        given: list[Any] = item.data["parts"]
        return await try_judge(
            item,
            shard.llm,
            [TrialPart.of(self.rewrites[i], number) for i, number in given],
            place={"trial_id": self.trial_id, "writer_version": self.writer},
            judge=self.run.config.roles["judge"].model_of(item.item_id, "judge"),
        )

    def _before(self) -> list[Row]:
        """Rows of the trial that are there."""
        columns = ("trial_id", "perturbation", "outcome", "candidates", "writer_version")
        rows = chain.from_iterable(self.run.dataset.in_commits(TABLE, columns))
        return [row for row in rows if row["trial_id"] == self.trial_id]
