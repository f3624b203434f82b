"""Exports as functions that a child process can run and die in; it imports little for that."""

from pathlib import Path

from records.new_folder import new_folder
from records.store.dataset import Dataset


def export_into(folder: Path, dataset_root: Path) -> None:
    """Exports unless an earlier export came to its end."""
    from synth.exports.export import export_dataset

    folder.mkdir(exist_ok=True)
    if not (folder / "out").exists():
        export_dataset(Dataset.open(dataset_root), folder / "out")


def write_folder(folder: Path) -> None:
    """Two files in a new folder, unless an earlier one came to its end."""
    folder.mkdir(exist_ok=True)
    if not (folder / "out").exists():
        with new_folder(folder / "out") as new:
            (new / "data").mkdir()
            for name in ("a", "data/b"):
                (new / name).write_text(name)
