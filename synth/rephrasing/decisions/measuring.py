"""The stage `rephrasing-measurements`: what every check by code finds in a stored rewrite.

A rewrite is measured once as a whole and once in each part that was rewritten. No threshold has a
say here, so a run with other thresholds measures nothing again. Nothing here costs a request,
unless an embedder aligns.
"""

import asyncio

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.exact.faults import EXACT_VERSION, exact_faults
from synth.rephrasing.fidelity.alignment import Alignment
from synth.rephrasing.fidelity.checks import FIDELITY_VERSION, fidelity_of
from synth.rephrasing.fidelity.embedded import aligned
from synth.rephrasing.writing.assignment import ENGLISH
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import TRANSLATE
from synth.rephrasing.writing.parts import is_written

TABLE = "rephrasing_measurements"

WHOLE = -1
"""In the column `part`: the whole document."""


def measured_by(config: RephraseConfig) -> str:
    """Version of all that measures: rows of another one are not comparable."""
    asked = config.align == "embedder"
    aligned_by = [config.roles["embedder"].identity()] if asked else []
    return digest(TABLE, FIDELITY_VERSION, EXACT_VERSION, *aligned_by)


class MeasuringStage:
    name = "rephrasing-measurements"
    runs_in_workers = True

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        self.measured_by = measured_by(run.config)
        self.rewrites = RowBy(run.dataset, "rephrasings", "rephrasing_id")

    def plan(self) -> list[Item]:
        """One item a rewrite of the dataset, whichever run wrote it."""
        return [Item(digest(self.name, self.measured_by, i), {"id": i}) for i in self.rewrites]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rewrite, alignment = self.rewrites[item.data["id"]], None
        if self.run.config.align == "embedder":
            source, text = rewrite["source_text"], rewrite["text"]
            alignment = await aligned(shard.llm, source, text, item=item.item_id, step="align")
        place = {"measured_by": self.measured_by, "split": rewrite["split"]}
        rows = await asyncio.to_thread(measurements_of, rewrite, place, alignment)
        return ItemResult({TABLE: rows})


def measurements_of(rewrite: Row, place: Row, alignment: Alignment | None) -> list[Row]:
    """Rows of `rephrasing_measurements` for a row of `rephrasings`: the whole, then each part that
    a model has written. `alignment`: an embedder's, of the whole; None: by words."""
    source, text = rewrite["source_text"], rewrite["text"]
    place = place | {"rephrasing_id": rewrite["rephrasing_id"]}
    whole = fidelity_of(
        source,
        text,
        kind=rewrite["kind"],
        language=ENGLISH if rewrite["style"] == TRANSLATE else None,
        answer=rewrite["answer"],
        alignment=alignment,
    )
    rows = [{**place, "part": WHOLE, **whole.columns(), "exact": []}]
    for part, chunk in enumerate(rewrite["chunks"]):
        if not is_written(chunk):
            continue
        ours, theirs = texts_of(rewrite, part)
        faults = exact_faults(ours, theirs, document=source)
        rows.append(
            {
                **place,
                "part": part,
                **fidelity_of(ours, theirs, kind=rewrite["kind"]).columns(),
                "exact": [[fault.kind, fault.evidence] for fault in faults],
            }
        )
    return rows


def texts_of(rewrite: Row, part: int) -> tuple[str, str]:
    """A part of the source, and what stands in its place."""
    chunk = rewrite["chunks"][part]
    return rewrite["source_text"][slice(*chunk["source"])], rewrite["text"][slice(*chunk["text"])]
