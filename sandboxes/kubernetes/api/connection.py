"""A connection to an API server: requests that outlive its restarts and do as it is told.

Objects are plain JSON: those of 10,000 Pods as models would take minutes of processor time. The
client's own part is who we are: kubeconfig or service account, certificates, tokens and their
renewal.
"""

import asyncio
import contextlib
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import ApiClient, Configuration

from records.errors import ConfigError
from sandboxes.kubernetes.api.answers import (
    CONFLICT,
    GONE,
    NOT_FOUND,
    THROTTLED,
    UNAUTHORIZED,
    ApiError,
    refusal,
    retry_after,
)
from sandboxes.kubernetes.api.pacing import Bucket

ApiObject = dict[str, Any]

PATIENCE_S = 90.0
"""For an API server to come back, or to stop throttling; then the request fails."""

REQUEST_S = 30.0
AT_ONCE = 64
"""Requests that wait for an answer at the same time; watches and streams are no such."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
PAGE = 500
"""Objects of a list that come at once."""

CLOSED = (RuntimeError, AssertionError)
"""What the client's library raises of a request that was on its way when it was closed."""

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


class Connection:
    """Made by `opened`; belongs to the event loop that made it. `counts` has what went wrong."""

    def __init__(self, client: ApiClient, login: "Login", bucket: Bucket) -> None:
        self.client, self.bucket = client, bucket
        self._login = login
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.closed = False
        self.counts: Counter[str] = Counter()

    @property
    def server(self) -> str:
        return self.client.configuration.host

    async def close(self) -> None:
        """Whatever is asked afterwards, or still waits for an answer, is an ApiError."""
        self.closed = True
        await self.client.close()

    async def ask(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None,
        *, content: str = "application/json", patience_s: float = PATIENCE_S, at_once: bool = False,
    ) -> ApiObject:  # fmt: skip
        """The answer as JSON. A server that is not there, is about to be, or throttles is asked
        again for `patience_s`; every other refusal is raised at once (see `answers`). `at_once`:
        it waits behind no other request of ours."""
        loop = asyncio.get_running_loop()
        end, attempt, asked = loop.time() + patience_s, 0, f"{method} {path}"
        renewed = False
        while True:
            wait = random.uniform(0.5, 1.0) * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
            try:
                code, data, headers = await self._once(method, path, query, body, content, at_once)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.counts["api_unreached"] += 1
                problem = ApiError(0, f"no API server answers at {self.server}: {error!r:.200}")
            else:
                if code < 400:
                    with contextlib.suppress(ValueError):
                        return json.loads(data) if data else {}
                    problem = ApiError(code, f"{asked}: the answer is no JSON: {data[:200]!r}")
                else:
                    problem = refusal(code, data, asked)
                if code == THROTTLED:
                    self.counts["api_throttled"] += 1
                    wait = max(retry_after(headers), wait)
                    self.bucket.close_for(min(wait, patience_s))
                elif code == UNAUTHORIZED and not renewed:
                    renewed = True
                    await self.log_in()
                elif 400 <= code < 500:
                    raise problem
                else:
                    self.counts["api_errors"] += 1
            attempt += 1
            if loop.time() + wait > end:
                raise problem
            await asyncio.sleep(wait)

    async def log_in(self) -> None:
        """Again, with a new token: the one that we had may have run out."""
        await self._login.again(self.client.configuration)

    async def _once(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, content: str,
        at_once: bool,
    ) -> tuple[int, bytes, Mapping[str, str]]:  # fmt: skip
        async with contextlib.nullcontext() if at_once else self._slots:
            response = await self.open(method, path, query, body, content=content)
            async with response:
                return response.status, await response.read(), response.headers

    async def open(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None,
        *, content: str = "application/json", timeout_s: float | None = REQUEST_S,
    ) -> aiohttp.ClientResponse:  # fmt: skip
        """One request whose answer is yet to be read; for watches, which have no end."""
        if self.closed:
            raise ApiError(0, f"{method} {path}: the connection to the API server is closed")
        method, url, headers, *_ = await self.client.param_serialize(
            method, path, query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": content},
            auth_settings=["BearerToken"],
        )  # fmt: skip
        timeout = aiohttp.ClientTimeout(total=timeout_s, connect=REQUEST_S)
        try:
            answer = await self.client.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
        except CLOSED as error:
            if not self.closed:
                raise
            why = f"{method} {path}: the connection to the API server was closed"
            raise ApiError(0, why) from error
        return answer.response

    async def get(self, path: str, query: Mapping[str, Any] | None = None) -> ApiObject | None:
        """None where there is no such object."""
        try:
            return await self.ask("GET", path, query)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    async def create(self, folder: str, made: ApiObject, *, paced: bool = False) -> ApiObject:
        """The object as the server keeps it. One that is there already is given back as it is:
        names of ours are used once, so that it was made by a request whose answer got lost."""
        if paced:
            await self.bucket.take()
        try:
            return await self.ask("POST", folder, body=made)
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            found = await self.get(f"{folder}/{made['metadata']['name']}")
            if found is None:
                raise
            return found

    async def patch(
        self, path: str, changes: Any, *, content: str = MERGE, at_once: bool = False
    ) -> ApiObject | None:
        """The object as it is then; None where it is gone. ApiError with code 409 where a version
        that the changes name is not the present one."""
        try:
            return await self.ask("PATCH", path, body=changes, content=content, at_once=at_once)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    async def delete(self, path: str, **options: Any) -> bool:
        """Whether it was there. `options` are those of metav1.DeleteOptions."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        try:
            await self.ask("DELETE", path, body=body)
        except ApiError as error:
            if error.code in (NOT_FOUND, GONE):
                return False
            raise
        return True

    async def listed(
        self, folder: str, query: Mapping[str, Any] | None = None
    ) -> AsyncIterator[tuple[ApiObject, str]]:
        """Every object, and the version at which the list began. ApiError with code 410 where that
        took so long that the server has forgotten it."""
        page: dict[str, Any] = {"limit": PAGE, **(query or {})}
        while True:
            found = await self.ask("GET", folder, page)
            version = found["metadata"].get("resourceVersion", "")
            for item in found["items"] or ():
                yield item, version
            if not (go_on := found["metadata"].get("continue")):
                if not found["items"]:
                    yield {}, version  # the version of a list without objects
                return
            page["continue"] = go_on


class Login:
    """Who we are, and where the server is."""

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        self._kubeconfig, self._context = kubeconfig, context

    async def again(self, configuration: Configuration) -> None:
        """Read it. ConfigError where nothing says where a server is."""
        inside = "KUBERNETES_SERVICE_HOST" in os.environ
        try:
            if self._kubeconfig is None and self._context is None and inside:
                kube_config.load_incluster_config(client_configuration=configuration)
                return
            default = str(kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
            named = os.environ.get("KUBECONFIG") or default
            paths = self._kubeconfig or named
            if not any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep)):
                raise ConfigError(
                    f"no kubeconfig says where a cluster is: {paths} does not exist; set "
                    "`kubeconfig` in the settings of Kubernetes, or $KUBECONFIG"
                )
            await kube_config.load_kube_config(
                config_file=paths, context=self._context, client_configuration=configuration,
                persist_config=False,
            )  # fmt: skip
        except (kube_config.ConfigException, OSError) as error:
            raise ConfigError(f"the way to the cluster cannot be read: {error}") from error


async def opened(
    *, kubeconfig: str | None, context: str | None, creations_per_s: float, burst: int
) -> Connection:
    """A connection that has not asked anything yet. ConfigError where nobody says to whom."""
    configuration = Configuration()
    configuration.connection_pool_maxsize = 0  # a stream for each of 10,000 sandboxes
    configuration.client_side_validation = False
    login = Login(kubeconfig, context)
    await login.again(configuration)
    client = ApiClient(configuration)
    client.user_agent = "agentic-synth"
    return Connection(client, login, Bucket(creations_per_s, burst))
