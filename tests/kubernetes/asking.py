"""A cluster as `kubernetes.aio` and nothing of ours sees it, for tests that ask and wait."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, cast

from kubernetes.aio import client, config
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.stream import WsApiClient

from tests.kubernetes.staging import Stage

Json = dict[str, Any]

PATIENCE_S = 120.0
"""For what a busy machine does in a moment otherwise."""

CUSTOM = {
    "sandboxes": ("agents.x-k8s.io", "Sandbox"),
    "sandboxtemplates": ("extensions.agents.x-k8s.io", "SandboxTemplate"),
    "sandboxwarmpools": ("extensions.agents.x-k8s.io", "SandboxWarmPool"),
    "sandboxclaims": ("extensions.agents.x-k8s.io", "SandboxClaim"),
}
VERSION = "v1beta1"


class Answer(NamedTuple):
    stdout: bytes
    stderr: bytes
    status: Json


class Asking:
    def __init__(self, api: client.ApiClient, sockets: WsApiClient, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.core, self.custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
        self.streams = client.CoreV1Api(sockets)

    def plain(self, model: Any) -> Json:
        return cast(Json, self.api.sanitize_for_serialization(model))

    async def make_pod(self, name: str, spec: Json, **metadata: Any) -> Json:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": {"restartPolicy": "Never", **spec},
        }
        return self.plain(await self.core.create_namespaced_pod(self.namespace, cast(Any, body)))

    async def pod(self, name: str) -> Json | None:
        try:
            return self.plain(await self.core.read_namespaced_pod(name, self.namespace))
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    async def pods(self, selector: str = "") -> list[Json]:
        found = await self.core.list_namespaced_pod(self.namespace, label_selector=selector)
        return [self.plain(each) for each in found.items]

    async def pod_when(self, name: str, what: Callable[[Json], bool]) -> Json:
        """The Pod once it is as asked."""
        return await until(lambda: self.pod(name), what, f"Pod {name}")

    async def running(self, name: str) -> Json:
        return await self.pod_when(name, lambda pod: phase(pod) == "Running")

    async def over(self, name: str) -> Json:
        return await self.pod_when(name, lambda pod: phase(pod) in ("Succeeded", "Failed"))

    async def delete_pod(self, name: str, grace_s: int = 0) -> None:
        await self.core.delete_namespaced_pod(name, self.namespace, grace_period_seconds=grace_s)

    async def gone(self, name: str) -> None:
        await until(lambda: self.pod(name), None, f"Pod {name}")

    async def make(self, plural: str, name: str, spec: Json, **metadata: Any) -> Json:
        group, kind = CUSTOM[plural]
        body = {
            "apiVersion": f"{group}/{VERSION}",
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        made = await self.custom.create_namespaced_custom_object(
            group, VERSION, self.namespace, plural, body
        )
        return cast(Json, made)

    async def one(self, plural: str, name: str) -> Json | None:
        group, _ = CUSTOM[plural]
        try:
            found = await self.custom.get_namespaced_custom_object(
                group, VERSION, self.namespace, plural, name
            )
        except ApiException as error:
            if error.status != 404:
                raise
            return None
        return cast(Json, found)

    async def all(self, plural: str) -> list[Json]:
        group, _ = CUSTOM[plural]
        found = await self.custom.list_namespaced_custom_object(
            group, VERSION, self.namespace, plural
        )
        return cast(Json, found)["items"]

    async def when(self, plural: str, name: str, what: Callable[[Json], bool]) -> Json:
        return await until(lambda: self.one(plural, name), what, f"{plural} {name}")

    async def ready(self, plural: str, name: str) -> Json:
        return await self.when(plural, name, lambda found: condition(found, "Ready") == "True")

    async def no_more(self, plural: str, name: str) -> None:
        await until(lambda: self.one(plural, name), None, f"{plural} {name}")

    async def change(self, plural: str, name: str, body: Json) -> None:
        group, _ = CUSTOM[plural]
        await self.custom.patch_namespaced_custom_object(
            group, VERSION, self.namespace, plural, name, body
        )

    async def remove(self, plural: str, name: str, policy: str | None = None) -> None:
        group, _ = CUSTOM[plural]
        await self.custom.delete_namespaced_custom_object(
            group, VERSION, self.namespace, plural, name, propagation_policy=policy
        )

    @contextlib.asynccontextmanager
    async def stream(
        self, name: str, command: list[str], *, container: str = "sandbox", stdin: bool = True
    ) -> AsyncIterator[Any]:
        """An exec's websocket, as it is."""
        connecting = await self.streams.connect_get_namespaced_pod_exec_without_preload_content(
            name, self.namespace, command=cast(Any, command), container=container,
            stdin=stdin, stdout=True, stderr=True, tty=False,
        )  # fmt: skip
        async with cast(Any, connecting) as socket:
            yield socket

    async def exec(
        self,
        name: str,
        command: list[str],
        *,
        container: str = "sandbox",
        stdin: bytes | None = None,
    ) -> Answer:
        parts = {1: b"", 2: b"", 3: b""}
        given = stdin is not None
        async with self.stream(name, command, container=container, stdin=given) as socket:
            if stdin is not None:
                await socket.send_bytes(b"\0" + stdin)
            async for message in socket:
                parts[message.data[0]] += message.data[1:]
        return Answer(parts[1], parts[2], json.loads(parts[3] or b"{}"))


async def until(ask: Callable[[], Any], what: Callable[[Json], bool] | None, name: str) -> Json:
    """What `ask` answers as soon as it is as `what` says, or is None where nothing is said."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = await ask()
        if (found is None) if what is None else (found is not None and what(found)):
            return found or {}
        if time.monotonic() > end:
            said = json.dumps(found and found.get("status"))
            raise AssertionError(f"{name} is not as it should be after {PATIENCE_S:g} s: {said}")
        await asyncio.sleep(0.05)


def phase(pod: Json) -> str | None:
    return (pod.get("status") or {}).get("phase")


def condition(obj: Json, kind: str) -> str | None:
    found = condition_of(obj, kind)
    return None if found is None else found["status"]


def condition_of(obj: Json, kind: str) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), None)


def state_of(pod: Json, container: str = "sandbox") -> Json:
    """A container's state; empty before the node tells of it."""
    status = pod.get("status") or {}
    for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        if each["name"] == container:
            return each.get("state") or {}
    return {}


@contextlib.asynccontextmanager
async def asking(stage: Stage) -> AsyncIterator[Asking]:
    settings = client.Configuration()
    await config.load_kube_config(str(stage.kubeconfig), client_configuration=settings)
    async with client.ApiClient(settings) as api, WsApiClient(settings) as sockets:
        yield Asking(api, sockets, stage.namespace)
