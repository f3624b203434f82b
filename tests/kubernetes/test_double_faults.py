"""Faults strike what they are asked to, as often as they are asked to, and quotas refuse; the log
tells who asked what; a killed server goes on where it was."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.kubernetes.double.process import Process
from tests.kubernetes.doubled import MAPS, PODS, Asking, a_map, a_pod, against, doubled

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def test_a_refusal_strikes_the_next_requests_that_match_and_no_other() -> None:
    async def test(ask: Asking) -> None:
        asked = {"verb": "create", "resource": "pods", "code": 429, "retry_after_s": 3, "count": 2}
        assert (await ask.fault(kind="status", **asked)).code == 201
        assert (await ask("POST", MAPS, a_map())).code == 201
        for _ in range(2):
            refused = await ask("POST", PODS, a_pod())
            assert (refused.code, refused.headers["Retry-After"]) == (429, "3")
            assert refused.body["reason"] == "TooManyRequests"
        assert (await ask("POST", PODS, a_pod())).code == 201
        assert (await ask("GET", "/double/faults")).body[0]["struck"] == 2

    against(test)


@pytest.mark.parametrize("code", [500, 503, 410])
def test_any_code_can_be_asked_for_until_it_is_taken_back(code: int) -> None:
    async def test(ask: Asking) -> None:
        await ask.fault(kind="status", code=code, count=None)
        assert [(await ask("GET", MAPS)).code for _ in range(3)] == [code] * 3
        assert (await ask("DELETE", "/double/faults")).code == 200
        assert (await ask("GET", MAPS)).code == 200

    against(test)


def test_an_unknown_fault_is_refused_by_name() -> None:
    async def test(ask: Asking) -> None:
        refused = await ask.fault(kind="earthquake")
        assert refused.code == 400
        assert "earthquake" in refused.body["message"]
        assert (await ask.fault(kind="status", verbs="get")).code == 400

    against(test)


def test_dropped_watches_end_without_an_end_and_compaction_sends_them_back_to_a_list() -> None:
    async def test(ask: Asking) -> None:
        version = (await ask("POST", MAPS, a_map())).version
        async with ask.watch(MAPS, resourceVersion=version) as events:
            assert (await ask.fault(kind="drop_watches")).body["struck"] == 1
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await events.next()
        await ask.patch(f"{MAPS}/m", {"data": {"x": "1"}})
        await ask.fault(kind="compact")
        async with ask.watch(MAPS, resourceVersion=version) as events:
            event = await events.next()
            assert event is not None
            assert (event[0], event[1]["code"]) == ("ERROR", 410)

    against(test)


def test_a_hang_answers_nothing_a_disconnect_less_and_a_delay_late() -> None:
    async def test(ask: Asking) -> None:
        await ask.fault(kind="hang", verb="list")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask("GET", MAPS), 0.2)
        await ask.fault(kind="disconnect", verb="create")
        with pytest.raises(aiohttp.ClientError):
            await ask("POST", MAPS, a_map())
        assert (await ask("GET", MAPS)).names == []
        await ask.fault(kind="delay", verb="list", seconds=0.01)
        assert (await ask("GET", MAPS)).code == 200

    against(test)


def test_a_quota_refuses_what_is_over_it_and_frees_what_goes() -> None:
    async def test(ask: Asking) -> None:
        hard = {"pods": "2", "limits.memory": "1Gi", "count/configmaps": "1"}
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": hard},
        }
        await ask("POST", QUOTAS, quota)
        unlimited = await ask("POST", PODS, a_pod())
        assert unlimited.code == 403
        assert "failed quota: q: must specify limits.memory" in unlimited.body["message"]
        container = {"name": "a", "image": "i", "resources": {"limits": {"memory": "600Mi"}}}
        assert (await ask("POST", PODS, a_pod("a", containers=[container]))).code == 201
        over = await ask("POST", PODS, a_pod("b", containers=[container]))
        assert (over.code, over.body["reason"]) == (403, "Forbidden")
        assert over.body["message"] == (
            'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=600Mi, '
            "used: limits.memory=600Mi, limited: limits.memory=1Gi"
        )
        used = (await ask("GET", f"{QUOTAS}/q")).body["status"]["used"]
        assert (used["pods"], used["limits.memory"]) == ("1", "600Mi")
        assert (await ask("POST", MAPS, a_map("a"))).code == 201
        assert (await ask("POST", MAPS, a_map("b"))).code == 403
        await ask.patch(f"{PODS}/a/status", {"status": {"phase": "Failed"}})
        assert (await ask("POST", PODS, a_pod("b", containers=[container]))).code == 201

    against(test)


def test_the_log_names_verb_resource_and_answer(tmp_path: Path) -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", MAPS, a_map())
        await ask("GET", f"{PODS}/none/status")
        await ask("DELETE", MAPS)
        async with ask.watch(MAPS, timeoutSeconds=1) as events:
            await events.next()

    against(test, log=tmp_path / "log")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    told = [(line["verb"], line["resource"], line["subresource"], line["code"]) for line in lines]
    assert told == [
        ("create", "configmaps", "", 201),
        ("get", "pods", "status", 404),
        ("deletecollection", "configmaps", "", 200),
        ("watch", "configmaps", "", 200),
    ]


def test_a_server_on_the_state_of_another_goes_on_where_that_was(tmp_path: Path) -> None:
    async def test() -> None:
        state: dict[str, Any] = {"state": tmp_path / "state"}
        async with doubled(**state) as ask:
            kept = await ask("POST", MAPS, a_map("kept", x="1"))
            await ask("POST", MAPS, a_map("gone"))
            gone = await ask("DELETE", f"{MAPS}/gone")
            assert gone.code == 200
            newest = (await ask("GET", MAPS)).version
        async with doubled(**state) as ask:
            listed = await ask("GET", MAPS)
            assert (listed.names, listed.version) == (["kept"], newest)
            assert (await ask("GET", f"{MAPS}/kept")).body == kept.body
            assert int((await ask("POST", MAPS, a_map("new"))).version) > int(newest)
            async with ask.watch(MAPS, resourceVersion=kept.version) as events:
                event = await events.next()
                assert event is not None
                assert event[1]["code"] == 410
            async with ask.watch(MAPS, resourceVersion=newest) as events:
                assert await events.take(1) == [("ADDED", "new")]

    asyncio.run(test())


@pytest.mark.slow
def test_a_killed_process_and_a_restarted_one_keep_address_objects_and_versions(
    tmp_path: Path,
) -> None:
    async def asked(process: Process, method: str, path: str, body: Any = None) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, process.url + path, json=body) as answer,
        ):
            return await answer.json()

    with Process(tmp_path) as process:
        made = asyncio.run(asked(process, "POST", MAPS, a_map(x="1")))
        process.kill()
        process.start()
        assert asyncio.run(asked(process, "GET", f"{MAPS}/m")) == made
        asyncio.run(asked(process, "POST", "/double/faults", {"kind": "restart", "seconds": 0}))
        process.wait_until_ready()
        assert asyncio.run(asked(process, "GET", f"{MAPS}/m")) == made
        assert {line["verb"] for line in process.requests()} >= {"create", "get"}
