"""Commands `synth label export | import`: people's verdicts, as CSV."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App

from flows.cli.shared.options import at_least
from flows.cli.shared.output import say
from records.errors import ConfigError


def register(app: App) -> None:
    label = App(name="label", help="People's verdicts on criteria that only a judge decides.")
    label.command(export)
    label.command(import_, name="import")
    app.command(label)


def export(
    path: str | None = None,
    *,
    out: Path,
    count: Annotated[int, at_least(1, most=1_000_000)] = 100,
    kind: str = "nl",
    seed: int = 0,
) -> None:
    """Write a CSV file to be labelled: conversation, criterion, and an empty column `label`.

    Fill in `label` (pass, fail or unsure) and `labeller`, then give it to `synth label import`.

    Parameters
    ----------
    path
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    out
        CSV file to write; it must not exist yet.
    count
        Lines at most.
    kind
        Kind of criterion; `nl` is the one that only the judge decides.
    seed
        Draws which ones.
    """
    from flows.runtime.settings import open_dataset
    from synth.judging.labels import export_labels

    lines = export_labels(open_dataset(path), out, count=count, kind=kind, seed=seed)
    print(json.dumps({"out": str(out), "lines": lines}))  # noqa: T201


def import_(path: str, file: Path | None = None) -> None:
    """Add labels to a dataset: those that the browser wrote down, then those of a CSV file.

    Lines that are wrong are told, with what is allowed, and left out; the others are added.
    Importing a file again adds nothing. A run takes in the browser's labels when it begins, too.

    Parameters
    ----------
    path
        Folder of the dataset.
    file
        As `synth label export` wrote it, with `label` and `labeller` filled in. Without one only
        the browser's labels are added.
    """
    from flows.runtime.settings import open_dataset
    from synth.judging.judge_report import judge_report
    from synth.judging.labels import import_labels

    dataset = open_dataset(path)
    done = import_labels(dataset, file)
    print(json.dumps(done._asdict() | {"refused": len(done.refused)}))  # noqa: T201
    if words := judge_report(dataset).words:
        say(words)
    if done.refused:
        where = file or f"labels of {path}"
        raise ConfigError(f"{where}: {len(done.refused)} lines refused\n" + "\n".join(done.refused))
