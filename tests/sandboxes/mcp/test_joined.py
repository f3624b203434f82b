"""Joined servers that run: two programs, or a program and a domain, as one server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sandboxes.mcp.importing import import_server
from sandboxes.mcp.joined import LiveServer, open_live
from sandboxes.mcp.warm import WarmServers
from synth.episode.tools.mcp_executor import McpExecutor
from tests.sandboxes.mcp.joined_work import OFFICE, WARD, joined_in, with_book
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.known import known_domains

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

LEND = ("lend_item", {"item_id": 3, "member": "Ines Falk", "days": 3})
NOTE = ("set_note", {"name": "Ines Falk", "note": "tile cutter"})
PAY = ("record_payment", {"patient_id": "PT-1002", "amount": 45})


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def test_tools_of_two_programs_are_listed_called_and_seen_as_of_one(tmp_path: Path) -> None:
    office = joined_in(tmp_path, *OFFICE)

    async def run() -> None:
        async with open_live(office) as server:
            names = [tool["name"] for tool in await server.list_tools()]
            assert {"lend_item", "loans_search_items", "contacts_search_items"} < set(names)
            assert "search_items" not in names
            before = await server.state()
            assert changed({}, before) == {
                "loans/file",
                "loans/loans.db:item",
                "loans/members.json:members",
                "contacts/file",
                "contacts/contacts.json:contacts",
            }
            drill = await server.call("loans_search_items", {"text": "drill"})
            assert "cordless drill" in drill.text
            hall = await server.call("contacts_search_items", {"text": "hall"})
            assert "Mara Dietz" in hall.text
            assert (await server.call("search_items", {"text": "hall"})).is_error
            assert not (await server.call(*LEND)).is_error
            lent = await server.state()
            assert changed(before, lent) == {"loans/loans.db:loan"}
            assert not (await server.call(*NOTE)).is_error
            assert changed(lent, await server.state()) == {"contacts/contacts.json:contacts"}

    asyncio.run(run())


def test_a_domain_is_a_part_with_its_rows_and_its_rules(tmp_path: Path) -> None:
    (tmp_path / "contacts.yaml").write_text(
        "{command: python contact_server.py, writes: false, read_only_tools: [search_items]}"
    )
    ward = joined_in(tmp_path, *WARD)
    [known] = known_domains(["clinic_desk"])
    alone = DomainEnvironment.of(known.load())

    def rows_alone() -> dict[str, Any]:
        return {
            f"clinic_desk/{name}": {row[spec.key]: row for row in alone.rows(name)}
            for name, spec in alone.domain.entities.items()
        }

    async def run() -> None:
        async with open_live(ward) as server:
            before = await server.state()
            assert before == rows_alone()  # of the other part, which only reads, nothing is read
            assert not (await server.call(*PAY)).is_error
            alone.call(*PAY)
            assert await server.state() == rows_alone() != before
            refused = await server.call("write_off_balance", {"patient_id": "PT-1006"})
            assert refused.is_error
            assert "Never write off what a patient owes" in refused.text
            assert (await server.call(*NOTE)).is_error
            assert await server.state() == rows_alone()
        rows = {row["name"]: row for row in await import_server(ward)}
        assert {name for name, row in rows.items() if row["drop_reason"] is None} == {
            *alone.domain.programs,
            "search_items",
        }
        assert rows["set_note"]["drop_reason"] == "not_read_only"
        assert {row["annotations"]["part"] for row in rows.values()} == {"contacts", "clinic_desk"}

    asyncio.run(run())


def test_a_part_that_ends_in_a_call_is_started_again_with_all_that_was_done(tmp_path: Path) -> None:
    ward = joined_in(tmp_path, *WARD)

    async def run() -> None:
        executor = McpExecutor(lambda: open_live(ward))
        await executor.call(*PAY, read_only=False)
        done = executor.state_hash()
        ended = await executor.call("crash", {}, read_only=False)
        assert ended.error_code == "server_ended"
        assert executor.state_hash() == done
        noted = await executor.call(*NOTE, read_only=False)
        assert not noted.is_error
        assert [change["entity"] for change in noted.diff] == ["contacts/contacts.json:contacts"]
        await executor.close()

    asyncio.run(run())


def test_parts_are_used_again_fresh_and_no_two_users_wait_for_each_other(tmp_path: Path) -> None:
    with_book(tmp_path)
    office = joined_in(tmp_path, *OFFICE)
    inside = 0

    async def use(warm: WarmServers) -> tuple[Any, Any]:
        nonlocal inside
        async with warm.open(office) as server:
            inside += 1
            assert inside == 1  # two slots are all there are
            before = await noted(server)
            inside -= 1
            return before

    async def noted(server: LiveServer) -> tuple[Any, Any]:
        before = await server.state()
        assert not (await server.call("add_contact", {"name": "Pia", "email": "p@x.org"})).is_error
        return before, await server.state()

    async def run() -> None:
        async with WarmServers(live=2) as warm:
            first, second = await asyncio.gather(use(warm), use(warm))
            assert first == second
            assert first[0] != first[1]
            assert warm.starts == 3  # the loans twice, the contacts once

    asyncio.run(run())
