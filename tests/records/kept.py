"""The datasets that earlier versions wrote (`fixtures`), as copies to work on."""

import shutil
from pathlib import Path

SCHEMA_1 = Path(__file__).parent / "fixtures" / "schema_1"

KILLED = "ed6a4c73d7e736a6"
"""The run of `SCHEMA_1` that was killed in its rollouts."""


def copy_of_schema_1(folder: Path) -> Path:
    return Path(shutil.copytree(SCHEMA_1, folder / "schema_1"))
