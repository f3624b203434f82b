"""A small client of the API: JSON in, JSON out, watches line by line.

It parses no models, since the players see every event of 10,000 Pods. A refusal by rate (429) is
waited for as its Retry-After says; every other refusal is the caller's.
"""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from tests.kubernetes.players.objects import Obj, Resource

PATCH = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
PAGE = 500
WATCH_S = 300
LOST = (aiohttp.ClientError, TimeoutError, OSError)


class ApiError(Exception):
    def __init__(self, status: int, body: Obj) -> None:
        self.status, self.body = status, body
        self.reason = body.get("reason", "")
        super().__init__(f"{status} {self.reason}: {body.get('message', '')}")


def gone(error: ApiError) -> bool:
    """Whether the object is not there, or there is another one of its name."""
    return error.status in (404, 409)


class Api:
    def __init__(self, session: aiohttp.ClientSession, server: str, parallel: int = 48) -> None:
        self._session, self._server = session, server.rstrip("/")
        self._slots = asyncio.Semaphore(parallel)
        self.requests = 0

    async def close(self) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Obj:
        data = None if body is None else orjson.dumps(body)
        headers = {} if data is None else {"Content-Type": content_type}
        while True:
            try:
                async with (
                    self._slots,
                    self._session.request(
                        method, self._server + path, data=data, headers=headers, params=query
                    ) as response,
                ):
                    self.requests += 1
                    answer = await response.read()
                    if response.status < 300:
                        return orjson.loads(answer)
                    wait = response.headers.get("Retry-After")
                    status = response.status
            except LOST as error:
                raise ApiError(0, {"reason": "Lost", "message": repr(error)}) from error
            if status != 429 or wait is None:
                raise ApiError(status, said(answer))
            await asyncio.sleep(float(wait))

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Obj:
        return await self.request("GET", resource.path(namespace, name))

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: Obj,
        *,
        name: str | None = None,
        subresource: str | None = None,
    ) -> Obj:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return await self.request("POST", resource.path(namespace, name, subresource), body)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        *,
        subresource: str | None = None,
        kind: str = "merge",
    ) -> Obj:
        path = resource.path(namespace, name, subresource)
        return await self.request("PATCH", path, body, content_type=PATCH[kind])

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_s: int | None = None,
        policy: str | None = None,
    ) -> None:
        body: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
        conditions = {"uid": uid, "resourceVersion": version}
        if given := {name: value for name, value in conditions.items() if value is not None}:
            body["preconditions"] = given
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if policy is not None:
            body["propagationPolicy"] = policy
        await self.request("DELETE", resource.path(namespace, name), body)

    async def list(self, resource: Resource) -> tuple[list[Obj], str]:
        """All objects, page by page, and the version from which a watch goes on."""
        items, query = [], {"limit": str(PAGE)}
        while True:
            page = await self.request("GET", resource.path(), query=query)
            items += page["items"]
            if not (more := page["metadata"].get("continue")):
                return items, page["metadata"]["resourceVersion"]
            query["continue"] = more

    async def watch(self, resource: Resource, version: str) -> AsyncIterator[tuple[str, Obj]]:
        """Events after `version`, until the server ends the stream."""
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        try:
            async with self._session.get(
                self._server + resource.path(),
                params=query,
                timeout=aiohttp.ClientTimeout(sock_connect=10, sock_read=WATCH_S + 30),
            ) as response:
                if response.status >= 300:
                    raise ApiError(response.status, said(await response.read()))
                rest = b""
                async for part in response.content.iter_any():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        if line:
                            event = orjson.loads(line)
                            yield event["type"], event["object"]
        except LOST as error:
            raise ApiError(0, {"reason": "Lost", "message": repr(error)}) from error


def said(answer: bytes) -> Obj:
    """A refusal's Status, or what stands in its place."""
    try:
        found = orjson.loads(answer)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": answer.decode(errors="replace")}


def from_kubeconfig(file: Path, context: str | None = None) -> Callable[[], Api]:
    """A maker of clients for the file's cluster; it is called where a loop runs.

    Certificates and tokens are read, plugins that fetch credentials are not run.
    """
    config = yaml.safe_load(file.read_text())
    chosen = named(config["contexts"], context or config["current-context"])["context"]
    cluster = named(config["clusters"], chosen["cluster"])["cluster"]
    user = named(config.get("users") or [], chosen.get("user", ""), missing_ok=True).get("user", {})
    if "exec" in user or "auth-provider" in user:
        raise ValueError(f"{file}: its user's credentials come from a plugin; give a token instead")
    headers = {"User-Agent": "synth-players", "Accept": "application/json"}
    token = user.get("token")
    if token is None and (token_file := user.get("tokenFile")):
        token = Path(token_file).read_text().strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    secured = tls_of(cluster, user) if cluster["server"].startswith("https:") else None

    def make() -> Api:
        connector = aiohttp.TCPConnector(limit=0, ssl=secured if secured is not None else True)
        session = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=60),
            auto_decompress=True,
        )
        return Api(session, cluster["server"])

    return make


def named(entries: list[Obj], name: str, *, missing_ok: bool = False) -> Obj:
    for entry in entries:
        if entry["name"] == name:
            return entry
    if missing_ok:
        return {}
    raise ValueError(f"the kubeconfig has no entry {name!r}, only {[e['name'] for e in entries]}")


def tls_of(cluster: Obj, user: Obj) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    made = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if "client-certificate" in user:
        made.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile() as file:  # the library takes files alone
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]) + b"\n")
            file.flush()
            made.load_cert_chain(file.name)
    return made
