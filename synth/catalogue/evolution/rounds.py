"""Rounds of evolution: what is committed decides which domains get their next batch.

A round ends before the next is planned. What an interrupted run had planned is made first, so
that it goes on to the same rows that it would have come to without the interruption.
"""

import json
from collections import Counter
from collections.abc import Sequence

from synth.catalogue.evolution.batch import base_of, item_id_of
from synth.catalogue.evolution.config import MAX_BATCHES, EvolveConfig
from synth.catalogue.evolution.quotas import FIRST_YIELD, CellCount, next_cells
from synth.catalogue.evolution.snapshot import CatalogueSnapshot
from synth.catalogue.evolution.stage import EvolveStage
from synth.engine.run import Run
from tool_specs.domains.catalogue import domain_id
from tool_specs.domains.domain import Domain

WORTH_IT = 0.1
"""A domain whose last batch kept a smaller share than this has given what it can."""


class Rounds:
    def __init__(self, run: Run[EvolveConfig], domains: Sequence[Domain]) -> None:
        self.run = run
        self.domains = {domain_id(domain): domain for domain in domains}
        base = base_of(run.config)
        self.base = base
        self.items = {
            item_id_of(base, place, batch): (place, batch)
            for place in self.domains
            for batch in range(MAX_BATCHES)
        }
        """Every item that the run may come to."""
        self.attempted: set[tuple[str, int]] = set()
        """Batches that this invocation has planned: one that failed is not tried for ever."""

    @property
    def kept(self) -> int:
        """Evolved tools of the domains that the dataset holds."""
        snapshot = self._snapshot()
        return sum(snapshot.evolved(place) for place in self.domains)

    def next_stages(self) -> list[EvolveStage]:
        """The stages of the next round, in the order of their batches; empty when enough tools
        are there, or no domain can give more."""
        snapshot = self._snapshot()
        done = self._done()
        picks = self._left_over(done) or self._by_quota(snapshot, done)
        self.attempted.update(picks)
        batches = sorted({batch for _, batch in picks})
        return [
            EvolveStage(
                self.run,
                batch,
                [self.domains[place] for place, own in picks if own == batch],
                base=self.base,
                snapshot=snapshot,
            )
            for batch in batches
        ]

    def _snapshot(self) -> CatalogueSnapshot:
        return CatalogueSnapshot.of(self.run.dataset, self.domains)

    def _done(self) -> dict[tuple[str, int], str]:
        """Batch of a domain -> what became of it."""
        found = {}
        for batch in range(MAX_BATCHES):
            for item_id, status in self.run.dataset.item_statuses(f"evolve-{batch}").items():
                if item_id in self.items:
                    found[self.items[item_id]] = status.status
        return found

    def _left_over(self, done: dict[tuple[str, int], str]) -> list[tuple[str, int]]:
        """Planned by an invocation that ended before they were made; failed ones, if asked for."""
        retried = {where for where, status in done.items() if status == "failed"}
        finished = done.keys() - (retried if self.run.retry_failed else set()) | self.attempted
        planned = [
            self.items[item_id]
            for batch in range(MAX_BATCHES)
            for item_id in self._planned(batch)
            if item_id in self.items
        ]
        return [where for where in planned if where not in finished]

    def _planned(self, batch: int) -> list[str]:
        path = self.run.dataset.plan_path(self.run.run_id, f"evolve-{batch}")
        shards: list[list[str]] = json.loads(path.read_text()) if path.exists() else []
        return [item_id for shard in shards for item_id in shard]

    def _by_quota(
        self, snapshot: CatalogueSnapshot, done: dict[tuple[str, int], str]
    ) -> list[tuple[str, int]]:
        config = self.run.config
        cells = [
            CellCount(domain.category, place, snapshot.evolved(place))
            for place, domain in self.domains.items()
        ]
        missing = config.count - sum(cell.tools for cell in cells)
        if missing <= 0:
            return []
        gave = self._gave(snapshot, done)
        following = {
            place: batch
            for place in self.domains
            if (batch := self._next_batch(place, done, gave)) is not None
        }
        share = sum(gave.values()) / len(gave) if gave else FIRST_YIELD * config.batch_size
        chosen = next_cells(
            [cell for cell in cells if cell.domain_id in following],
            missing=missing,
            per_batch=max(share, 1.0),
            seed=config.seed,
        )
        return [(place, following[place]) for place in chosen]

    def _gave(
        self, snapshot: CatalogueSnapshot, done: dict[tuple[str, int], str]
    ) -> dict[tuple[str, int], int]:
        """Tools that each batch of this run gave."""
        made = Counter(
            self.items[tool.item_id]
            for tools in snapshot.tools.values()
            for tool in tools
            if tool.item_id in self.items
        )
        return {where: made[where] for where in done}

    def _next_batch(
        self, place: str, done: dict[tuple[str, int], str], gave: dict[tuple[str, int], int]
    ) -> int | None:
        """None where the domain has given what it can."""
        batch = next((k for k in range(MAX_BATCHES) if (place, k) not in done), None)
        if batch is None or (place, batch) in self.attempted:
            return None
        last = (place, batch - 1)
        if batch and (done[last] == "failed" or gave[last] < WORTH_IT * self.run.config.batch_size):
            return None
        return batch
