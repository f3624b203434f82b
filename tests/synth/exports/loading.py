"""Exports as `datasets` loads them, and their cards."""

from pathlib import Path
from typing import Any

import yaml


def load(path: Path, *names: str, cache: str = "cache", **more: Any) -> Any:
    """The export in a folder; `names`: a part, unless it is the first."""
    import datasets  # over a second, which collecting the tests should not take

    return datasets.load_dataset(str(path), *names, cache_dir=f"{path}-{cache}", **more)


def card_of(out: Path) -> tuple[dict[str, Any], str]:
    """The front matter, and the markdown after it."""
    _, front, body = (out / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), body
