"""Where a flow may read and write that was started from the UI: inside the data root only.

The server has no users and no passwords, so whoever reaches it can start a flow; the parameters
must not be a way to the rest of the disk. Commands name any path: who runs them has the shell.
"""

from collections.abc import Iterator
from pathlib import Path

from flows.settings import data_root
from records.errors import ConfigError
from synth.config import RunConfig


def check_inside_data_root(config: RunConfig, dataset: str) -> None:
    """Raise ConfigError for a path among the parameters that leads out of the data root."""
    root = data_root().resolve()
    for setting, path in _paths(config, dataset):
        if root not in Path(path).resolve().parents:  # resolved: neither `..` nor links lead out
            raise ConfigError(
                f"{setting} = {path!r} is not inside the data root {root}; a flow that is started "
                "from the UI reads and writes only there (set SYNTH_DATA_ROOT for another folder)"
            )


def _paths(config: RunConfig, dataset: str) -> Iterator[tuple[str, str]]:
    yield "dataset", dataset
    for setting in ("domains", "servers"):
        for name in getattr(config, setting):
            if name.endswith((".yaml", ".yml")):  # else the name of a built-in one
                yield f"config.{setting}", name
