"""Commit files, the one truth about what a dataset holds: `commits/000001.json` and on.

A part that no commit names does not exist for a reader. Numbers count up without gaps, so a
process that knows n commits finds out about the next by trying to open n + 1.
"""

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from records.errors import ConfigError

FORMAT = 1
"""Version of the layout of a dataset's folder and of its commit files."""


MOST_DETAIL = 300
"""Characters of `ItemStatus.detail` at most: commits are read often, and whole."""


class ItemStatus(NamedTuple):
    status: Literal["kept", "dropped", "failed", "pending"]
    """`pending`: tried in vain for what is around the item, and to be tried again. Such an item is
    not done; that it was tried is what the commit remembers."""
    reason: str | None
    """A short snake_case word that counts group by; None for kept items."""
    detail: str | None = None
    """The rest in words, such as what a server said. Foreign text."""


def failed(reason: str, words: str = "") -> ItemStatus:
    """The status of an item that failed, with its words on one line, bounded, and without
    characters that a terminal would obey."""
    detail = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(words.split()))
    if len(detail) > MOST_DETAIL:
        detail = f"{detail[: MOST_DETAIL - 4]} ..."
    return ItemStatus("failed", reason, detail or None)


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    name: str
    """File name under `tables/<table>/`, unique in the dataset."""
    rows: int
    sha256: str
    columns: tuple[str, ...]
    """What the file holds, so that readers need no footer to tell old parts and newer programs."""
    schema_version: int = 1
    """Of the program that wrote it: an earlier one had other names (`records.tables.renames`)."""


class Commit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    run_id: str
    stage: str
    shard: int
    supersedes: bool
    """Its rows replace committed rows with the same key (see `records.store.dataset`)."""
    parts: tuple[Part, ...]
    items: dict[str, ItemStatus]


def commit_path(root: Path, number: int) -> Path:
    return root / "commits" / f"{number:06d}.json"


def read_commit(root: Path, number: int) -> Commit | None:
    """Commit `number`, or None while there is none."""
    path = commit_path(root, number)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        commit = Commit.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"{path} does not fit this program: the dataset is newer than the program, or the "
            f"file was changed ({error.errors()[0]['msg']} at {error.errors()[0]['loc']})"
        ) from error
    if commit.number != number:
        raise ConfigError(f"{path} says that it is commit {commit.number}; the file was changed")
    return commit


def newest_number(root: Path) -> int:
    """The highest number of a commit file, 0 for none: what reading one by one must reach."""
    return max((int(path.stem) for path in (root / "commits").glob("[0-9]*.json")), default=0)
