"""Conversations from files into a dataset, outside of any run, some at a time.

A conversation is known by what is said in it, so importing a file again, or the same rows in
another file, adds nothing, and an import that was stopped goes on where its last commit ended. Rows
that cannot be taken are counted by reason, and what is wrong with each stands in `stages`.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.errors import ConfigError, ItemError
from records.store.commits import ItemStatus
from records.store.commits import failed as failed_status
from records.store.dataset import Dataset
from records.store.lease import hold
from records.tables.schemas import Row
from synth.engine.stages import KEPT
from synth.importing.conversation import ForeignConversation, ImportFormat
from synth.importing.files import ReadFile, ReadRow, files_at, opened
from synth.importing.offered_tools import OfferedTools
from synth.importing.shapes import ShapeReader, apigen_mt, openai, shape_of, sharegpt, toucan
from synth.importing.table_rows import ImportedRows, rows_of
from synth.importing.tau2 import tau2
from tool_specs.importing.licences import UNKNOWN, spdx_of

RUN_ID = "imports"
"""Imports belong to no run; their rows carry this in its place."""

STAGE = "import_trajectories"

READERS: Mapping[ImportFormat, ShapeReader] = {
    "toucan": toucan,
    "apigen-mt": apigen_mt,
    "tau2": tau2,
    "openai": openai,
    "sharegpt": sharegpt,
}

BATCH_ROWS = 500
"""Rows of a commit at most."""

BATCH_CHARS = 1 << 25
"""Characters of messages and tools after which a commit is made earlier, since they are held until
then."""

SAID_EVERY = 10_000
"""Rows between two words on how far it is."""

MOST_LISTED = 1_000
"""Refused rows that a report names one by one; `stages` names them all."""


class TrajectoryImport(Config):
    """What is imported."""

    files: tuple[str, ...] = Field(min_length=1)
    """Paths, folders, patterns or addresses."""
    format: ImportFormat | None = None
    """None: by the columns of each row."""
    license: str = UNKNOWN
    """Of the conversations and their tools, as their owner states it."""
    model: str | None = None
    """Who played the agent, where the files do not say."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tools of conversations whose file lists none."""
    released: tuple[str, ...] = ()
    """Tools, written SOURCE/TOOL, that are used although their texts were found to instruct the
    model that reads them."""


class ListedRefusal(NamedTuple):
    path: str
    place: str
    reason: str
    words: str


@dataclass
class ImportedTrajectories:
    """What became of the rows. read = added + known + repeated + refused."""

    read: int = 0
    added: int = 0
    known: int = 0
    """Those that the dataset held before."""
    repeated: int = 0
    """Those that stand a second time in the files."""
    refused: Counter[str] = field(default_factory=Counter)
    """By reason."""
    listed: list[ListedRefusal] = field(default_factory=list)
    """The first of them."""
    formats: Counter[str] = field(default_factory=Counter)
    """Rows added, by format."""
    lacks: Counter[str] = field(default_factory=Counter)
    """Rows added that lack something, by what it is."""
    not_released: list[str] = field(default_factory=list)
    """Releases that name no tool of the files."""


def import_trajectories(
    request: TrajectoryImport,
    path: Path,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> ImportedTrajectories:
    """Add the conversations of every file to the dataset at `path`, in the order of the files.

    ConfigError, before anything is written, where a path names no file or the licence is none. A
    file that cannot be opened is told like a row that cannot be read, and costs the others nothing.
    """
    license = spdx_of(request.license)
    if license == UNKNOWN != request.license:
        raise ConfigError(
            f"license = {request.license!r} is no SPDX id such as Apache-2.0; without one, the "
            "conversations are of unknown licence"
        )
    files = {file.path: file for given in request.files for file in files_at(given)}
    dataset = Dataset.create_or_open(path)
    with hold(dataset, run_id=RUN_ID, what="synth import"):
        work = _Import(request, dataset, license)
        for file in files.values():
            with opened(file) as read:
                work.take(read, say)
        work.commit()
        work.report.not_released = sorted(work.tools.not_seen)
    return work.report


class _Import:
    def __init__(self, request: TrajectoryImport, dataset: Dataset, license: str) -> None:
        self._request, self._dataset, self._license = request, dataset, license
        self.tools = OfferedTools(license, request.released)
        self.report = ImportedTrajectories()
        self._held = {name: dataset.ids(name) for name in _SHARED}
        self._known = dataset.ids("trajectories")
        self._added: set[str] = set()
        self._noted = _refused_before(dataset)
        self._invocation = uuid.uuid4().hex[:12]
        self._batch = _Batch()

    def take(self, file: ReadFile, say: Callable[[str], None]) -> None:
        for row in file.rows:
            self.report.read += 1
            try:
                imported = self._rows(row, file)
            except ItemError as error:
                self._refuse(error, file.path, row.place)
            else:
                self._add(imported)
            if self._batch.is_full:
                self.commit()
            if self.report.read % SAID_EVERY == 0:
                say(self._words(file))

    def _rows(self, row: ReadRow, file: ReadFile) -> ImportedRows:
        if isinstance(row.value, ItemError):
            raise row.value
        conversation = self._conversation(row.value, file)
        listed = conversation.tools if conversation.tools is not None else self._request.tools
        return rows_of(
            conversation,
            self.tools.of(listed, conversation.source),
            license=self._license,
            model=self._request.model,
            place={"path": file.path, "place": row.place},
        )

    def _conversation(self, row: Mapping[str, Any], file: ReadFile) -> ForeignConversation:
        # asked whatever the user says: it refuses rows of no shape, and those that compare answers
        shape = shape_of(row) if file.about is None else "tau2"
        return READERS[self._request.format or shape](row, file.about or {})

    def _add(self, imported: ImportedRows) -> None:
        key = imported.trajectory_id
        if key in self._known:
            self.report.known += 1
        elif key in self._added:
            self.report.repeated += 1
        else:
            self._added.add(key)
            self.report.added += 1
            [made] = imported.tables["imports"]
            self.report.formats[made["format"]] += 1
            self.report.lacks.update(made["lacks"])
            self._batch.add(key, KEPT)
            for table, rows in imported.tables.items():
                self._batch.tables.setdefault(table, []).extend(self._new(table, rows))
            self._batch.chars += imported.chars

    def _new(self, table: str, rows: list[Row]) -> Iterator[Row]:
        """Without those that the dataset has, or that a conversation before brought."""
        key = _SHARED.get(table)
        for row in rows:
            if key is None:
                yield row
            elif row[key] not in self._held[table]:
                self._held[table].add(row[key])
                yield row

    def _refuse(self, error: ItemError, path: str, place: str) -> None:
        self.report.refused[error.reason] += 1
        if len(self.report.listed) < MOST_LISTED:
            self.report.listed.append(ListedRefusal(path, place, error.reason, error.detail))
        item = digest("refused", str(Path(path).absolute()), place, error.reason)
        if item not in self._noted:
            self._noted.add(item)
            words = failed_status(error.reason, f"{path}, {place}: {error.detail}").detail
            self._batch.add(item, ItemStatus("dropped", error.reason, words))

    def commit(self) -> None:
        """Make what was taken so far permanent; nothing where nothing is new."""
        batch, self._batch = self._batch, _Batch()
        if not batch.items:
            return
        shard = len(self._dataset.commits())
        batch.tables["stages"] = [self._account(batch.items, shard)]
        self._dataset.commit(
            run_id=RUN_ID, stage=STAGE, shard=shard, tables=batch.tables, items=batch.items
        )

    def _account(self, items: Mapping[str, ItemStatus], shard: int) -> Row:
        refused = {item: status for item, status in items.items() if status.status != "kept"}
        return {
            "invocation_id": self._invocation,
            "stage": STAGE,
            "shard": shard,
            "requested": len(items),
            "kept": len(items) - len(refused),
            "dropped": len(refused),
            "failed": 0,
            "reasons": dict(Counter(str(status.reason) for status in refused.values())),
            "items": {item: status.reason for item, status in refused.items()},
            "pending": 0,
            "details": {item: status.detail for item, status in refused.items()},
        }

    def _words(self, file: ReadFile) -> str:
        report, share = self.report, file.share_read()
        far = f" ({share:.0%} of {file.path})" if share is not None else ""
        there = report.known + report.repeated
        refused = report.refused.total()
        return (
            f"{report.read:,} rows read{far}: {report.added:,} added, {there:,} there already, "
            f"{refused:,} refused"
        )


_SHARED = {"tools": "tool_id", "agents": "agent_id", "tasks": "task_id"}
"""Tables whose rows several conversations may share -> their key."""


@dataclass
class _Batch:
    """What the next commit brings."""

    tables: dict[str, list[Row]] = field(default_factory=dict)
    items: dict[str, ItemStatus] = field(default_factory=dict)
    chars: int = 0

    def add(self, item: str, status: ItemStatus) -> None:
        self.items[item] = status

    @property
    def is_full(self) -> bool:
        return len(self.items) >= BATCH_ROWS or self.chars >= BATCH_CHARS


def _refused_before(dataset: Dataset) -> set[str]:
    """Rows that were refused and noted by an earlier import."""
    return {
        item
        for items in dataset.items_of(STAGE)
        for item, status in items.items()
        if status.status == "dropped"
    }
