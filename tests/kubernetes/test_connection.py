"""A connection that is closed, throttled or asked for what somebody has changed; what a session
keeps."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from sandboxes.core.body import BackpressureError
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import manifests, session
from sandboxes.kubernetes.api import exec_stream
from sandboxes.kubernetes.api.answers import ApiError
from sandboxes.kubernetes.api.connection import Connection
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.manifests import PodMaker
from sandboxes.kubernetes.settings import KubernetesSettings
from tests.kubernetes.connecting import FOLDERS, connected, owner
from tests.kubernetes.doubled import PODS, a_pod


def asked_of(connection: Connection) -> list[Callable[[], Coroutine[Any, Any, Any]]]:
    return [
        lambda: connection.get(PODS),
        lambda: connection.create(FOLDERS.pods, a_pod(), paced=True),
        lambda: connection.patch(f"{PODS}/p", {}),
        lambda: connection.delete(f"{PODS}/p"),
    ]


def test_a_closed_connection_says_so_to_whoever_asks_or_waits(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (ask, connection):
            await connection.get(PODS)
            await ask.fault(kind="hang", count=None)
            waiting = [asyncio.create_task(each()) for each in asked_of(connection)]
            await asyncio.sleep(0.2)
            await connection.close()
            for found in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(found, ApiError), repr(found)
            for each in asked_of(connection):
                with pytest.raises(ApiError, match="closed"):
                    await each()
            with pytest.raises(OSError, match="closed"):
                await exec_stream.opened(connection, PODS, "p", "sandbox", ["true"])

    asyncio.run(go())


def test_a_server_cannot_keep_creations_waiting_for_longer_than_they_have(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (ask, connection):
            await ask.fault(kind="status", code=429, retry_after_s=10**6, count=1)
            with pytest.raises(BackpressureError):
                await connection.ask("GET", PODS, patience_s=0.3)
            async with asyncio.timeout(20):
                await connection.create(FOLDERS.pods, a_pod(), paced=True)

    asyncio.run(go())


def test_a_session_keeps_no_template_that_it_was_asked_for(tmp_path: Path) -> None:
    """Some hold whole files, and a run asks for thousands."""

    async def go() -> None:
        async with connected(tmp_path) as (_, connection):
            settings = KubernetesSettings()
            cluster = Cluster("https://cluster", "v1.33.1", True, "gvisor", "runsc")
            maker = PodMaker(settings, cluster, "synth-agent-0123456789abcdef")
            me = owner(connection, "b" * 12)
            held = session.Session(settings, connection, FOLDERS, cluster, me, maker)
            order = await held.order(SandboxTemplate(files={"/opt/x/y": "z"}))
            template = weakref.ref(order.template)
            del order
            gc.collect()
            assert template() is None

    asyncio.run(go())


def test_an_agent_that_somebody_has_changed_is_not_run(tmp_path: Path) -> None:
    async def go() -> None:
        async with connected(tmp_path) as (_, connection):
            made = manifests.agent_config_map()
            name = await session.agent_map(connection, FOLDERS)
            assert name == await session.agent_map(connection, FOLDERS)
            path = f"{FOLDERS.config_maps}/{name}"
            await connection.delete(path)
            other = {**made["data"], manifests.AGENT_FILE: "print('mine')"}
            await connection.create(FOLDERS.config_maps, made | {"data": other})
            with pytest.raises(ConfigError, match=f"kubectl delete configmap {name}"):
                await session.agent_map(connection, FOLDERS)

    asyncio.run(go())
