"""Where rollouts are kept, so that a run that is killed goes on.

    <folder>/iteration-000007/phase.json       what decides the phase; written first
                              part-0000.parquet, ...   episodes that ended or paused, as they did so
                              carried.parquet  what goes on in the next iteration
                              ended.json       the figures; written last

Every file appears whole or not at all. Parts are added, never changed: what is in one has happened,
and what is in none is played again.
"""

import hashlib
import io
import json
import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from records.errors import ConfigError
from records.files import write_atomic
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.rl.rollouts.episodes import EpisodeKey, PausedEpisode
from trainer.rl.rollouts.figures import PhaseFigures, figures_of_json, figures_to_json
from trainer.rl.rollouts.samples import (
    RolloutSample,
    sample_of_json,
    sample_to_json,
    task_of_json,
    task_to_json,
)

log = logging.getLogger(__name__)

BEGUN, CARRIED, ENDED = "phase.json", "carried.parquet", "ended.json"

_SCHEMA = pa.schema(
    [("is_over", pa.bool_()), ("size", pa.int32()), ("drawn", pa.int64()), ("body", pa.utf8())]
)


class EndedEpisode(NamedTuple):
    sample: RolloutSample
    size: int
    """Samples of its group."""
    drawn: int
    """Tokens that were drawn in the iteration of its part."""

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(self.sample.begun, self.sample.task.task_id, self.sample.number)


@dataclass
class StoredEpisodes:
    ended: list[EndedEpisode] = field(default_factory=list)
    paused: list[PausedEpisode] = field(default_factory=list)
    drawn: int = 0
    """Tokens that were drawn in the iteration, of all of them."""
    digest: str = ""
    """Of the file; empty where there is none."""

    def add(self, other: "StoredEpisodes") -> None:
        self.ended += other.ended
        self.paused += other.paused
        self.drawn += other.drawn


class RolloutStore:
    """One folder, one writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, iteration: int, identity: str) -> StoredEpisodes:
        """The iteration's parts so far. A phase of another identity, such as one that was drawn by
        other weights before the run went back, is deleted, and what came after it as well."""
        folder = self._of(iteration)
        mark = folder / BEGUN
        stored = StoredEpisodes()
        if mark.is_file() and json.loads(mark.read_text())["identity"] == identity:
            for path in sorted(folder.glob("part-*.parquet")):
                stored.add(_read(path))
            return stored
        for later in self._iterations():
            if later >= iteration:
                log.warning("rollouts of iteration %d are played anew: they were others", later)
                self._delete(later)
        write_atomic(mark, json.dumps({"identity": identity}).encode())
        return stored

    def write_part(
        self,
        iteration: int,
        ended: Sequence[EndedEpisode],
        paused: Sequence[tuple[PausedEpisode, int]] = (),
    ) -> None:
        """`paused`: with the tokens that were drawn of each in this iteration."""
        folder = self._of(iteration)
        number = len(list(folder.glob("part-*.parquet")))
        _write(folder / f"part-{number:04d}.parquet", ended, paused)

    def end(
        self,
        iteration: int,
        ended: Sequence[EndedEpisode],
        paused: Sequence[PausedEpisode],
        figures: PhaseFigures,
    ) -> None:
        """The phase is over. `ended`: samples whose groups wait for the paused ones."""
        folder = self._of(iteration)
        _write(folder / CARRIED, ended, [(one, 0) for one in paused])
        write_atomic(folder / ENDED, json.dumps(figures_to_json(figures)).encode())

    def figures(self, iteration: int) -> PhaseFigures | None:
        """None of a phase that is not over."""
        path = self._of(iteration) / ENDED
        return figures_of_json(json.loads(path.read_text())) if path.is_file() else None

    def carried(self, iteration: int) -> StoredEpisodes:
        """What goes on behind the iteration; nothing behind one before the first that was played.
        ConfigError where others were played and this one was not, or not to its end."""
        if self.figures(iteration) is not None:
            return _read(self._of(iteration) / CARRIED)
        if any(other <= iteration for other in self._iterations()):
            raise ConfigError(
                f"{self._folder} has rollouts, but none of iteration {iteration} that are over: "
                "iterations are played one after the other; begin in an empty folder, or go back "
                "to the last one that is there"
            )
        return StoredEpisodes()

    def delete_before(self, iteration: int) -> None:
        """Delete what nobody needs who plays `iteration` and those behind it."""
        for earlier in self._iterations():
            if earlier < iteration - 1:
                self._delete(earlier)

    def _delete(self, iteration: int) -> None:
        folder = self._of(iteration)
        (folder / ENDED).unlink(missing_ok=True)  # half of it must not look like all of it
        (folder / BEGUN).unlink(missing_ok=True)
        shutil.rmtree(folder)

    def _of(self, iteration: int) -> Path:
        return self._folder / f"iteration-{iteration:06d}"

    def _iterations(self) -> list[int]:
        return sorted(int(path.name[-6:]) for path in self._folder.glob("iteration-*"))


def _write(
    path: Path, ended: Iterable[EndedEpisode], paused: Iterable[tuple[PausedEpisode, int]]
) -> None:
    rows = [
        {"is_over": True, "size": e.size, "drawn": e.drawn, "body": _text(sample_to_json(e.sample))}
        for e in ended
    ]
    rows += [
        {"is_over": False, "size": one.size, "drawn": drawn, "body": _text(_paused_to_json(one))}
        for one, drawn in paused
    ]
    into = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), into, compression="zstd")
    write_atomic(path, into.getvalue())


def _read(path: Path) -> StoredEpisodes:
    content = path.read_bytes()
    stored = StoredEpisodes(digest=hashlib.sha256(content).hexdigest()[:16])
    for row in pq.read_table(io.BytesIO(content)).to_pylist():
        told = json.loads(row["body"])
        stored.drawn += row["drawn"]
        if row["is_over"]:
            stored.ended.append(EndedEpisode(sample_of_json(told), row["size"], row["drawn"]))
        else:
            stored.paused.append(_paused_of_json(told))
    return stored


def _text(told: Any) -> str:
    return json.dumps(told, allow_nan=False)


def _paused_to_json(paused: PausedEpisode) -> dict[str, Any]:
    own = {"task": task_to_json(paused.task), "tokens": paused.tokens.to_json()}
    return {**paused._asdict(), **own}


def _paused_of_json(told: dict[str, Any]) -> PausedEpisode:
    own = {"task": task_of_json(told["task"]), "tokens": EpisodeTokens.of_json(told["tokens"])}
    return PausedEpisode(**{**told, **own})
