"""A double in the test's own event loop, and requests to it without any client library."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from tests.kubernetes.double.serving.app import Double, Settings

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Answer(NamedTuple):
    code: int
    body: Any
    headers: Any

    @property
    def version(self) -> str:
        return self.body["metadata"]["resourceVersion"]

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def causes(self) -> set[tuple[str, str]]:
        """Field and reason of each cause of a refusal."""
        return {(c["field"], c["reason"]) for c in self.body["details"]["causes"]}


class Asking:
    """Requests to one double."""

    def __init__(self, double: Double, session: aiohttp.ClientSession) -> None:
        self.double, self.session = double, session
        self.url = f"http://127.0.0.1:{double.port}"

    async def __call__(
        self, method: str, path: str, body: Any = None, *, media: str = "", **query: Any
    ) -> Answer:
        headers = {"Content-Type": media or "application/json"}
        data = None if body is None else json.dumps(body)
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, params=query
        ) as answer:
            return Answer(answer.status, await answer.json(content_type=None), answer.headers)

    async def patch(self, path: str, body: Any, kind: str = "merge", **query: Any) -> Answer:
        media = {
            "json": "application/json-patch+json",
            "merge": "application/merge-patch+json",
            "strategic": "application/strategic-merge-patch+json",
            "apply": "application/apply-patch+yaml",
        }[kind]
        return await self("PATCH", path, body, media=media, **query)

    async def fault(self, **asked: Any) -> Answer:
        return await self("POST", "/double/faults", asked)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator["Events"]:
        params = {"watch": "true", **query}
        async with self.session.get(self.url + path, params=params) as answer:
            yield Events(answer)


class Events:
    """The events of one watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> tuple[str, Any] | None:
        """The next event's type and object; None at the end of the stream."""
        line = await asyncio.wait_for(self.answer.content.readline(), 30)
        if not line:
            return None
        event = json.loads(line)
        return event["type"], event["object"]

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Types and names of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(event[0], event[1]["metadata"]["name"]) for event in found if event is not None]


@asynccontextmanager
async def doubled(**settings: Any) -> AsyncIterator[Asking]:
    double = Double(Settings(**settings))
    await double.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Asking(double, session)
    finally:
        await double.close()


def against(test: Callable[[Asking], Awaitable[None]], **settings: Any) -> None:
    """Run a test's coroutine with a fresh double."""

    async def run() -> None:
        async with doubled(**settings) as ask:
            await test(ask)

    asyncio.run(run())


def a_pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    container = {"name": "sandbox", "image": "python:3.12"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def a_map(name: str = "m", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_node(name: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"synth.dev/kubelet-scheme": "http"}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


def a_binding(node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def a_definition(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    """A definition of `kettles.tea.example` with a schema for its spec."""
    root = {
        "type": "object",
        "properties": {
            "spec": schema,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kettles.tea.example"},
        "spec": {
            "group": "tea.example",
            "scope": "Namespaced",
            "names": {"plural": "kettles", "kind": "Kettle", "shortNames": ["kt"]},
            "versions": [served],
        },
    }


KETTLES = "/apis/tea.example/v1/namespaces/default/kettles"


def a_kettle(name: str = "k", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tea.example/v1",
        "kind": "Kettle",
        "metadata": {"name": name},
        "spec": spec,
    }
