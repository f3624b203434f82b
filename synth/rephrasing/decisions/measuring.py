"""The stage `rephrasing-measurements`: what every check by code finds in a stored rewrite.

A rewrite is measured once as a whole and once in each part that was rewritten. No threshold has a
say here, so a run with other thresholds measures nothing again; nothing here costs a request.
"""

import asyncio

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.exact.faults import EXACT_VERSION, exact_faults
from synth.rephrasing.fidelity.checks import FIDELITY_VERSION, fidelity_of
from synth.rephrasing.writing.assignment import ENGLISH
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.gates import GATES
from synth.rephrasing.writing.instructions import TRANSLATE
from synth.rephrasing.writing.parts import is_written

TABLE = "rephrasing_measurements"

WHOLE = -1
"""In the column `part`: the whole document."""


def measured_by(config: RephraseConfig) -> str:
    """Version of everything that measures: rows of another one are not comparable."""
    return digest(TABLE, FIDELITY_VERSION, EXACT_VERSION, sorted(config.gates))


class MeasuringStage:
    name = "rephrasing-measurements"
    runs_in_workers = True

    def __init__(self, run: RunContext[RephraseConfig]) -> None:
        self.run = run
        self.measured_by = measured_by(run.config)
        self.rewrites = RowBy(run.dataset, "rephrasings", "rephrasing_id")

    def plan(self) -> list[Item]:
        """One item a rewrite of the dataset, whichever run wrote it."""
        return [
            Item(digest(self.name, self.measured_by, rephrasing_id), {"id": rephrasing_id})
            for rephrasing_id in self.rewrites
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rewrite = self.rewrites[item.data["id"]]
        rows = await asyncio.to_thread(measurements_of, rewrite, self.run.config)
        return ItemResult({TABLE: rows})


def measurements_of(rewrite: Row, config: RephraseConfig) -> list[Row]:
    """Rows of `rephrasing_measurements` for a row of `rephrasings`: the whole, then each part that
    a model has written."""
    source, text = rewrite["source_text"], rewrite["text"]
    place = {
        "rephrasing_id": rewrite["rephrasing_id"],
        "measured_by": measured_by(config),
        "split": rewrite["split"],
    }
    whole = fidelity_of(
        source,
        text,
        kind=rewrite["kind"],
        language=ENGLISH if rewrite["style"] == TRANSLATE else None,
        answer=rewrite["answer"],
    )
    gates = {name: found for name in config.gates if (found := GATES[name](text))}
    rows = [{**place, "part": WHOLE, **whole.columns(), "exact": [], "gates": gates}]
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
                "gates": {},
            }
        )
    return rows


def texts_of(rewrite: Row, part: int) -> tuple[str, str]:
    """A part of the source, and what stands in its place."""
    chunk = rewrite["chunks"][part]
    return rewrite["source_text"][slice(*chunk["source"])], rewrite["text"][slice(*chunk["text"])]
