"""Rounds of evolution: what is committed decides which domains get their next batch.

A round ends before the next is planned. What an interrupted run had planned is made first, so
that it goes on to the same rows that it would have come to without the interruption.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from records.files import write_atomic
from records.store.dataset import Dataset
from synth.catalogue.evolution.batch import base_of, item_id_of
from synth.catalogue.evolution.config import MAX_BATCHES, EvolveConfig, domains_of
from synth.catalogue.evolution.quotas import FIRST_YIELD, CellCount, next_cells
from synth.catalogue.evolution.snapshot import CatalogueSnapshot
from synth.catalogue.evolution.stage import EvolveStage
from synth.engine.run import Run
from tool_specs.domains.catalogue import domain_id
from tool_specs.domains.domain import Domain

ROUNDS = "evolve"
"""Of the file that names the items of each round, beside the plans of stages."""

WORTH_IT = 0.1
"""A domain whose last batch kept a smaller share than this has given what it can."""


class RoundFigures(NamedTuple):
    """What one round gave."""

    asked: int
    """Tools."""
    kept: int
    ideas: int
    """Of the kept tools, each idea counted once, those that the catalogue did not have."""

    @property
    def novelty(self) -> float:
        """New ideas for each tool that was asked for: what repeats an idea is dropped, so that
        kept tools alone would always look new."""
        return self.ideas / self.asked if self.asked else 0.0


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
        self.attempted: set[str] = set()
        """Items that this invocation has planned: one that failed is not tried for ever."""

    @property
    def kept(self) -> int:
        """Evolved tools of the domains that the dataset holds."""
        snapshot = self._snapshot()
        return sum(snapshot.evolved(place) for place in self.domains)

    def next_stages(self) -> list[EvolveStage]:
        """The stages of the next round, in the order of their batches; empty when enough tools
        are there, when no domain can give more, or when `stopped` says why."""
        snapshot, done, rounds = self._snapshot(), self._done(), read_rounds(self._file)
        number = self._left_over(rounds, done)
        if number is None:
            if self.stopped is not None:
                return []
            picks = self._by_quota(snapshot, done)
            rounds.append([item_id_of(self.base, place, batch) for place, batch in picks])
            number = len(rounds) - 1
            if picks:
                write_atomic(self._file, json.dumps(rounds).encode())
        items = [item for item in rounds[number] if self._is_open(item, done)]
        self.attempted.update(items)
        picks = [self.items[item] for item in items]
        # what its own round and later ones have made, a batch that is made again must not see
        visible = snapshot.without({item for one in rounds[number:] for item in one})
        return [
            EvolveStage(
                self.run,
                batch,
                [self.domains[place] for place, own in picks if own == batch],
                base=self.base,
                snapshot=visible,
            )
            for batch in sorted({batch for _, batch in picks})
        ]

    @property
    def stopped(self) -> str | None:
        """Why no further round is begun, though tools are missing."""
        quotas = self.run.config.quotas
        figures = self.figures()
        if not quotas.on or not figures or figures[-1].novelty >= quotas.novelty:
            return None
        last = figures[-1]
        return (
            f"round {len(figures)} had {last.ideas} new ideas in {last.asked} tools asked for, and "
            f"quotas.novelty asks for {quotas.novelty:.0%}"
        )

    def figures(self) -> list[RoundFigures]:
        """Of every round of the run, in their order."""
        rounds = read_rounds(self._file)
        return figures_of(rounds, self._snapshot(), self.run.config.batch_size)

    @property
    def _file(self) -> Path:
        return rounds_path(self.run.dataset, self.run.run_id)

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

    def _left_over(
        self, rounds: Sequence[Sequence[str]], done: dict[tuple[str, int], str]
    ) -> int | None:
        """The first round with batches that were planned and not made; or failed, if asked for."""
        for number, items in enumerate(rounds):
            if any(self._is_open(item, done) for item in items):
                return number
        return None

    def _is_open(self, item: str, done: dict[tuple[str, int], str]) -> bool:
        if item in self.attempted or item not in self.items:
            return False
        status = done.get(self.items[item])
        return status is None or (status == "failed" and self.run.retry_failed)

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
        if batch is None or item_id_of(self.base, place, batch) in self.attempted:
            return None
        last = (place, batch - 1)
        if batch and (done[last] == "failed" or gave[last] < WORTH_IT * self.run.config.batch_size):
            return None
        return batch


def rounds_path(dataset: Dataset, run_id: str) -> Path:
    return dataset.plan_path(run_id, ROUNDS).with_suffix(".rounds")  # the plan of no stage


def read_rounds(path: Path) -> list[list[str]]:
    """Ids of the items of each round that was begun."""
    return json.loads(path.read_text()) if path.exists() else []


def rounds_of(dataset: Dataset, config: EvolveConfig) -> list[RoundFigures]:
    """Of every round that a run of this config has made in the dataset."""
    domains = {domain_id(domain): domain for domain in domains_of(config)}
    rounds = read_rounds(rounds_path(dataset, config.run_id))
    return figures_of(rounds, CatalogueSnapshot.of(dataset, domains), config.batch_size)


def figures_of(
    rounds: Sequence[Sequence[str]], snapshot: CatalogueSnapshot, batch_size: int
) -> list[RoundFigures]:
    """Of each round, the catalogue without it and the rounds after it being what was known."""
    number_of = {item: number for number, items in enumerate(rounds) for item in items}
    known: set[str] = set()
    made: list[list[str]] = [[] for _ in rounds]
    for item, tool in snapshot.counted():
        if item in number_of:
            made[number_of[item]].append(tool.idea)
        else:
            known.add(tool.idea)
    found = []
    for items, ideas in zip(rounds, made, strict=True):
        new = set(ideas) - known
        found.append(RoundFigures(len(items) * batch_size, len(ideas), len(new)))
        known |= new
    return found
