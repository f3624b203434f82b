"""The end of a session: what it removes first, what it leaves to whom, and no error is said."""

import asyncio
import gc
import json
import logging
import urllib.request
from typing import Any

import pytest

from sandboxes.core.body import InfrastructureError
from sandboxes.kubernetes import session
from sandboxes.kubernetes.backend import KubernetesBackend
from tests.kubernetes.faults import TEMPLATE, backend, fault, until
from tests.kubernetes.leaks import nothing_left
from tests.kubernetes.staging import Stage

Said = list[dict[str, Any]]


def listened() -> Said:
    """What this event loop will say of tasks whose errors nobody has asked for."""
    said: Said = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    return said


async def nothing_said(said: Said, caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.sleep(0.2)
    gc.collect()  # a task says its error when it is forgotten
    await asyncio.sleep(0)
    assert not said
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def struck(stage: Stage, number: int) -> bool:
    """Whether a request has met this fault."""
    with urllib.request.urlopen(f"{stage.double}/double/faults", timeout=60) as answer:
        found = json.loads(answer.read())
    return any(each["struck"] for each in found if each["number"] == number)


def sandboxes(stage: Stage) -> str:
    return "sandboxclaims" if stage.claims else "pods"


def test_a_session_ends_after_the_removals_that_it_has_begun(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    if stage.double is None:
        pytest.skip("a slow API server needs the double")

    async def go() -> None:
        said = listened()
        lingering = TEMPLATE.model_copy(update={"linger_s": 600.0})
        async with backend(stage) as made, backend(stage) as other:
            ended, kept = await made.create(lingering), await made.create(lingering)
            slow = {"verb": "delete", "resource": sandboxes(stage), "user_agent": "agentic-synth"}
            await fault(stage, kind="delay", seconds=1.0, count=1, **slow)
            ended.end("it is over")
            await made.close()
            found = await asyncio.to_thread(
                stage.kubectl, "get", sandboxes(stage), ended.name, "--ignore-not-found",
                "-o", "jsonpath={.metadata.name}:{.metadata.deletionTimestamp}",
            )  # fmt: skip
            assert not found or not found.endswith(":"), "it was removed before the session ended"
            adopted = await other.adopt(kept.name)
            await adopted.ping()
            await adopted.close()
        await nothing_said(said, caplog)

    asyncio.run(go())


def test_removals_that_hang_or_come_late_hold_no_session_and_leave_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stage.double is None:
        pytest.skip("an API server that hangs needs the double")
    monkeypatch.setattr(session, "REMOVE_S", 0.5)

    async def go() -> str:
        said = listened()
        made = KubernetesBackend(stage.simulated())
        first, second, third = [await made.create(TEMPLATE) for _ in range(3)]
        name = (await made.held()).session.owner.name
        hangs = {"verb": "delete", "resource": sandboxes(stage), "user_agent": "agentic-synth"}
        number = (await fault(stage, kind="hang", count=1, **hangs))["number"]
        first.end("it is over")
        while not await asyncio.to_thread(struck, stage, number):  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.05)
        async with asyncio.timeout(60):
            await made.close()
        second.end("after the session")
        await third.close()
        await nothing_said(said, caplog)
        return name

    owner = asyncio.run(go())
    asyncio.run(nothing_left(stage, owner))


def test_who_waits_for_a_sandbox_is_told_that_there_will_be_none(stage: Stage) -> None:
    async def go() -> None:
        made = KubernetesBackend(stage.simulated(node_selector={"there": "is-none"}))
        waiting = asyncio.create_task(made.create(TEMPLATE))
        await until(lambda: made.counted()["waited_unschedulable"] > 0)
        await made.close()
        with pytest.raises(InfrastructureError, match="session with the cluster has ended"):
            async with asyncio.timeout(stage.simulated().ready_s / 4):
                await waiting

    asyncio.run(go())


def test_one_that_was_left_to_be_adopted_outlives_a_late_end(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        said = listened()
        first, second = KubernetesBackend(stage.simulated()), KubernetesBackend(stage.simulated())
        one = await first.create(TEMPLATE.model_copy(update={"linger_s": 600.0}))
        await first.close()
        one.body.end()
        await one.body.close()
        adopted = await second.adopt(one.name)
        await adopted.ping()
        await adopted.close()
        await second.close()
        await nothing_said(said, caplog)

    asyncio.run(go())


def test_a_former_owner_that_has_not_heard_of_it_leaves_a_sandbox_to_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with backend(stage) as former, backend(stage) as new:
            one = await former.create(TEMPLATE)
            begun = (await former.held()).session
            for watched in filter(None, (begun.pods, begun.claims)):
                for change in ("_take", "_drop"):  # as on a slow network
                    monkeypatch.setattr(watched, change, lambda _: None)
            adopted = await new.adopt(one.name)
            await one.body.close()  # before its agent could say whose it is by now
            await adopted.ping()
            assert one.name in [info.name for info in await new.list()]
            await adopted.close()
            assert one.name not in [info.name for info in await new.list()]

    asyncio.run(go())
