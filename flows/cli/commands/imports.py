"""Command `synth import`: conversations that were made elsewhere."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from flows.cli.shared.options import DatasetOption, Json, License
from flows.cli.shared.output import counted, say
from records.errors import SynthError

if TYPE_CHECKING:
    from synth.importing.importing import ImportedTrajectories

REFUSED_QUERY = (
    "select e.value ->> '$' as refused from stages, json_each(details) e "
    "where stage = 'import_trajectories'"
)

SHOWN_REFUSALS = 20
"""Refused rows that are printed; `--json` and the table `stages` have more."""


def register(app: App) -> None:
    app.command(import_conversations, name="import")


def import_conversations(
    files: Annotated[list[str], Parameter(name="FILE", negative="")],
    /,
    *,
    format_: Annotated[
        Literal["auto", "toucan", "apigen-mt", "tau2", "openai", "sharegpt"],
        Parameter(name="--format"),
    ] = "auto",
    dataset: DatasetOption = None,
    license_: License = None,
    model: str | None = None,
    tools: Path | None = None,
    release: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    json_: Json = False,
) -> None:
    """Add conversations that were made elsewhere to a dataset, to be judged, curated and exported.

    Every row becomes a trajectory with its calls, or is refused with its reason, file and line.
    A file that cannot be read is told like a row, and the others are taken. What a file does not
    hold stays unknown: `synth sql "select lacks, count(*) from imports group by all"`.
    Importing again adds nothing; an import that was stopped goes on with the same command. Then
    `synth grade` judges what came in.

    Parameters
    ----------
    files
        JSON lines, JSON or Parquet; lines and JSON may end in .gz or .zst. A folder, a pattern or
        an address (s3://, hf://) names several.
    format_
        toucan, apigen-mt, tau2 (results.json of tau2-bench), openai (fine-tuning files, and rows of
        messages and tools) or sharegpt (LLaMA-Factory); auto goes by the columns of each row.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    license_
        Licence of the conversations and their tools as their owner states it, an SPDX id. Without
        it they are of unknown licence, which exports leave out unless asked.
    model
        Name of the model that played the agent, where the files do not say.
    tools
        File with the tools of conversations whose own file lists none, as tau2-bench's do: a list
        as `synth tools import --file` reads it.
    release
        A tool, written SOURCE/TOOL such as toucan/get_alerts, that is used although its texts were
        found to instruct the model that reads them. Read it first.
    json_
        Print the counts, and the refused rows, as JSON.
    """
    from flows.cli.shared.going_on import same_command_goes_on
    from flows.runtime.settings import dataset_path
    from synth.importing.importing import TrajectoryImport, import_trajectories
    from synth.importing.offered_tools import listed_in

    request = TrajectoryImport(
        files=tuple(files),
        format=None if format_ == "auto" else format_,
        license="unknown" if license_ is None else license_,
        model=model,
        tools=listed_in(tools) if tools else (),
        released=release,
    )
    path = dataset_path(dataset)
    with same_command_goes_on():
        report = import_trajectories(request, path, say=say)
    _tell_conversations(report, path)
    if json_:
        print(json.dumps(_conversations_for_programs(report), ensure_ascii=False))  # noqa: T201
    if not report.read:
        raise SynthError(f"no rows in {', '.join(files)}: every file is empty")
    if not (report.added or report.known):
        raise SynthError(f"no conversation of {report.read:,} rows could be taken; reasons above")


def _tell_conversations(report: "ImportedTrajectories", path: Path) -> None:
    from synth.render.foreign_text import one_line

    for refusal in report.listed[:SHOWN_REFUSALS]:
        words = f"{refusal.path}, {refusal.place}: {refusal.reason}: {refusal.words}"
        say(one_line(words))
    refused = report.refused.total()
    if refused > SHOWN_REFUSALS:
        say(
            f"... and {refused - SHOWN_REFUSALS:,} more refused rows; the table stages names all: "
            f'synth sql "{REFUSED_QUERY}" --dataset {path}'
        )
    say(
        f"{report.read:,} rows: {report.added:,} added, {report.known:,} there already, "
        f"{report.repeated:,} repeated in the files, {refused:,} refused"
    )
    if refused:
        say(f"refused: {counted(report.refused)}")
    if report.added:
        say(f"added: {counted(report.formats)}")
        say(f"what they lack: {counted(report.lacks)}")
        say(f"judge them: synth grade {path}")
    for name in report.not_released:
        say(f"--release {one_line(name)}: no conversation shows such a tool")


def _conversations_for_programs(report: "ImportedTrajectories") -> dict[str, object]:
    return {
        "read": report.read,
        "added": report.added,
        "known": report.known,
        "repeated": report.repeated,
        "refused": dict(report.refused),
        "formats": dict(report.formats),
        "lacks": dict(report.lacks),
        "listed": [refusal._asdict() for refusal in report.listed],
    }
