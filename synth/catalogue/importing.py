"""Tools from outside into a dataset, outside of any run: servers, URLs, registries and files.

Everything that one call brings is looked at together before anything is committed, so that which of
two duplicates stays does not hang on the order of the arguments. What the dataset holds already
stays as it is. Tools of a server that runs here are never left out as duplicates: a run that names
the server needs its whole list.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from records.config import Config
from records.digest import digest
from records.errors import ConfigError, ItemError, TransientError
from records.store.dataset import Dataset, ItemStatus
from records.store.journal import ShardJournal
from records.store.lease import hold
from records.tables.schemas import Row
from sandboxes.installing.client_files import (
    CLIENT_FILES,
    DEFINITIONS,
    ClientServers,
    client_servers,
)
from sandboxes.installing.install import installed
from sandboxes.lending.leases import available
from sandboxes.mcp.http import token_of
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import load_server, server_of_command
from sandboxes.mcp.remote import checked_url, list_remote
from sandboxes.mcp.servers import builtin_servers
from synth.catalogue.registry_import import RegistryImport, import_registry
from synth.engine.stages import KEPT
from tool_specs.coverage.duplicates import repeats
from tool_specs.importing.instructing.finding import check_releases, released_of
from tool_specs.importing.tool_files import CATEGORY, read_listings
from tool_specs.importing.tool_lists import QUARANTINED, Listing, ToolListSource, rows_of_answer

RUN_ID = "import"
"""Imports belong to no run; their rows carry this in its place."""


class ImportRequest(Config):
    servers: tuple[str, ...] = ()
    """Built-in servers by name, definition files, clients' files with `mcpServers`, or command
    lines."""

    urls: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    """Hosts on which servers that a registry names may be asked."""

    released: tuple[str, ...] = ()
    """Tools, written SERVER/TOOL, that are used although their texts were found to instruct the
    model that reads them."""

    token_env: str | None = None
    """Name of the variable whose value is sent to `urls` as a bearer token."""


class ImportReport(NamedTuple):
    tools: dict[str, Counter[str]]
    """Source -> tools by what became of them: `kept`, `known`, or the reason."""

    registries: dict[str, RegistryImport]
    failed: dict[str, str]
    """URL -> why it gave nothing."""

    urls: int
    """URLs that were asked, those of clients' files included."""

    def totals(self) -> Counter[str]:
        return sum(self.tools.values(), Counter())

    def summary(self) -> dict[str, int]:
        """listed = kept + known + dropped + quarantined."""
        totals = self.totals()
        quarantined = sum(totals[reason] for reason in QUARANTINED)
        given = {"listed": totals.total(), "kept": totals["kept"], "known": totals["known"]}
        rest = given["listed"] - given["kept"] - given["known"] - quarantined
        return given | {"dropped": rest, "quarantined": quarantined}


class _Found(NamedTuple):
    """Rows of one source, whether its tools run here, and the items that it settles."""

    label: str
    rows: list[Row]
    runs_here: bool
    items: dict[str, ItemStatus]


def servers_named(text: str) -> ClientServers:
    """A built-in server by name, a definition file, a client's file, or a command line."""
    if text in builtin_servers():
        return ClientServers((builtin_servers()[text],), {})
    if text.endswith(CLIENT_FILES):
        return client_servers(Path(text))
    if text.endswith(DEFINITIONS):
        return ClientServers((load_server(Path(text)),), {})
    return ClientServers((server_of_command(text),), {})


async def import_tools(
    request: ImportRequest, path: Path, *, say: Callable[[str], None] = lambda line: None
) -> ImportReport:
    """Add the tools of every source to the dataset at `path`, all in one commit.

    ConfigError, before anything is written, for a file or a server that cannot be read. A URL that
    fails is told in the report; a registry that stops half-way is TransientError, and the same call
    goes on with it.
    """
    urls = [checked_url(url) for url in (*request.urls, *request.registries)]
    token = _token(request)
    named = [servers_named(text) for text in request.servers]
    remote = [url for one in named for url in one.remote.values()]
    if request.allow_hosts and not request.registries:
        raise ConfigError("--allow-host is about servers of a registry; add --registry")
    listings = [listing for file in request.files for listing in read_listings(file)]
    configs = [config for one in named for config in one.servers]
    if configs and (reason := available()):
        raise ConfigError(f"an MCP server is only ever started in a sandbox: {reason}")
    if not (listings or configs or urls or remote):
        raise ConfigError("nothing to import; name --server, --url, --registry or --file")
    configs = [await installed(config, say=say) for config in configs]
    dataset = Dataset.create_or_open(path)
    with hold(dataset, run_id=RUN_ID, what="synth tools import"), ExitStack() as stack:
        found = [_listed("file", listing, request.released) for listing in listings]
        for config in configs:
            rows = await import_server(config, released_of(config.name, request.released))
            item = digest("import", config.identity())
            found.append(_Found(config.name, rows, True, {item: KEPT}))
        failed: dict[str, str] = {}
        for url in request.urls:
            found += await _of_url(url, token, failed, request.released)
        for url in remote:
            found += await _of_url(url, None, failed, request.released)
        registries: dict[str, RegistryImport] = {}
        journals = []
        for url in dict.fromkeys(request.registries):
            journal = dataset.root / "journal" / RUN_ID / f"registry-{digest(url)}.sqlite"
            journals.append(journal)
            registries[url] = await import_registry(
                url,
                allow_hosts=frozenset(host.lower() for host in request.allow_hosts),
                journal=stack.enter_context(ShardJournal(journal)),
                say=say,
            )
            found += _of_registry(registries[url], request.released)
        there: dict[str, list[str]] = {}
        for row in (row for one in found for row in one.rows):
            there.setdefault(row["server"], []).append(row["name"])
        check_releases(request.released, there, "--release")
        report = ImportReport(
            _commit(dataset, found), registries, failed, len(request.urls) + len(remote)
        )
        stack.close()
        for journal in journals:  # committed: the next import asks the registry anew
            for file in journal.parent.glob(f"{journal.name}*"):
                file.unlink()
    return report


def _token(request: ImportRequest) -> str | None:
    """The token for `urls`. ConfigError where it would go nowhere, to several, or in the clear."""
    if request.token_env is None:
        return None
    if not request.urls:
        raise ConfigError("--token-env is sent to each --url and to nothing else; add --url")
    parts = [urlsplit(url) for url in request.urls]
    hosts = sorted({one.hostname or "" for one in parts})
    if len(hosts) > 1:
        raise ConfigError(
            f"--token-env would give one token to {', '.join(hosts)}; import each host by itself"
        )
    if not _is_loopback(hosts[0]) and any(one.scheme != "https" for one in parts):
        raise ConfigError(f"--token-env would go to {hosts[0]} unencrypted; use https://")
    return token_of(request.token_env)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _listed(kind: str, listing: Listing, released: Sequence[str]) -> _Found:
    source = listing.source
    decided = released_of(source.server, released)
    rows = rows_of_answer(listing.tools, source, listing.dialect, decided=decided)
    item = digest("import", kind, source.server, sorted(row["tool_id"] for row in rows))
    return _Found(source.server, rows, False, {item: KEPT})


async def _of_url(
    url: str, token: str | None, failed: dict[str, str], released: Sequence[str]
) -> Iterable[_Found]:
    try:
        answer = await list_remote(url, token=token)
    except (TransientError, ItemError) as error:
        failed[url] = str(error)
        return []
    source = ToolListSource(server=url.partition("://")[2], category=CATEGORY, may_write=True)
    return [_listed("url", Listing(source, answer.tools), released)]


def _of_registry(registry: RegistryImport, released: Sequence[str]) -> Iterable[_Found]:
    for listing in registry.listings:
        source = listing.source
        decided = released_of(source.server, released)
        rows = rows_of_answer(listing.tools, source, decided=decided)
        yield _Found(source.server, rows, False, {})
    yield _Found("", [], False, {outcome.item: outcome.status for outcome in registry.outcomes})


def _commit(dataset: Dataset, found: Sequence[_Found]) -> dict[str, Counter[str]]:
    """Write what is new; what became of each source's tools."""
    known = dataset.ids("tools")
    new: dict[str, Row] = {}
    counts: dict[str, Counter[str]] = {}
    rows: list[tuple[str, Row]] = []
    for one in found:
        counts.setdefault(one.label, Counter())
        for row in one.rows:
            if row["tool_id"] in known or row["tool_id"] in new:
                counts[one.label]["known"] += 1
            else:
                new[row["tool_id"]] = row
                rows.append((one.label, row))
    here = {row["tool_id"] for one in found if one.runs_here for row in one.rows}
    held = [row for row in dataset.rows("tools") if row["source"] == "mcp"]
    mark_duplicates(new.values(), here=here, held=held)
    for label, row in rows:
        counts[label][row["drop_reason"] or "kept"] += 1
    items = {item: status for one in found for item, status in one.items.items()}
    if new or items:
        dataset.commit(
            run_id=RUN_ID,
            stage="import",
            shard=len(dataset.commits()),
            tables={"tools": [new[key] for key in sorted(new)]},
            items=items,
        )
    return {label: count for label, count in counts.items() if label}


def mark_duplicates(rows: Iterable[Row], *, here: set[Any], held: Sequence[Row]) -> None:
    """Give each new row that repeats another its reason and, in its annotations, what it repeats.

    `here`: ids of tools that run here, which stay. `held`: what the dataset holds.
    """
    usable = [row for row in rows if row["drop_reason"] is None]
    kept = [row for row in held if row["drop_reason"] is None]
    kept += [row for row in usable if row["tool_id"] in here]
    compared = [row for row in usable if row["tool_id"] not in here]
    found = repeats(compared, kept=kept)
    for row in compared:
        if (repeat := found.get(row["tool_id"])) is not None:
            row["drop_reason"] = "duplicate" if repeat.exact else "near_duplicate"
            row["annotations"] = row["annotations"] | {"duplicateOf": repeat.of}
