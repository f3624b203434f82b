"""Asking a model: cache, budget, retries and ledger around one request.

A billed answer is in the shard's journal before anybody sees it, so it is never paid twice.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from records.digest import digest
from records.errors import ConfigError, TransientError
from records.seeds import rng_of
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.budget import NOTHING, Amount, Budget
from synth.llm.endpoint.connection import ASGIApp, Endpoint, SendError
from synth.llm.endpoint.limiter import Gate, Signal
from synth.llm.ledger import journalled_rows, new_row, to_journal
from synth.llm.settings.config import OFFLINE, EndpointKey, RoleConfig, TokenUsage
from synth.llm.structured import StructuredOutput
from synth.llm.wire.embeddings import PATH as EMBEDDINGS
from synth.llm.wire.embeddings import embedding_body, read_embeddings, vectors_of
from synth.llm.wire.request import (
    BadBodyError,
    ChatAnswer,
    Message,
    parse_answer,
    request_body,
    request_hash,
)

LONGEST_BACKOFF_S = 60.0
"""Cap of our own waits; what a server asks for is honoured up to `LONGEST_RETRY_AFTER_S`."""

LONGEST_RETRY_AFTER_S = 600.0
"""A server that wants more than ten minutes is down for this run's purposes."""

_SIGNALS: dict[str, Signal] = {"ok": "ok", "rate_limited": "congested", "timeout": "congested"}


class Completion(NamedTuple):
    content: str
    tool_calls: list[dict[str, Any]]
    """OpenAI wire form with distinct ids; arguments are the text that the model wrote."""
    reasoning: str | None
    finish_reason: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool


class Gateway:
    """What all shards of a process share: endpoints, their gates, and the budget.

    `async with` it in the event loop that uses it; roles with one URL and key share an endpoint.
    """

    def __init__(
        self,
        roles: Mapping[Any, RoleConfig],
        *,
        budget: Budget | None = None,
        offline_app: Callable[[], ASGIApp] | None = None,
        gate_of: Callable[[EndpointKey], Gate | None] = lambda endpoint: None,
    ) -> None:
        """`offline_app` makes the offline model; needed when a role's URL is `offline`.
        `gate_of` gives the gate of an endpoint whose slots others share; None: its own.

        Raises ConfigError for a key that is not set, before anything is sent.
        """
        self.roles = dict(roles)
        self.budget = budget or Budget()
        self._endpoints: dict[EndpointKey, Endpoint] = {}
        for role, config in self.roles.items():
            key = config.endpoint_key
            if key in self._endpoints:
                continue
            if config.base_url == OFFLINE and offline_app is None:
                raise ConfigError(f"roles.{role}.base_url is offline, but no provider is embedded")
            sharing = [c for c in roles.values() if c.endpoint_key == key]
            self._endpoints[key] = Endpoint(
                config,
                role=role,
                max_in_flight=min(c.max_in_flight for c in sharing),
                app=offline_app() if config.base_url == OFFLINE and offline_app else None,
                gate=gate_of(key),
            )

    def role(self, name: str) -> tuple[RoleConfig, Endpoint]:
        config = self.roles.get(name)
        if config is None:
            raise ConfigError(f"no model is configured for role {name!r}, only for {[*self.roles]}")
        return config, self._endpoints[config.endpoint_key]

    def gate(self, endpoint: EndpointKey) -> Gate:
        """Of the endpoint at this URL with this key."""
        return self._endpoints[endpoint].gate

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.close()


class _Request(NamedTuple):
    """One request on its way, with what its worst case would cost."""

    config: RoleConfig
    endpoint: Endpoint
    body: bytes
    key: str
    worst: Amount
    worst_tokens: tuple[int, int]
    """Prompt and completion."""
    row: Callable[[], Row]
    path: str
    """Below the base URL."""
    read: Callable[[bytes], ChatAnswer]
    """May raise BadBodyError."""


class LLM:
    """The models of one shard, bound to its journal. Many items may ask at once."""

    def __init__(
        self,
        gateway: Gateway,
        journal: ShardJournal,
        *,
        stage: str,
        invocation_id: str,
        retry_numbers: Mapping[str, int] | None = None,
    ) -> None:
        """`retry_numbers`: items whose earlier answers are of no use -> how often that was so."""
        self._gateway = gateway
        self._retry_numbers = retry_numbers or {}
        self._journal = journal
        self._stage = stage
        self._invocation_id = invocation_id
        self._structured = StructuredOutput(self._ask)
        # what an earlier try of this shard paid for: its ledger died with it
        self._rows: list[Row] = journalled_rows(journal)

    def retry_number_of(self, item: str) -> int:
        """0, or how often the item was asked for in vain: a retry shares no answer with another."""
        return self._retry_numbers.get(item, 0)

    def rows(self) -> list[Row]:
        """For the table `llm_calls`: every request and cache hit of this shard so far."""
        return list(self._rows)

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        tools: Sequence[dict[str, Any]] | None = None,
        schema: tuple[str, dict[str, Any]] | None = None,
    ) -> Completion:
        """One answer, any answer: what it says is not validated.

        (item, role, step) names the place; the same request there is asked and paid once. Raises
        TransientError when the retries are spent, BudgetError when the request does not fit,
        ItemError("refused") when the server refuses this request, ConfigError for a wrong key or
        an unknown model.
        """
        return await self._ask(role, messages, item=item, step=step, tools=tools, schema=schema)

    async def structured(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        name: str,
        schema: dict[str, Any],
        repairs: int = 2,
        on_answer: Callable[[Completion], None] | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> Any:
        """A JSON value that fits `schema`, and `check` where one is given.

        An answer that does not fit is shown to the model with the error, `repairs` times at most;
        then ItemError("invalid_output"). Raises what `chat` raises, too. `on_answer` is given
        every answer, also those that do not fit: for counting what they used.
        """
        return await self._structured.ask(
            role,
            messages,
            item=item,
            step=step,
            name=name,
            schema=schema,
            repairs=repairs,
            on_answer=on_answer,
            check=check,
        )

    async def embed(
        self, role: str, texts: Sequence[str], *, item: str, step: str
    ) -> list[list[float]]:
        """A vector for each text, of one size. Cached, paid and retried as `chat` is, whose errors
        it raises; one request, so no more texts than the server takes."""
        config, _ = self._gateway.role(role)
        body = embedding_body(config, role, texts, item=item)

        def read(raw: bytes, key: str) -> ChatAnswer:
            return read_embeddings(raw, count=len(texts), fallback_tokens=len(body))

        at = {"item": item, "role": role, "step": step, "attempt": 0}
        made = await self._fetch(body, (len(body), 0), read, path=EMBEDDINGS, at=at)
        return vectors_of(made.content)

    async def _ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        tools: Sequence[dict[str, Any]] | None = None,
        schema: tuple[str, dict[str, Any]] | None = None,
        attempt: int = 0,
    ) -> Completion:
        config, _ = self._gateway.role(role)
        body = request_body(
            config,
            role,
            messages,
            item=item,
            round_=self.retry_number_of(item),
            tools=tools,
            schema=schema,
        )
        worst = (len(body), config.max_tokens)

        def read(raw: bytes, key: str) -> ChatAnswer:
            # ids hang on the place, not on the try, so that reruns give the same rows
            return parse_answer(raw, call_prefix=f"call_{key}", fallback_usage=worst)

        at = {"item": item, "role": role, "step": step, "attempt": attempt}
        return await self._fetch(body, worst, read, path="/chat/completions", at=at)

    async def _fetch(
        self,
        body: bytes,
        worst: tuple[int, int],
        read: Callable[[bytes, str], ChatAnswer],
        *,
        path: str,
        at: Mapping[str, Any],
    ) -> Completion:
        """From the journal, or paid for. `worst`: prompt and completion tokens at most; `at`: item,
        role, step and attempt."""
        item, role = at["item"], at["role"]
        config, endpoint = self._gateway.role(role)
        model = config.model_of(item, role)
        hashed = request_hash(body, model)
        key = digest(hashed, item, role, at["step"], at["attempt"])

        def row() -> Row:
            return new_row(
                invocation_id=self._invocation_id,
                stage=self._stage,
                model=model,
                request_hash=hashed,
                **at,
            )

        entry = self._journal.cached(key)
        if entry is not None:
            self._rows.append(row() | {"cache_hit": True, "status": "ok"})
            return _completion(ChatAnswer(**entry["answer"]), model, cached=True)
        amount = Amount(config.worst_usd(*worst), sum(worst))
        request = _Request(
            config, endpoint, body, key, amount, worst, row, path, lambda raw: read(raw, key)
        )
        return _completion(await self._with_retries(request), model, cached=False)

    async def _with_retries(self, request: _Request) -> ChatAnswer:
        tries = request.config.retries + 1
        number = 0
        while True:
            number += 1
            try:
                return await self._try(request)
            except SendError as failure:
                if failure.error is not None:
                    raise failure.error from None
                wait_s = self._wait_s(request, number, failure.retry_after_s or 0.0)
                told = f"{number} of {tries} tries failed, the last with {failure}"
                if number == tries:
                    raise TransientError(told) from None
                if wait_s > LONGEST_RETRY_AFTER_S:
                    raise TransientError(f"{told}; asked to wait {wait_s:.0f} s") from None
            await asyncio.sleep(wait_s)

    def _wait_s(self, request: _Request, number: int, retry_after_s: float) -> float:
        """At least what the server asks for; the jitter keeps refused requests from coming back
        together, and is seeded so that a run's waits can be told from its log."""
        longest = min(request.config.backoff_s * 2 ** (number - 1), LONGEST_BACKOFF_S)
        jitter = rng_of(request.key, "backoff", number).uniform(0.5, 1.0)
        return retry_after_s + longest * jitter

    async def _try(self, request: _Request) -> ChatAnswer:
        """Send once. The slot is given back while a retry waits, and so is the reservation."""
        budget, row = self._gateway.budget, request.row()
        async with request.endpoint.gate.slot() as slot:
            await budget.reserve(self._stage, request.worst)
            self._charge(row, request.config, *request.worst_tokens)
            used = request.worst
            start = time.perf_counter()
            try:
                if budget.limited:  # a kill from here on must not lose what this may have cost
                    self._journal.remember(row["call_id"], {"row": to_journal(row)})
                answer = await self._post(request)
                row["latency_s"] = time.perf_counter() - start
                row["status"] = "ok"
                self._charge(row, request.config, answer.prompt_tokens, answer.completion_tokens)
                used = Amount(row["cost_usd"], answer.prompt_tokens + answer.completion_tokens)
                entry = {"answer": answer._asdict(), "row": to_journal(row)}
                self._journal.remember(request.key, entry)
                return answer
            except SendError as failure:
                row["latency_s"] = time.perf_counter() - start
                row["status"] = failure.status
                if not failure.billed:
                    self._charge(row, request.config, 0, 0)
                    used = NOTHING
                raise
            finally:  # a cancelled request counts with its worst case, too
                slot.signal = _SIGNALS.get(row["status"], "neutral")
                budget.settle(self._stage, request.worst, used)
                self._rows.append(row)
                if row["status"] != "ok" and (used != NOTHING or budget.limited):
                    self._journal.remember(f"{row['call_id']}-end", {"row": to_journal(row)})

    async def _post(self, request: _Request) -> ChatAnswer:
        timeout_s = request.config.timeout_s
        raw = await request.endpoint.post(request.body, path=request.path, timeout_s=timeout_s)
        try:
            return request.read(raw)
        except BadBodyError as error:
            raise SendError("bad_body", f"{request.endpoint.url}: {error}", billed=True) from None

    @staticmethod
    def _charge(row: Row, config: RoleConfig, prompt: int, completion: int) -> None:
        row["prompt_tokens"], row["completion_tokens"] = prompt, completion
        row["cost_usd"] = config.cost_usd(TokenUsage(prompt, completion))


def _completion(answer: ChatAnswer, model: str, *, cached: bool) -> Completion:
    return Completion(
        content=answer.content,
        tool_calls=answer.tool_calls,
        reasoning=answer.reasoning,
        finish_reason=answer.finish_reason,
        model=model,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        cached=cached,
    )
