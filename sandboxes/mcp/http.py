"""HTTP to servers that nobody here runs: bounded in bytes and time, and only to the host named.

No redirect leads elsewhere, no proxy of the environment is asked, no compressed answer is taken
(a few bytes of it could be gigabytes).
"""

import os
from collections.abc import AsyncIterator

import httpx2

from records.errors import ConfigError

MAX_ANSWER_BYTES = 32 << 20

CONNECT_S = 10.0


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner, self._left = inner, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise httpx2.ReadError(f"an answer of over {MAX_ANSWER_BYTES >> 20} MiB")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Transport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("a compressed answer, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, MAX_ANSWER_BYTES)
        return response


def bounded_client(*, read_timeout_s: float, token: str | None = None) -> httpx2.AsyncClient:
    """A client that follows no redirect. `token` is sent as a bearer with every request."""
    return httpx2.AsyncClient(
        transport=_Transport(),
        timeout=httpx2.Timeout(read_timeout_s, connect=CONNECT_S),
        headers={"authorization": f"Bearer {token}"} if token else {},
        trust_env=False,
        follow_redirects=False,
    )


def token_of(variable: str | None) -> str | None:
    """The token that an environment variable holds. ConfigError where it holds none."""
    if variable is None:
        return None
    if not (token := os.environ.get(variable)):
        raise ConfigError(f"the environment variable {variable}, named for the token, is not set")
    return token
