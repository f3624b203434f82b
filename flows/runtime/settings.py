"""The environment variables this project reads, in one place, at the time of the call."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import WithJsonSchema

from records.errors import ConfigError, SynthError
from records.store.dataset import Dataset

_NO_FAULT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""What the operating system says of a disk, and not of the place that was named."""

DEFAULT_DATASET = "data/demo"

DatasetParameter = Annotated[
    str,
    WithJsonSchema(  # Prefect overwrites the description of a Field
        {
            "type": "string",
            "description": "Folder of the dataset, inside the data root (SYNTH_DATA_ROOT, else "
            "./data). It is made if it is missing; a run that it holds is resumed.",
        }
    ),
]
"""A parameter of every flow, explained in the form of Prefect's UI."""


def dataset_path(given: str | None) -> Path:
    """The `--dataset` given, else `SYNTH_DATASET`, else the demo's."""
    return Path(given or os.environ.get("SYNTH_DATASET") or DEFAULT_DATASET)


def open_dataset(given: str | None) -> Dataset:
    """For commands that read; the error names the folder and how a dataset is made."""
    path = dataset_path(given)
    try:
        return Dataset.open(path)
    except ConfigError as error:
        raise ConfigError(f"{error} (choose one with --dataset or SYNTH_DATASET)") from error


@contextmanager
def writing_to(option: str, path: Path | None) -> Iterator[None]:
    """Around a command that writes where its user said: a place that cannot be written to is
    wrong use, a full disk is not."""
    try:
        yield
    except SynthError as error:
        cause = error.__cause__
        if path is None or not isinstance(cause, OSError) or cause.errno in _NO_FAULT:
            raise
        raise ConfigError(f"{option} {path}: {error}; name a place that can be written") from error


def prefect_home() -> Path:
    """Where the project's own Prefect server lives: `SYNTH_PREFECT_HOME`, else ./.prefect."""
    return Path(os.environ.get("SYNTH_PREFECT_HOME") or ".prefect")


def data_root() -> Path:
    """Folder that flows started from the UI are confined to: `SYNTH_DATA_ROOT`, else ./data."""
    return Path(os.environ.get("SYNTH_DATA_ROOT") or "data")


def flow_keys() -> frozenset[str]:
    """Names of the variables whose values flows started from the UI may send as keys."""
    named = os.environ.get("SYNTH_FLOW_KEYS", "").split(",")
    return frozenset(name.strip() for name in named if name.strip())


def flow_addresses() -> tuple[str, ...]:
    """How addresses begin that flows started from the UI may read texts from."""
    named = os.environ.get("SYNTH_FLOW_ADDRESSES", "").split(",")
    return tuple(name.strip() for name in named if name.strip())


def live_servers() -> int | None:
    """MCP servers alive at once in a run: `SYNTH_LIVE_SERVERS`; None: what the machine holds."""
    given = os.environ.get("SYNTH_LIVE_SERVERS")
    if not given:
        return None
    if not given.isdigit() or int(given) < 1:
        raise ConfigError(f"SYNTH_LIVE_SERVERS must be a whole number from 1 up, got {given!r}")
    return int(given)
