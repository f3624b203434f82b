"""Commands that read a dataset: sql, view, report, export, diff, replay."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from flows.cli.shared.options import DatasetOption, Flag, Json
from flows.cli.shared.output import print_rows, say
from records.errors import ConfigError, SynthError


def register(app: App) -> None:
    for command in (sql, view, report, export, diff, replay):
        app.command(command)


def sql(query: str, *, dataset: DatasetOption = None, json_: Json = False) -> None:
    """Run one SQL query (DuckDB) over the dataset's tables, and print the rows.

    Every table is a view: trajectories (with `accepted` of the newest curation), tool_calls, tasks,
    agents, personas, tools, proposals, domains, verdicts, calibration, labels, curation,
    rephrasings (with the newest decision), rephrasing_measurements, rephrasing_gates,
    rephrasing_verdicts, rephrasing_calibration, rephrasing_decisions, llm_calls, stages, runs,
    timings, and the readers' views sft, rl and pretrain. Try `synth sql "show tables"`.

    Parameters
    ----------
    query
        Such as "select outcome, count(*) from trajectories group by all".
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON list of objects.
    """
    from flows.runtime.settings import open_dataset
    from records.reading.query import run_sql

    found = run_sql(open_dataset(dataset), query)
    print_rows(found.columns, found.rows, json_=json_)


def view(trajectory_id: str, *, dataset: DatasetOption = None) -> None:
    """Print one trajectory to be read: the conversation, the calls, the verdicts.

    The id of a rewritten text prints that beside its source, with what was measured of it.

    Parameters
    ----------
    trajectory_id
        The whole id, or enough of its beginning to be the only one.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    """
    from flows.runtime.settings import open_dataset
    from synth.publish.view import show_trajectory
    from synth.rephrasing.view import beginning_with, show_rephrasing

    store = open_dataset(dataset)
    if rephrasing_id := beginning_with(store, trajectory_id):
        show_rephrasing(store, rephrasing_id)
    else:
        show_trajectory(store, trajectory_id)


def report(path: str | None = None, *, out: Path | None = None) -> None:
    """Write the dataset's report: one HTML file that loads nothing from elsewhere.

    Parameters
    ----------
    path
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    out
        Where to write it; default report.html in the dataset.
    """
    from flows.runtime.settings import open_dataset, writing_to
    from synth.publish.report import write_report

    store = open_dataset(path)
    with writing_to("--out", out):
        print(write_report(store, out))  # noqa: T201


def export(
    path: str | None = None,
    *,
    out: Path,
    format_: Annotated[Literal["hf", "openai", "texts"], Parameter(name="--format")] = "hf",
    include_heldout: Flag = False,
    include_unknown_license: Flag = False,
    include_code_alone: Flag = False,
    include_flagged: Flag = False,
    reasoning: Literal["none", "field", "think"] = "none",
) -> None:
    """Write the accepted trajectories, or the kept rewrites, for other trainers.

    Trajectories come with a dataset card.

    Parameters
    ----------
    path
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    out
        Folder to make; it must not exist yet.
    format_
        hf: Parquet for `datasets.load_dataset(OUT)`; openai: JSON lines of messages and tools;
        texts: the kept rewrites of `synth rephrase` as Parquet.
    include_heldout
        Also write rows held out for evaluation, in splits of their own.
    include_unknown_license
        Also write rows whose tools, or source, state no licence.
    include_code_alone
        Also write rows that code alone accepted, since no judge's word counted: there was none, or
        it is below its minimum quality.
    include_flagged
        Also write rewrites with a hint that no judge has cleared: all where there was no judge.
    reasoning
        What becomes of agents' thoughts: none leaves them out; field writes `reasoning_content`
        beside the content (hf only: OpenAI's form has no such field); think puts them before the
        content between <think> and </think>.
    """
    from flows.runtime.settings import open_dataset, writing_to
    from synth.publish.export import export_dataset
    from synth.publish.export_texts import export_texts

    strangers = (
        {"--include-code-alone": include_code_alone, "--reasoning": reasoning != "none"}
        if format_ == "texts"
        else {"--include-flagged": include_flagged}
    )
    if given := [option for option, is_given in strangers.items() if is_given]:
        of = "trajectories" if format_ == "texts" else "rewrites"
        raise ConfigError(
            f"--format {format_} has nothing that {' or '.join(given)} could let in or leave out: "
            f"it is about {of}; leave it away"
        )
    store = open_dataset(path)
    if format_ == "texts":
        with writing_to("--out", out):
            texts = export_texts(
                store,
                out,
                include_heldout=include_heldout,
                include_unknown_license=include_unknown_license,
                include_flagged=include_flagged,
            )
        print(json.dumps(texts._asdict()))  # noqa: T201
        return
    with writing_to("--out", out):
        written = export_dataset(
            store,
            out,
            format=format_,
            include_heldout=include_heldout,
            include_unknown_license=include_unknown_license,
            include_code_alone=include_code_alone,
            reasoning=reasoning,
        )
    if n := written.left_out.get("code_alone"):
        say(
            f"left out {n} that code alone accepted (no judge's word counted); to let them in, add "
            "--include-code-alone"
        )
    print(json.dumps(written._asdict()))  # noqa: T201


def diff(
    first: Path,
    second: Path,
    *,
    bytes_: Flag = False,
) -> None:
    """Compare the content tables of two datasets; exit code 1 when they differ.

    Parameters
    ----------
    first
        Folder of a dataset.
    second
        Folder of another.
    bytes_
        Compare the canonical bytes of each table and print their sha256, instead of the first rows
        that differ.
    """
    from hashlib import sha256

    from flows.runtime.settings import open_dataset
    from records.reading.canonical import CONTENT, canonical_bytes, differences

    a, b = open_dataset(str(first)), open_dataset(str(second))
    if bytes_:
        different = []
        for table in CONTENT:
            left, right = (sha256(canonical_bytes(d, table)).hexdigest() for d in (a, b))
            print(f"{'same' if left == right else 'DIFF'}  {table:<14} {left} {right}")  # noqa: T201
            different += [table] if left != right else []
    else:
        different = differences(a, b)
        for found in different:
            print(*found)  # noqa: T201
    if different:
        raise SynthError(f"{first} and {second} differ: {len(different)} differences")
    print("the content tables are the same", file=sys.stderr)  # noqa: T201


def replay(
    trajectory_id: str,
    *,
    dataset: DatasetOption = None,
    cassette: bool = False,
    json_: Json = False,
) -> None:
    """Execute a trajectory's recorded actions again; compare observations and state hashes.

    Parameters
    ----------
    trajectory_id
        The whole id, or enough of its beginning to be the only one.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    cassette
        Start no server: its recorded answers stand in for it.
    json_
        Print the comparison as JSON.
    """
    import asyncio

    from flows.runtime.settings import open_dataset
    from synth.episode.replay import replay as replay_trajectory
    from synth.pipeline.config import RunConfig
    from synth.pipeline.config_files import recorded_config
    from synth.pipeline.sources import catalogue_of
    from synth.publish.view import full_id

    store = open_dataset(dataset)
    full = full_id(store, trajectory_id)
    rows = store.rows("trajectories", ["trajectory_id", "run_id"])
    run_id = next(row["run_id"] for row in rows if row["trajectory_id"] == full)
    config = recorded_config(store, run_id)
    assert isinstance(config, RunConfig), "trajectories come from pipelines"
    environment, episode = catalogue_of(store, config), config.rollouts.episode
    found = asyncio.run(replay_trajectory(store, full, environment, episode, cassette=cassette))
    if json_:
        print(json.dumps(found._asdict(), default=str))  # noqa: T201
    else:
        print(f"{found.num_calls} calls executed again, {len(found.differences)} differ")  # noqa: T201
        for difference in found.differences:
            print(f"  {difference}")  # noqa: T201
    if found.differences:
        raise SynthError(f"{full} does not replay: {len(found.differences)} differences")
