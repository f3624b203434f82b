"""The stage `selection`: one decision over all rewrites of the dataset, at a barrier.

What repeats another rewrite is dropped, whoever made it and of whichever source; the one that comes
first by id stays. The newest decision counts (the view `rephrasings` joins it).
"""

import asyncio

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from synth.engine.run import Run
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.rephrasing.similarity import near_repeats, sketch
from synth.rephrasing.writing.config import RephraseConfig

STAGE_VERSION = 1
"""Raised when the same rewrites would be told apart otherwise."""

REPEATS = "near_duplicate"

KEEP_ROWS = 200
"""Rewrites held while pairs of them are compared."""


class SelectionStage:
    name = "selection"
    needs_all = True

    def __init__(self, run: Run[RephraseConfig]) -> None:
        self.run = run

    def plan(self) -> list[Item]:
        """One item, or none where nothing was kept."""
        kept = self._kept()
        if not kept:
            return []
        near = self.run.config.selection.near
        return [Item(self._newest_id(digest(self.name, STAGE_VERSION, near, kept)))]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        rows = await asyncio.to_thread(self._decided, item.item_id)
        repeated = sum(row["drop_reason"] is not None for row in rows)
        return ItemResult({"selection": rows}, noted={REPEATS: repeated} if repeated else {})

    def _kept(self) -> list[str]:
        """Ids of the rewrites that their own checks kept, in order."""
        columns = ("rephrasing_id", "kept")
        found = self.run.dataset.in_commits("rephrasings", columns)
        return sorted(row["rephrasing_id"] for rows in found for row in rows if row["kept"])

    def _newest_id(self, selection_id: str) -> str:
        """A decision that was overruled since is made again, under an id of its own."""
        made = list(self.run.dataset.item_statuses(self.name))
        while selection_id in made[:-1]:
            overruled_by = made[made.index(selection_id) + 1]
            selection_id = digest("selection again", selection_id, overruled_by)
        return selection_id

    def _decided(self, selection_id: str) -> list[Row]:
        kept = self._kept()
        number_of = {rephrasing_id: number for number, rephrasing_id in enumerate(kept)}
        sketches = [b""] * len(kept)
        splits = [""] * len(kept)
        columns = ("rephrasing_id", "text", "split")
        for rows in self.run.dataset.in_commits("rephrasings", columns):
            for row in rows:
                number = number_of.get(row["rephrasing_id"])
                if number is not None:
                    sketches[number] = sketch(row["text"])
                    splits[number] = row["split"]
        texts = RowBy(self.run.dataset, "rephrasings", "rephrasing_id", keep=KEEP_ROWS)
        repeats = near_repeats(
            sketches,
            lambda number: texts[kept[number]]["text"],
            near=self.run.config.selection.near,
        )
        return [
            {
                "selection_id": selection_id,
                "rephrasing_id": rephrasing_id,
                "drop_reason": REPEATS if number in repeats else None,
                "repeats": kept[repeats[number]] if number in repeats else None,
                "split": splits[number],
            }
            for number, rephrasing_id in enumerate(kept)
        ]
