"""Texts of a data set that the package `datasets` reads: saved on disk, or by name on the hub."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from records.errors import ConfigError
from synth.rephrasing.sources.texts import SourceText, TextPosition
from synth.rephrasing.writing.config import SourceConfig

BATCH_ROWS = 256

_HUB_NAME = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)?")
"""No address, and no way up the folders: `datasets` would follow both."""


def is_saved(folder: Path) -> bool:
    """Whether `datasets` saved one table there, or several splits."""
    return any((folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))


class DataSet:
    """Its rows lie in Arrow files that are mapped, so reading one by number is cheap."""

    def __init__(self, config: SourceConfig) -> None:
        """ConfigError for what is neither a folder nor a name on the hub."""
        if not Path(config.path).is_dir() and not _HUB_NAME.fullmatch(config.path):
            raise ConfigError(
                f"sources.path = {config.path!r} is neither a folder nor a name on the Hugging "
                "Face hub, such as owner/name"
            )
        self.license = config.license
        self._config = config
        self._rows: Any = None

    def texts(self) -> Iterator[tuple[TextPosition, SourceText]]:
        rows = self._opened()
        for start in range(0, len(rows), BATCH_ROWS):
            batch = rows[start : start + BATCH_ROWS]
            for number, text in enumerate(batch[self._config.text]):
                language = batch["language"][number] if "language" in batch else None
                yield (0, start + number), self._text(text, language, start + number)

    def read(self, place: TextPosition) -> SourceText:
        rows = self._opened()
        if place[1] >= len(rows):
            raise ConfigError(f"{self._config.path} has fewer rows than when the run was planned")
        row = rows[place[1]]
        return self._text(row[self._config.text], row.get("language"), place[1])

    def _opened(self) -> Any:
        if self._rows is None:
            self._rows = self._load()
            if self._config.text not in self._rows.column_names:
                raise ConfigError(
                    f"{self._config.path} has no column {self._config.text!r} (sources.text), only "
                    f"{', '.join(self._rows.column_names)}"
                )
        return self._rows

    def _load(self) -> Any:
        path, split = self._config.path, self._config.split
        try:
            import datasets  # takes 1.6 s, and is an extra
        except ImportError as error:
            raise ConfigError(
                "sources: data sets need the package `datasets` (the extra `export`)"
            ) from error
        try:
            if is_saved(Path(path)):
                saved = datasets.load_from_disk(path)
                return saved[split] if isinstance(saved, dict) else saved
            return datasets.load_dataset(path, split=split)
        except Exception as error:  # the package raises whatever its readers do
            raise ConfigError(f"sources: the data set {path!r} cannot be read: {error}") from error

    def _text(self, text: Any, language: Any, number: int) -> SourceText:
        name = f"{Path(self._config.path).name}:{number}"
        if not isinstance(text, str):
            raise ConfigError(f"{name}: {self._config.text!r} is {type(text).__name__}, no text")
        known = language if isinstance(language, str) and language else self._config.language
        return SourceText(text, name, known)
