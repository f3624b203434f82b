"""The stage `rephrasing-verdicts`: the judge on stored parts that it has not seen yet.

Parts that were judged while they were written have their verdict already. What is left are parts
that other thresholds flag, that another judge is to look at, or that were written without one.
"""

from collections.abc import Iterator

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.decisions.measuring import TABLE as MEASUREMENTS
from synth.rephrasing.decisions.measuring import WHOLE, measured_by, texts_of
from synth.rephrasing.fidelity.checks import flags_of
from synth.rephrasing.fidelity.choice import is_drawn
from synth.rephrasing.fidelity.part_judge import (
    VERDICTS,
    PartToJudge,
    judge_id_of,
    judged_parts,
    verdict_row,
)
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import form_of
from synth.rephrasing.writing.part_checks import lot_of, text_before

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
        columns = ("judge_id", "rephrasing_id", "part")
        known = {
            (row["rephrasing_id"], row["part"])
            for rows in self.run.dataset.in_commits(VERDICTS, columns)
            for row in rows
            if row["judge_id"] == self.judge_id
        }
        wanted: dict[str, list[int]] = {}
        for rephrasing_id, part, measured in self._measured_parts():
            is_known = (rephrasing_id, part) in known
            if not is_known and self._is_asked_about(rephrasing_id, part, measured):
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

    def _is_asked_about(self, rephrasing_id: str, part: int, measured: Row) -> bool:
        config = self.run.config
        # of a document that a fault drops, nothing that the judge says would matter
        faulty = bool(measured["exact"]) and "exact_fault" not in config.fidelity.drop_for
        if config.judge == "all" or faulty or flags_of(measured, config.fidelity):
            return True
        source, _ = texts_of(self.rewrites[rephrasing_id], part)
        return is_drawn(lot_of(rephrasing_id, source), config.fidelity.drawn_share)

    def _measured_parts(self) -> Iterator[tuple[str, int, Row]]:
        """Rewrite, part and what was measured of it by today's checks."""
        version = measured_by(self.run.config)
        for rows in self.run.dataset.in_commits(MEASUREMENTS):
            for row in rows:
                if row["part"] != WHOLE and row["measured_by"] == version:
                    yield row["rephrasing_id"], row["part"], row
