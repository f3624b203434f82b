"""The marker file that makes a folder a dataset, so that no command ever writes among foreign
files.
"""

import secrets
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from records.errors import ConfigError, SynthError
from records.files import TEMPORARY, create_exclusive
from records.store.commits import FORMAT

MARKER = "dataset.json"


class Marker(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["agentic-synth dataset"]
    format: int
    """Layout of the folder; `records.store.commits.FORMAT` is what this program knows."""
    dataset_id: str
    """Random: tells a dataset from another made later under the same path."""


def read_marker(root: Path) -> Marker | None:
    """The folder's marker, or None where none is; refuses one that is not ours, or newer."""
    path = root / MARKER
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    try:
        marker = Marker.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"{path} is not a marker of agentic-synth: {root} is no dataset"
        ) from error
    if marker.format > FORMAT:
        raise ConfigError(
            f"the dataset {root} is newer than the program: its format is {marker.format}, this "
            f"version knows {FORMAT}; update agentic-synth"
        )
    return marker


def make_dataset(root: Path) -> None:
    """Put a marker into a missing or empty folder; refuse a file and a folder with other content.

    Two processes may do so at once: one marker wins.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        # the temporary file is what a writer killed here left, or another one's marker to be
        strangers = [p.name for p in root.iterdir() if not p.name.startswith(TEMPORARY)]
    except OSError as error:
        raise ConfigError(f"cannot make a dataset of {root}: {error.strerror}") from error
    if strangers and MARKER not in strangers:
        raise ConfigError(
            f"{root} is not empty and has no {MARKER}, so it is no dataset and stays untouched "
            f"(it holds {sorted(strangers)[0]!r}); name a new or empty folder"
        )
    marker = Marker(kind="agentic-synth dataset", format=FORMAT, dataset_id=secrets.token_hex(8))
    try:
        create_exclusive(root / MARKER, (marker.model_dump_json() + "\n").encode())
    except SynthError:
        # whoever was faster may have swept our temporary file away: then there is a marker
        if read_marker(root) is None:
            raise
