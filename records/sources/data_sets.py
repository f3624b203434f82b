"""Data sets that the package `datasets` reads: saved on disk, or named on the Hugging Face hub."""

import re
from pathlib import Path
from typing import Any

from records.errors import ConfigError

_HUB_NAME = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)?")
"""No address, and no way up the folders: `datasets` would follow both."""


def is_saved(folder: Path) -> bool:
    """Whether `datasets` saved one table there, or several splits."""
    return any((folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))


def can_be_named(path: str) -> bool:
    """Whether it is a folder, or may be a name on the hub."""
    return Path(path).is_dir() or _HUB_NAME.fullmatch(path) is not None


def open_data_set(path: str, *, config: str | None, split: str, setting: str) -> Any:
    """Its rows: of one that was saved mapped, with a length; of any other streamed, and nothing of
    it is stored here. `setting` names it in errors. ConfigError for what cannot be opened."""
    try:
        import datasets  # takes 1.6 s, and is an extra
    except ImportError as error:
        raise ConfigError(
            f"{setting}: data sets need the package `datasets` (the extra `export`)"
        ) from error
    try:
        if is_saved(Path(path)):
            saved = datasets.load_from_disk(path)
            return saved[split] if isinstance(saved, dict) else saved
        return datasets.load_dataset(path, config, split=split, streaming=True)
    except Exception as error:  # the package raises whatever its readers do
        raise unreadable(path, error, setting=setting) from error


def unreadable(path: str, error: Exception, *, setting: str) -> ConfigError:
    return ConfigError(f"{setting}: the data set {path!r} cannot be read: {error}")
