"""Commands that read a dataset: sql, view, report, export, diff, replay."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from flows.cli.shared.options import DatasetOption, Flag, Json
from flows.cli.shared.output import print_rows, say
from records.errors import ConfigError, SynthError


def register(app: App) -> None:
    for command in (sql, view, report, export, diff, replay):
        app.command(command)


def sql(
    query: str | None = None,
    *,
    dataset: DatasetOption = None,
    views: Flag = False,
    json_: Json = False,
) -> None:
    """Run one SQL query (DuckDB) over the dataset's tables, and print the rows.

    Every table is a view: trajectories (with `accepted` of the newest curation), tool_calls,
    simulations, imports, tasks, difficulty, agents, personas, tools, proposals, server_starts,
    server_goals, domains, verdicts, calibration, labels, curation, contaminations,
    embedded_passages, rephrasings (with the newest decision), rephrasing_measurements,
    rephrasing_gates, rephrasing_verdicts, rephrasing_calibration, rephrasing_decisions, selection,
    llm_calls, stages, runs, timings, and the readers' views sft, preferences, rl and pretrain. Try
    `synth sql "show tables"`.

    Parameters
    ----------
    query
        Such as "select outcome, count(*) from trajectories group by all".
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    views
        Instead of a query: print the statements that make the views in any DuckDB, from any folder,
        over what is committed now. `synth sql --views > boats.sql && duckdb -init boats.sql`
    json_
        Print a JSON list of objects.
    """
    from flows.runtime.settings import open_dataset
    from records.reading.query import run_sql

    if (query is None) != views or (views and json_):
        raise ConfigError(
            "synth sql takes a query, or --views and nothing beside it: "
            'synth sql "show tables", synth sql --views'
        )
    store = open_dataset(dataset)
    if query is None:
        print(store.views(), end="")  # noqa: T201
        return
    found = run_sql(store, query)
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
    format_: Annotated[
        Literal["hf", "trl", "openai", "sharegpt", "verl", "k2", "atif", "preferences", "texts"],
        Parameter(name="--format"),
    ] = "hf",
    file_type: Literal["parquet", "jsonl"] | None = None,
    include_heldout: Flag = False,
    include_unknown_license: Flag = False,
    include_code_alone: Flag = False,
    include_flagged: Flag = False,
    reasoning: Literal["none", "field", "think"] = "none",
    declarations: Literal["json", "typescript"] = "json",
    arguments: Literal["object", "text"] = "object",
    unpaired: Flag = False,
    push: str | None = None,
    private: Flag = False,
) -> None:
    """Write the accepted trajectories, or the kept rewrites, for other trainers.

    Trajectories come with a dataset card. docs/exports.md shows a row in each format, and how
    which trainer reads it.

    Parameters
    ----------
    path
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    out
        Folder to make; it must not exist yet.
    format_
        hf: Parquet for `datasets.load_dataset(OUT)` with all that is known of a row;
        trl: messages and tools, for TRL and trainers that read as it does (axolotl, ms-swift,
        prime-rl, NeMo);
        openai: JSON lines for OpenAI's fine-tuning;
        sharegpt: conversations for LLaMA-Factory, with its dataset_info.json;
        verl: rows for its supervised training, and tasks for its reinforcement learning;
        k2: text as Kimi K2's chat template writes it;
        atif: documents of the Agent Trajectory Interchange Format;
        preferences: pairs of an accepted and a failed attempt at one task, and attempts with a
        label;
        texts: the kept rewrites of `synth rephrase` as Parquet.
    file_type
        parquet or jsonl, where the format has both; the default is the format's own.
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
        beside the content (where the format has such a field); think puts them before the content
        between <think> and </think>.
    declarations
        How the format k2 declares tools: OpenAI's JSON, or TypeScript, which is much shorter.
    arguments
        What arguments of calls are in hf, trl, verl and preferences: object, as chat templates take
        them; text for trainers that parse it and drop nulls from objects before that (axolotl).
    unpaired
        Of preferences only the attempts with a label (KTOTrainer), which need no second attempt at
        a task.
    push
        Repository of the Hugging Face hub, as OWNER/NAME, to upload the folder to: a data set,
        made where there is none. The token is the hub client's own (HF_TOKEN, or `hf auth login`).
    private
        Make the repository private.
    """
    from flows.runtime.settings import open_dataset, writing_to
    from synth.exports.export import export_dataset
    from synth.exports.push import HubRepository
    from synth.exports.texts import export_texts

    strangers = {"--include-flagged": include_flagged}
    if format_ == "texts":
        strangers = {
            "--include-code-alone": include_code_alone,
            "--reasoning": reasoning != "none",
            "--file-type": file_type is not None,
            "--arguments": arguments != "object",
            "--unpaired": unpaired,
        }
    strangers |= {"--declarations": declarations != "json" and format_ != "k2"}
    if given := [option for option, is_given in strangers.items() if is_given]:
        of = "trajectories" if format_ == "texts" else "rewrites"
        told = "only k2 declares tools as text" if declarations != "json" else f"it is about {of}"
        raise ConfigError(
            f"--format {format_} has nothing that {' or '.join(given)} could let in or leave out: "
            f"{told}; leave it away"
        )
    if private and push is None:
        raise ConfigError("--private is about the repository of --push; name one, or leave it away")
    # whoever may not upload is told so before anything is written
    repository = HubRepository(push, private=private) if push is not None else None
    store = open_dataset(path)
    with writing_to("--out", out):
        if format_ == "texts":
            written = export_texts(
                store,
                out,
                include_heldout=include_heldout,
                include_unknown_license=include_unknown_license,
                include_flagged=include_flagged,
            )
        else:
            written = export_dataset(
                store,
                out,
                format=format_,
                file_type=file_type,
                include_heldout=include_heldout,
                include_unknown_license=include_unknown_license,
                include_code_alone=include_code_alone,
                reasoning=reasoning,
                declarations=declarations,
                arguments=arguments,
                unpaired=unpaired,
            )
    if n := written.left_out.get("code_alone"):
        say(
            f"left out {n} that code alone accepted (no judge's word counted); to let them in, add "
            "--include-code-alone"
        )
    told = written._asdict()
    if n := told.get("flags_lost"):
        say(
            f"{n} rows have messages that carry no loss, and {format_} cannot say so: a trainer "
            "learns them"
        )
    if repository is not None:
        told["pushed"] = repository.upload(out)
    print(json.dumps(told))  # noqa: T201


def diff(
    first: str,
    second: str,
    *,
    dataset: DatasetOption = None,
    bytes_: Flag = False,
    json_: Json = False,
) -> None:
    """Compare two datasets, or two curations of one; exit code 1 when they differ.

    Of datasets the content tables are compared, row by row. With --dataset, FIRST and SECOND are
    curations of it: printed are the counts by reason, and every trajectory that one keeps or drops
    otherwise than the other, with both reasons.

    Parameters
    ----------
    first
        Folder of a dataset; with --dataset the id of a curation, or enough of its beginning.
    second
        Folder of another; with --dataset another curation.
    dataset
        Folder of the dataset whose curations are compared.
    bytes_
        Compare the canonical bytes of each table and print their sha256, instead of the first rows
        that differ.
    json_
        Print the comparison of curations as JSON.
    """
    if dataset is not None:
        if bytes_:
            raise ConfigError(
                "--bytes compares two datasets, and --dataset says that two curations are meant: "
                "leave one of them out"
            )
        _diff_curations(dataset, first, second, json_=json_)
        return
    if json_:
        raise ConfigError("--json is about curations: name their dataset with --dataset")
    _diff_datasets(first, second, bytes_=bytes_)


def _diff_curations(path: str, first: str, second: str, *, json_: bool) -> None:
    from flows.runtime.settings import open_dataset
    from synth.curation.comparison import ChangedRow, ReasonCount, compare_curations

    found = compare_curations(open_dataset(path), first, second)
    if json_:
        reasons, changed = ([one._asdict() for one in many] for many in found[2:])
        print(json.dumps(found._asdict() | {"reasons": reasons, "changed": changed}))  # noqa: T201
    else:
        print_rows(ReasonCount._fields, found.reasons, json_=False)
        print()  # noqa: T201
        print_rows(ChangedRow._fields, found.changed, json_=False)
    if found.changed:
        raise SynthError(f"{len(found.changed)} trajectories differ")
    say("the curations are the same")


def _diff_datasets(first: str, second: str, *, bytes_: bool) -> None:
    from hashlib import sha256

    from flows.runtime.settings import open_dataset
    from records.reading.canonical import CONTENT, canonical_bytes, differences

    a, b = open_dataset(first), open_dataset(second)
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
    say("the content tables are the same")


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
    from records.tables.task_tables import IMPORTED
    from synth.episode.replay import replay as replay_trajectory
    from synth.pipeline.config import RunConfig
    from synth.pipeline.config_files import recorded_config
    from synth.pipeline.sources import catalogue_of
    from synth.publish.view import full_id

    store = open_dataset(dataset)
    full = full_id(store, trajectory_id)
    rows = store.rows("trajectories", ["trajectory_id", "run_id", "variant"])
    row = next(row for row in rows if row["trajectory_id"] == full)
    if row["variant"] == IMPORTED:
        raise ConfigError(
            f"{full} was imported: its calls were made elsewhere, and nothing here can execute "
            f"them again; synth view {full} shows them"
        )
    config = recorded_config(store, row["run_id"])
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
