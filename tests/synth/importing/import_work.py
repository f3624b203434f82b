"""An import as a function that a child process can run and die in; it imports little for that."""

from pathlib import Path


def import_file(folder: Path, file: Path) -> None:
    """In commits of a few rows, so that there are several to die between."""
    from synth.importing import importing

    importing.BATCH_ROWS = 3
    importing.import_trajectories(importing.TrajectoryImport(files=(str(file),)), folder)
