"""The commands `synth tools import`, for tools of others, and `synth import`, for conversations."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from flows.cli.shared.options import DatasetOption, Json, License
from flows.cli.shared.output import say
from records.errors import SynthError

if TYPE_CHECKING:
    from synth.catalogue.importing import ImportReport
    from synth.importing.importing import ImportedTrajectories

Several = Parameter(negative="")


def import_(
    *,
    server: Annotated[tuple[str, ...], Several] = (),
    url: Annotated[tuple[str, ...], Several] = (),
    registry: Annotated[list[str] | None, Parameter(negative="", consume_multiple=(0, 1))] = None,
    file: Annotated[tuple[Path, ...], Several] = (),
    allow_host: Annotated[tuple[str, ...], Several] = (),
    token_env: str | None = None,
    release: Annotated[tuple[str, ...], Several] = (),
    dataset: DatasetOption = None,
    json_: Json = False,
) -> None:
    """Add the tools of MCP servers, registries and files to the dataset.

    Every tool listed becomes a row: kept, or left out with its reason. Each option may be given
    several times; what they bring is compared together, and duplicates are left out.

    Parameters
    ----------
    server
        A server to start in a sandbox: a built-in one by name, the path of a definition (.yaml) or
        of a file with mcpServers (.json), or a quoted command line such as "uvx mcp-server-time",
        whose packages are installed first, from the indexes of your own pip or npm settings.
    url
        A running server to ask over streamable HTTP. Its tools are imported as specs.
    registry
        An MCP registry by its address, the official one if none follows. Lists every server; asks
        those whose host --allow-host names. Goes on where it stopped when run again.
    file
        tools/list answers (JSON, JSON lines, gzipped), a tool list or a request body of OpenAI,
        Anthropic, Gemini, Bedrock or LangChain, or an OpenAPI 3 document.
    allow_host
        A host on which servers of a registry may be asked for their tools.
    token_env
        Name of the environment variable whose value is sent to each --url as a bearer token. All
        of them must be of one host, by https:// unless it is this machine.
    release
        A tool, written SERVER/TOOL, that is used although its texts were found to instruct the
        model that reads them. Read it first; `synth tools list --drop-reason
        instructing_description` names what was stopped.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    json_
        Print what became of each source, and of each server of a registry, as JSON.
    """
    import asyncio

    from flows.runtime.settings import dataset_path
    from sandboxes.mcp.registry import OFFICIAL_URL
    from synth.catalogue.importing import ImportRequest, import_tools

    registries = () if registry is None else (tuple(registry) or (OFFICIAL_URL,))
    request = ImportRequest(
        servers=server,
        urls=url,
        registries=registries,
        files=file,
        allow_hosts=allow_host,
        released=release,
        token_env=token_env,
    )
    report = asyncio.run(import_tools(request, dataset_path(dataset), say=say))
    _tell(report)
    if json_:
        print(json.dumps(_for_programs(report), ensure_ascii=False))  # noqa: T201
    if report.failed:
        raise SynthError(
            f"{len(report.failed)} of {report.urls} URLs gave nothing; the rest is there"
        )


SHOWN = 10
"""Sources that are named one by one; of more, the totals say what matters."""


def _tell(report: "ImportReport") -> None:
    from synth.render.foreign_text import one_line

    for registry, found in report.registries.items():
        reasons = {}
        for outcome in found.outcomes:
            key = outcome.status.reason or outcome.status.status
            reasons[key] = reasons.get(key, 0) + 1
        say(f"{registry}: {len(found.outcomes)} servers: {_counted(reasons)}")
        if found.num_bad:
            say(f"{registry}: {found.num_bad} entries without a valid name")
        if hosts := found.hosts_left_out().most_common(SHOWN):
            named = ", ".join(f"{one_line(host)} ({count})" for host, count in hosts)
            say(f"{registry}: not asked, for want of --allow-host: {named}")
    for label, counts in list(report.tools.items())[:SHOWN]:
        kept, known = counts["kept"], counts["known"]
        left_out = counts.total() - kept - known
        again = f", {known} there already" if known else ""
        say(f"{one_line(label)}: {kept} tools added, {left_out} left out{again}")
    if len(report.tools) > SHOWN:
        say(f"... and {len(report.tools) - SHOWN} more sources")
    for url, problem in report.failed.items():
        say(f"{one_line(url)}: {one_line(problem)}")
    if report.tools:
        say(", ".join(f"{key} {count}" for key, count in report.summary().items()))
        reasons = report.totals()
        left_out = {key: reasons[key] for key in reasons if key not in ("kept", "known")}
        if left_out:
            say(f"left out: {_counted(left_out)}")


def _counted(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{key.replace('_', ' ')} {count}" for key, count in ordered)


def _for_programs(report: "ImportReport") -> dict[str, object]:
    return {
        "summary": report.summary(),
        "sources": {label: dict(counts) for label, counts in report.tools.items()},
        "servers": [
            outcome.shown() for found in report.registries.values() for outcome in found.outcomes
        ],
        "failed": report.failed,
    }


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
    What a file does not hold stays unknown: `select lacks, count(*) from imports group by all`.
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
    from flows.runtime.settings import dataset_path
    from synth.importing.importing import TrajectoryImport, import_trajectories
    from synth.importing.offered_tools import listed_in

    request = TrajectoryImport(
        files=tuple(files),
        format=None if format_ == "auto" else format_,
        license=license_ or "unknown",
        model=model,
        tools=listed_in(tools) if tools else (),
        released=release,
    )
    path = dataset_path(dataset)
    report = import_trajectories(request, path, say=say)
    _tell_conversations(report, path)
    if json_:
        print(json.dumps(_conversations_for_programs(report), ensure_ascii=False))  # noqa: T201
    if report.read and not (report.added or report.known):
        raise SynthError(f"no conversation of {report.read:,} rows could be taken; reasons above")


def _tell_conversations(report: "ImportedTrajectories", path: Path) -> None:
    from synth.render.foreign_text import one_line

    for refusal in report.listed[:SHOWN_REFUSALS]:
        words = f"{refusal.path}, {refusal.place}: {refusal.reason}: {refusal.words}"
        say(one_line(words))
    refused = report.refused.total()
    if refused > SHOWN_REFUSALS:
        say(f"... and {refused - SHOWN_REFUSALS:,} more refused rows")
    say(
        f"{report.read:,} rows: {report.added:,} added, {report.known:,} there already, "
        f"{report.repeated:,} repeated in the files, {refused:,} refused"
    )
    if refused:
        say(f"refused: {_counted(report.refused)}")
    if report.added:
        say(f"added: {_counted(report.formats)}")
        say(f"what they lack: {_counted(report.lacks)}")
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
