"""One endpoint: an `openai` client, its gate, and the one place that reads its failures."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2
import openai

from records.errors import ConfigError, ItemError, SynthError
from synth.llm.endpoint.limiter import Gate, Limiter
from synth.llm.settings.config import RoleConfig

ASGIApp = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]

CONNECT_TIMEOUT_S = 60.0
"""The client's default of 5 s is what fails first when a thousand connections open at once."""

KEEPALIVE_S = 4.0
"""Less than the 5 s after which uvicorn, so vLLM, hangs up on an idle connection."""

MAX_ANSWER_BYTES = 32 * 2**20
"""A longer body is cut off and counts as a lost connection."""

EXCERPT = 300
"""Characters of a server's error that are repeated in ours."""


class SendError(Exception):
    """One request came to nothing. `error` set: no retry can help, raise that instead."""

    def __init__(
        self,
        status: str,
        detail: str,
        *,
        billed: bool = False,
        retry_after_s: float | None = None,
        error: SynthError | None = None,
    ) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        """For the ledger: rate_limited, server_error, timeout, unreachable, connection_lost,
        bad_body, refused."""
        self.billed = billed
        """Whether the server may have charged for it."""
        self.retry_after_s = retry_after_s
        self.error = error


class _BoundedStream(httpx2.AsyncByteStream):
    """The body of one answer, up to `MAX_ANSWER_BYTES`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.ReadError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(response.stream)


class Endpoint:
    """Where one or several roles are played. Belongs to the event loop that first posts."""

    def __init__(
        self,
        config: RoleConfig,
        *,
        role: str,
        max_in_flight: int,
        app: ASGIApp | None,
        gate: Gate | None = None,
    ) -> None:
        """`role` names the setting in errors; `app` is the offline model, given exactly when
        the base URL is `offline`; `gate` is one shared with others."""
        self.gate = gate or Gate(Limiter(max_in_flight))
        self.url = config.base_url
        self._key = _key_of(config, role)
        self._key_env = config.api_key_env
        timeout = httpx2.Timeout(config.timeout_s, connect=CONNECT_TIMEOUT_S)
        if app is None:
            limits = httpx2.Limits(max_connections=max_in_flight, keepalive_expiry=KEEPALIVE_S)
            http = openai.DefaultAioHttpClient(
                limits=limits,
                timeout=timeout,
                follow_redirects=False,
                verify=self.url.startswith("https"),  # loading certificates takes 40 ms
            )
        else:
            transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
            http = httpx2.AsyncClient(transport=transport, timeout=timeout)
        http.event_hooks = {"response": [_bound]}
        self._client = openai.AsyncOpenAI(
            base_url="http://offline/v1" if app else self.url,
            api_key=self._key or "none",  # never the ambient OPENAI_API_KEY
            max_retries=0,
            timeout=timeout,
            http_client=http,
            # the bound is on what comes over the wire: nothing may unpack to more
            default_headers={"Accept-Encoding": "identity"},
        )
        # read from the environment by the client, and none of a foreign endpoint's business
        self._client.organization = self._client.project = self._client.admin_api_key = None

    async def post(self, body: bytes, *, path: str, timeout_s: float) -> bytes:
        """The body of the answer to a request, any bytes. Raises SendError."""
        try:
            # the client's own time-out counts per read, and does not exist in process
            async with asyncio.timeout(timeout_s):
                response = await self._client.post(path, cast_to=httpx2.Response, content=body)
        except openai.APIStatusError as error:
            raise self._refused(error) from None
        except TimeoutError:
            detail = f"{self.url}: no answer in {timeout_s:g} s"
            raise SendError("timeout", detail, billed=True) from None
        except (openai.APIConnectionError, aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from None
        return response.content

    async def models(self, *, timeout_s: float) -> list[str] | None:
        """Names of the models that it serves; None if it does not list them. Raises SendError."""
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._client.get("/models", cast_to=httpx2.Response)
            listed = response.json()["data"]
            return [str(model["id"]) for model in listed]
        except openai.APIStatusError as error:
            if error.status_code in (404, 405, 501):
                return None
            raise self._refused(error) from None
        except TimeoutError:
            raise SendError("timeout", f"{self.url}: no answer in {timeout_s:g} s") from None
        except (openai.APIConnectionError, aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from None
        except (ValueError, LookupError, TypeError, RecursionError):
            return None

    async def close(self) -> None:
        await self._client.close()

    def _refused(self, error: openai.APIStatusError) -> SendError:
        """By status: 429, 408, 409, 425 and 5xx may pass, 400, 413 and 422 are the item's
        fault, everything else is the configuration's."""
        code = error.status_code
        said = self._excerpt(error.response)
        what = f"{self.url} answered {code}: {said}"
        body = error.body
        if code == 429 and isinstance(body, dict) and body.get("code") == "insufficient_quota":
            final = ConfigError(f"{what}. The account has no quota left")
            return SendError("refused", what, error=final)
        if code in (408, 409, 425, 429) or code >= 500:
            status = {429: "rate_limited", 504: "timeout"}.get(code, "server_error")
            retry_after_s = _retry_after(error.response.headers)
            return SendError(status, what, billed=code == 504, retry_after_s=retry_after_s)
        if code in (400, 413, 422):
            return SendError("refused", what, error=ItemError("refused", what))
        advice = "check base_url and the name of the model"
        if code in (401, 403):
            advice = f"check the key in {self._key_env}" if self._key_env else "set api_key_env"
        elif code < 400:
            advice = f"set base_url to {error.response.headers.get('location', 'its target')!r}"
        final = ConfigError(f"{what}; {advice}")
        return SendError("refused", what, error=final)

    def _lost(self, error: BaseException) -> SendError:
        """By the causes: the layers above them mistake a refused connection for a time-out."""
        causes = [error]
        while causes[-1].__cause__ is not None:
            causes.append(causes[-1].__cause__)
        detail = self._scrub(f"{self.url}: {type(causes[-1]).__name__}: {causes[-1]}")
        unreachable = aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
        if any(isinstance(cause, unreachable) for cause in causes):
            return SendError("unreachable", detail)
        if isinstance(causes[-1], TimeoutError):
            return SendError("timeout", detail, billed=True)
        return SendError("connection_lost", detail, billed=True)

    def _excerpt(self, response: httpx2.Response) -> str:
        return self._scrub(" ".join(response.text[: 4 * EXCERPT].split())[:EXCERPT])

    def _scrub(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _key_of(config: RoleConfig, role: str) -> str:
    if config.api_key_env is None:
        return ""
    key = os.environ.get(config.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"roles.{role}.api_key_env names {config.api_key_env}, which is not set;"
            " export it with the key as its value"
        )
    return key


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds, from either form of the header (a number or a date)."""
    text = headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
