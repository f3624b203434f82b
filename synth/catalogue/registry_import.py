"""A whole MCP registry: its servers listed, and the tools of those that may be asked.

What is asked is decided by the operator: only remotes on hosts that `allow_hosts` names. No server
stops the import: each has an outcome, and its reason is counted. Pages and answers stand in a
journal until the import is committed, so that a stopped one goes on where it was.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

from records.digest import digest
from records.errors import ItemError, TransientError
from records.store.dataset import ItemStatus
from records.store.journal import ShardJournal
from sandboxes.mcp.registry import pages
from sandboxes.mcp.remote import list_remote
from tool_specs.importing.registry_entries import RegistryEntry, Remote
from tool_specs.importing.tool_files import CATEGORY
from tool_specs.importing.tool_lists import Listing, ToolListSource

AT_ONCE = 8
"""Servers that are asked at the same time; all of them are somebody else's."""


class EntryOutcome(NamedTuple):
    """What became of one entry of a registry."""

    registry: str
    entry: RegistryEntry
    status: ItemStatus
    detail: str
    num_tools: int

    @property
    def item(self) -> str:
        return digest("import", "registry", self.registry, self.entry.name, self.entry.version)

    def shown(self) -> dict[str, Any]:
        """For programs: the server, and what became of it."""
        entry = self.entry
        return {
            "server": entry.name,
            "version": entry.version,
            "state": entry.status,
            "license": entry.license,
            "repository": entry.repository,
            "remotes": [remote.url for remote in entry.remotes],
            "packages": list(entry.packages),
            "status": self.status.status,
            "reason": self.status.reason,
            "detail": self.detail,
            "tools": self.num_tools,
        }


class RegistryImport(NamedTuple):
    listings: list[Listing]
    outcomes: list[EntryOutcome]
    num_bad: int
    """Entries without a name that a registry allows."""

    def hosts_left_out(self) -> Counter[str]:
        """Hosts of remotes that could be asked and were not allowed, by servers."""
        return Counter(
            host
            for outcome in self.outcomes
            if outcome.status.reason == "host_not_allowed"
            for host in {remote.host for remote in outcome.entry.remotes if remote.fault is None}
        )


async def import_registry(
    url: str, *, allow_hosts: Collection[str], journal: ShardJournal, say: Callable[[str], None]
) -> RegistryImport:
    """Every server of the registry and the tools of those allowed. TransientError where the
    registry itself cannot be read to its end."""
    found: dict[tuple[str, str], RegistryEntry] = {}
    num_bad = num_pages = 0
    async for page in pages(url, journal):
        num_pages += 1
        num_bad += page.entries.count(None)
        # a server that changed while its registry was read stands on two pages: the later counts
        found |= {(entry.name, entry.version): entry for entry in page.entries if entry is not None}
        if num_pages % 10 == 0:
            say(f"{url}: {num_pages} pages, {len(found)} servers")
    at_once = asyncio.Semaphore(AT_ONCE)

    async def one(entry: RegistryEntry) -> tuple[EntryOutcome, Listing | None]:
        async with at_once:
            return await _outcome(url, entry, allow_hosts, journal)

    done = await asyncio.gather(*(one(found[key]) for key in sorted(found)))
    listings = [listing for _, listing in done if listing is not None]
    return RegistryImport(listings, [outcome for outcome, _ in done], num_bad)


async def _outcome(
    url: str, entry: RegistryEntry, allow_hosts: Collection[str], journal: ShardJournal
) -> tuple[EntryOutcome, Listing | None]:
    def ended(
        status: Literal["dropped", "failed"], reason: str | None, detail: str = ""
    ) -> tuple[EntryOutcome, None]:
        return EntryOutcome(url, entry, ItemStatus(status, reason), detail, 0), None

    if entry.status == "deleted":
        return ended("dropped", "deleted_entry")
    if not entry.is_latest:
        return ended("dropped", "not_latest")
    usable = [remote for remote in entry.remotes if remote.fault is None]
    allowed = [remote for remote in usable if remote.host in allow_hosts]
    if not allowed:
        return ended("dropped", _why_none(entry, usable))
    problem: TransientError | ItemError | None = None
    for remote in allowed:
        try:
            tools = await _tools(remote, journal)
        except (TransientError, ItemError) as error:
            problem = error
            continue
        source = ToolListSource(
            server=entry.name, category=CATEGORY, license=entry.license, may_write=True
        )
        outcome = EntryOutcome(url, entry, ItemStatus("kept", None), remote.url, len(tools))
        return outcome, Listing(source, tools)
    reason = problem.reason if isinstance(problem, ItemError) else "unreachable"
    return ended("failed", reason, str(problem))


def _why_none(entry: RegistryEntry, usable: list[Remote]) -> str:
    if usable:
        return "host_not_allowed"
    if entry.remotes:
        return entry.remotes[0].fault or "bad_url"
    return "package_only" if entry.packages else "no_remote"


async def _tools(remote: Remote, journal: ShardJournal) -> list[dict[str, Any]]:
    """What the remote lists; failures are not remembered, so that going on asks again."""
    key = digest("registry", "remote", remote.url)
    if (answer := journal.cached(key)) is None:
        answer = {"tools": (await list_remote(remote.url)).tools}
        journal.remember(key, answer)
    return answer["tools"]
