"""The connection to one endpoint: an `openai` client, its gate, and what went wrong on the way."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import aiohttp
import httpx2
import openai

from records.errors import ConfigError
from synth.llm.endpoint.failures import SendError, excerpt, status_of
from synth.llm.endpoint.gate import Gate
from synth.llm.endpoint.rates import RateHint, rate_hint, retry_after
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.stream import StreamedAnswer, StreamError

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

FILE_CONTENT = "/content"
"""How the path of a file's bytes ends."""

MAX_FILE_BYTES = 512 * 2**20
"""As above, of a file with the answers of a batch."""


AFTER_THE_END_S = 1.0
"""How long a stream that has said `[DONE]` may keep its connection."""


RENEWED_EVERY_S = 0.25
"""How often the wait for the next piece of a stream begins anew: a timer for each piece would cost
as much as reading it."""


class Sent(NamedTuple):
    raw: bytes
    """The body of the answer, any bytes."""
    hint: RateHint | None


class _BoundedStream(httpx2.AsyncByteStream):
    """The body of one answer, up to a number of bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most:
                raise httpx2.ReadError(f"the answer is longer than {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        is_file = response.request.url.path.endswith(FILE_CONTENT)
        most = MAX_FILE_BYTES if is_file else MAX_ANSWER_BYTES
        response.stream = _BoundedStream(response.stream, most)


class Endpoint:
    """Where one or several roles are played. Belongs to the event loop that first posts."""

    def __init__(
        self,
        config: RoleConfig,
        *,
        role: str,
        max_in_flight: int,
        app: ASGIApp | None,
        gate: Gate,
    ) -> None:
        """`role` names the setting in errors; `app` is the offline model, given exactly when
        the base URL is `offline`; `gate` may be shared with others.

        Raises ConfigError for a key, a header's variable or a file of certificates that is missing.
        """
        self.gate = gate
        self.url = config.base_url
        self.key_env = config.api_key_env
        self._key = _key_of(config, role)
        self._header_values = _header_values(config, role)
        timeout = httpx2.Timeout(config.timeout_s, connect=CONNECT_TIMEOUT_S)
        if app is None:
            limits = httpx2.Limits(max_connections=max_in_flight, keepalive_expiry=KEEPALIVE_S)
            http = openai.DefaultAioHttpClient(
                limits=limits,
                timeout=timeout,
                follow_redirects=False,
                verify=_verification(config, role),
                proxy=config.proxy,
            )
        else:
            transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
            http = httpx2.AsyncClient(transport=transport, timeout=timeout)
        http.event_hooks = {"response": [_bound]}
        # the bound is on what comes over the wire: nothing may unpack to more
        headers: dict[str, Any] = {"Accept-Encoding": "identity", **self._header_values}
        # a server without keys is sent none; the client wants to be told so with each request
        keyless = not self._key and "authorization" not in {name.lower() for name in headers}
        self._options: Any = {"headers": {"Authorization": openai.Omit()}} if keyless else {}
        self._client = openai.AsyncOpenAI(
            base_url="http://offline/v1" if app else self.url,
            api_key=self._key or "none",  # never the ambient OPENAI_API_KEY
            max_retries=0,
            timeout=timeout,
            http_client=http,
            default_headers=headers,
            default_query=dict(config.query),
        )
        # read from the environment by the client, and none of a foreign endpoint's business
        self._client.organization = self._client.project = self._client.admin_api_key = None

    async def post(self, body: bytes, *, path: str, timeout_s: float) -> Sent:
        """The body of the answer to a request. Raises SendError."""
        posted = self._client.post(
            path, cast_to=httpx2.Response, content=body, options=self._options
        )
        return await self._answered(posted, timeout_s)

    async def get(self, path: str, *, timeout_s: float) -> Sent:
        """As `post`."""
        got = self._client.get(path, cast_to=httpx2.Response, options=self._options)
        return await self._answered(got, timeout_s)

    async def upload(
        self, data: bytes, *, path: str, name: str, fields: dict[str, str], timeout_s: float
    ) -> Sent:
        """As `post`, of a file beside fields of a form."""
        headers = self._options.get("headers", {}) | {"Content-Type": "multipart/form-data"}
        sent = self._client.post(
            path,
            cast_to=httpx2.Response,
            body=fields,
            files=[("file", (name, data, "application/jsonl"))],
            options=self._options | {"headers": headers},
        )
        return await self._answered(sent, timeout_s)

    async def _answered(self, asked: Awaitable[httpx2.Response], timeout_s: float) -> Sent:
        try:
            # the client's own time-out counts per read, and does not exist in process
            async with asyncio.timeout(timeout_s):
                response = await asked
        except openai.APIStatusError as error:
            raise self._refused(error) from None
        except TimeoutError:
            raise SendError("timeout", f"{self.url}: no answer in {timeout_s:g} s") from None
        except (openai.APIConnectionError, aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from None
        return Sent(response.content, _hint_in(response.headers))

    async def stream(
        self, body: bytes, *, path: str, timeout_s: float, idle_timeout_s: float
    ) -> Sent:
        """As `post`, of an answer that is streamed: its body as an unstreamed one would have it.
        The time-outs are of the whole answer, and of the wait for its first and each next piece. An
        answer that has come to its end counts, whatever becomes of the connection then."""
        answer = StreamedAnswer()
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        heard, hint, renewed = loop.time(), None, 0.0
        whole: list[bytes] | None = None
        lost: SendError | None = None
        try:
            async with asyncio.timeout(min(idle_timeout_s, timeout_s)) as idle:
                events = await self._client.post(
                    path,
                    cast_to=object,
                    content=body,
                    options=self._options,
                    stream=True,
                    stream_cls=openai.AsyncStream[object],
                )
                response = events.response
                hint, heard = _hint_in(response.headers), loop.time()
                if response.headers.get("content-type", "").startswith("application/json"):
                    whole = []  # the server does not stream, or not this answer
                try:
                    async for piece in response.aiter_raw():
                        if whole is None:
                            answer.feed(piece)
                        else:
                            whole.append(piece)
                        now = loop.time()
                        if answer.says_done or now >= renewed + RENEWED_EVERY_S:
                            renewed = now
                            wait_s = AFTER_THE_END_S if answer.says_done else idle_timeout_s
                            idle.reschedule(min(end, now + wait_s + RENEWED_EVERY_S))
                finally:
                    await response.aclose()
        except openai.APIStatusError as error:
            raise self._refused(error) from None
        except StreamError as error:
            raise self._error_in_stream(error) from None
        except TimeoutError:
            late = f"no more of the answer in {idle_timeout_s:g} s"
            if loop.time() >= end:
                late = f"the answer took longer than {timeout_s:g} s"
            lost = SendError("timeout", f"{self.url}: {late}")
        except (openai.APIConnectionError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
            lost = self._lost(error)
        hint = hint and hint.aged(loop.time() - heard)
        if whole is not None and lost is None:
            return Sent(b"".join(whole), hint)
        try:
            raw = answer.body()
        except StreamError as error:
            raise self._error_in_stream(error) from None
        except ValueError as error:
            raise lost or SendError("bad_body", f"{self.url}: {error}") from None
        if not answer.is_complete:
            cut = "the stream ended in the middle of the answer"
            raise lost or SendError("connection_lost", f"{self.url}: {cut}")
        if answer.is_empty:
            advice = "a server behind a proxy may not stream: try profile.stream = false"
            raise SendError("bad_body", f"{self.url}: the stream holds nothing; {advice}")
        return Sent(raw, hint)

    async def models(self, *, timeout_s: float) -> list[dict[str, Any]] | None:
        """What it says of the models that it serves, at least an `id` each; None if it does not
        list them. Raises SendError."""
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._client.get(
                    "/models", cast_to=httpx2.Response, options=self._options
                )
            listed = response.json()["data"]
            return [model | {"id": str(model["id"])} for model in listed]
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

    def scrub(self, text: str) -> str:
        """Without the key and the values of headers, which servers repeat in their errors."""
        for secret in (self._key, *self._header_values.values()):
            text = text.replace(secret, "[key]") if secret else text
        return text

    def _refused(self, error: openai.APIStatusError) -> SendError:
        body, headers = error.response.content, error.response.headers
        code = error.status_code
        said = f"{self.url} answered {code}: {excerpt(body, self.scrub)}"
        if code < 400:
            target = headers.get("location", "its target")
            said = f"{said}; set base_url to {target!r}"
        return SendError(
            status_of(code, body),
            said,
            code=code,
            body=body,
            retry_after_s=retry_after(headers),
            hint=_hint_in(headers),
        )

    def refusal(self, code: int, body: bytes, *, where: str) -> SendError:
        """An error with a status that came in `where` rather than as an answer of its own."""
        said = f"{self.url} answered {code} in {where}: {excerpt(body, self.scrub)}"
        return SendError(status_of(code, body), said, code=code, body=body)

    def _error_in_stream(self, error: StreamError) -> SendError:
        """Reported after the head was sent, so with no status of its own but what it holds."""
        given = error.error.get("code") if isinstance(error.error, dict) else None
        code = given if isinstance(given, int) and 400 <= given < 600 else 500
        body = str(error).encode()
        said = f"{self.url} broke the stream off: {excerpt(body, self.scrub)}"
        return SendError(status_of(code, body), said, code=code, body=body, billed=True)

    def _lost(self, error: BaseException) -> SendError:
        """By the causes: the layers above them mistake a refused connection for a time-out."""
        causes = [error]
        while causes[-1].__cause__ is not None:
            causes.append(causes[-1].__cause__)
        detail = self.scrub(f"{self.url}: {type(causes[-1]).__name__}: {causes[-1]}")
        unreachable = aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
        if any(isinstance(cause, unreachable) for cause in causes):
            return SendError("unreachable", detail)
        if isinstance(causes[-1], TimeoutError):
            return SendError("timeout", detail)
        return SendError("connection_lost", detail)


def _hint_in(headers: httpx2.Headers) -> RateHint | None:
    """Most servers say nothing of rates, and each look into the headers has its price."""
    if not any(b"ratelimit" in name.lower() for name, _ in headers.raw):
        return None
    return rate_hint(headers)


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


def _header_values(config: RoleConfig, role: str) -> dict[str, str]:
    values = {}
    for header, variable in config.headers.items():
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(
                f"roles.{role}.headers.{header} names {variable}, which is not set;"
                " export it with the header's value"
            )
        values[header] = value
    return values


def _verification(config: RoleConfig, role: str) -> ssl.SSLContext | bool:
    if config.ca_file is None:
        return config.base_url.startswith("https")  # loading certificates takes 40 ms
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(config.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"roles.{role}.ca_file = {config.ca_file!r} cannot be read as certificates: {error};"
            " name a file in PEM form"
        ) from None
    return context
