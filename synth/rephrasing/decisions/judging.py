"""The stage `rephrasing-verdicts`: the judge on stored parts that it has not seen yet.

Parts that were judged while they were written have their verdict already. What is left are parts
that other thresholds flag, that another judge is to look at, or that were written without one.
"""

from collections.abc import Iterator

from records.digest import digest
from records.reading.lookup import RowBy
from records.store.dataset import Dataset
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.decisions.measuring import MEASURED_BY, WHOLE, texts_of
from synth.rephrasing.decisions.measuring import TABLE as MEASUREMENTS
from synth.rephrasing.fidelity.checks import flags_of
from synth.rephrasing.fidelity.part_judge import (
    VERDICTS,
    PartToJudge,
    judge_id_of,
    judged_parts,
    verdict_row,
)
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import form_of
from synth.rephrasing.writing.part_checks import text_before

AT_ONCE = 4
"""Parts a request, as many as are written at once."""


class JudgingStage:
    name = "rephrasing-verdicts"

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        with run.config.prompts_in_use():
            self.judge_id = judge_id_of(run.config.roles["judge"])
        self.rewrites = RowBy(run.dataset, "rephrasings", "rephrasing_id")

    def plan(self) -> list[Item]:
        """One item a rewrite with parts that the settings have judged and this judge has not; none
        where they ask no judge."""
        if not self.run.config.asks_judge:
            return []
        known = self.run.dataset.ids(VERDICTS)
        wanted: dict[str, list[int]] = {}
        for rephrasing_id, part, flags in flagged_parts(self.run.dataset, self.run.config):
            asked = flags or self.run.config.judge == "all"
            if asked and (self.judge_id, rephrasing_id, part) not in known:
                wanted.setdefault(rephrasing_id, []).append(part)
        return [
            Item(digest(self.name, self.judge_id, i, parts), {"id": i, "parts": parts})
            for i, parts in wanted.items()
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rewrite, numbers = self.rewrites[item.data["id"]], item.data["parts"]
        rows = []
        for at in range(0, len(numbers), AT_ONCE):
            asked = numbers[at : at + AT_ONCE]
            begins = rewrite["chunks"][asked[0]]["source"][0]
            verdicts = await judged_parts(
                shard.llm,
                [PartToJudge(number + 1, *texts_of(rewrite, number)) for number in asked],
                before=text_before(rewrite["source_text"], begins),
                form=form_of(rewrite["kind"], rewrite["style"]),
                item=item.item_id,
                step=f"judge-{asked[0]:03d}",
            )
            rows += [
                verdict_row(self.judge_id, rewrite, number, verdict)
                for number, verdict in zip(asked, verdicts, strict=True)
            ]
        return ItemResult({VERDICTS: rows})


def flagged_parts(dataset: Dataset, config: RephraseConfig) -> Iterator[tuple[str, int, list[str]]]:
    """Rewrite, part and what the thresholds of the settings flag in it, for every part that was
    measured by today's checks."""
    for rows in dataset.in_commits(MEASUREMENTS):
        for row in rows:
            if row["part"] != WHOLE and row["measured_by"] == MEASURED_BY:
                yield row["rephrasing_id"], row["part"], flags_of(row, config.fidelity)
