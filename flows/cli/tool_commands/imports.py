"""Command `synth tools import`: tools of servers, registries and files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli.shared.options import DatasetOption, Json
from flows.cli.shared.output import counted, say
from records.errors import SynthError

if TYPE_CHECKING:
    from synth.catalogue.importing import ImportReport

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
        say(f"{registry}: {len(found.outcomes)} servers: {counted(reasons)}")
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
            say(f"left out: {counted(left_out)}")


def _for_programs(report: "ImportReport") -> dict[str, object]:
    return {
        "summary": report.summary(),
        "sources": {label: dict(counts) for label, counts in report.tools.items()},
        "servers": [
            outcome.shown() for found in report.registries.values() for outcome in found.outcomes
        ],
        "failed": report.failed,
    }
