"""One request on its way: shaped for its endpoint, sent, tried again, paid for and written down.

What a server refuses because of a field changes the endpoint's profile, and the request goes again
in the new form. What it refuses for load waits in the endpoint's gate and uses up none of the
request's tries.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

from pydantic_core import to_json

from records.errors import ConfigError, ItemError, TransientError
from records.seeds import rng_of
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.batching import BatchedSending
from synth.llm.budget import NOTHING, Amount
from synth.llm.endpoint.batch import BatchQuestion
from synth.llm.endpoint.batch_api import BatchApi
from synth.llm.endpoint.batch_store import BatchedRequest
from synth.llm.endpoint.connection import Endpoint, Sent
from synth.llm.endpoint.failures import SendError, is_out_of_money, outcome_of
from synth.llm.endpoint.gate import Outcome, Slot, Ticket
from synth.llm.gateway import Exchange, Gateway
from synth.llm.ledger import PENDING, to_journal
from synth.llm.profiles import InUse
from synth.llm.settings.config import RoleConfig, TokenUsage
from synth.llm.settings.profile import Profile
from synth.llm.wire.answer import BadBodyError, ChatAnswer
from synth.llm.wire.refusals import Refusal, is_moderation, read_refusal
from synth.llm.wire.shape import is_plain, shaped

CHAT = "/chat/completions"

LONGEST_BACKOFF_S = 60.0
"""Cap of a request's own waits; what a server asks for is its gate's to honour."""

LONGEST_BATCH_BACKOFF_S = 900.0
"""Cap of the waits of requests in batches: room in a server's queue comes as others end."""

MOST_REFUSALS = 240
"""For load, of one request: twenty minutes at the longest rest of an endpoint that names none."""

MOST_CHANGES = 12
"""Of a profile by one request: more fields than any server refuses."""

STILL_ALLOWED_S = 60.0
"""How long an endpoint that answered a harmless question after a 403 is taken to let us in."""

TOKEN_BYTES = 4
"""To tell a minute's limit roughly what a request will use."""

_SAID_BY_500 = frozenset({"alternation", "system_role", "structured", "call_arguments"})
"""What servers that render a template or compile a grammar report as errors of their own."""

log = logging.getLogger(__name__)


class Shaped(NamedTuple):
    """A request in the form that the endpoint takes."""

    body: Mapping[str, Any]
    raw: bytes
    worst: tuple[int, int]
    """Tokens of prompt and completion at most."""


class ModelRequest(NamedTuple):
    config: RoleConfig
    endpoint: Endpoint
    role: str
    model: str
    path: str
    """Below the base URL."""
    key: str
    """Under which the journal keeps the answer."""
    row: Callable[[], Row]
    shape: Callable[[Profile, bool], Shaped]
    """Given the profile, and whether it leaves requests as they are."""
    read: Callable[[bytes, Profile, tuple[int, int]], ChatAnswer]
    """Given the body of an answer, the profile that the request was shaped by, and its worst case.
    May raise BadBodyError."""


class _Tried(NamedTuple):
    """What a try was made with."""

    profile: Profile
    sent: Shaped
    earlier: BatchedRequest | None = None
    """The batch that holds it already."""


_GIVEN_UP = re.compile(r"(?:\d+ of \d+ tries failed|refused \d+ times), the last with ")


def is_endpoint_failure(error: str) -> bool:
    """Whether the words of an error, as rows keep them, are of a request that `Sender.send` gave
    up."""
    return _GIVEN_UP.match(error) is not None


class Sender:
    """Sends the requests of one shard, whose rows it adds to and whose journal it writes."""

    def __init__(
        self, gateway: Gateway, journal: ShardJournal, stage: str, rows: list[Row]
    ) -> None:
        self._gateway, self._journal, self._stage, self._rows = gateway, journal, stage, rows
        self._allowed_until: dict[str, float] = {}
        self._batched = BatchedSending(gateway.batches, gateway.budget, stage, rows)

    async def send(self, request: ModelRequest) -> ChatAnswer:
        """Raises what `LLM.chat` raises."""
        tries = request.config.retries + 1
        number = refusals = changes = 0
        fallback: str | None = None
        while True:
            tried = self._shaped(request)
            try:
                return await self._try(request, tried, fallback)
            except SendError as caught:
                failure = caught
            change = self._fallback(request, tried, failure)
            fallback = change or None
            if change is not None and changes < MOST_CHANGES:
                changes += 1
                continue
            if failure.status == "refused":
                await self._raise_refused(request, tried, failure)
            if failure.meaning.counts:
                number += 1
            elif failure.status != "unreachable":  # which the gate alone waits for
                refusals += 1
            if number == tries:
                raise TransientError(f"{number} of {tries} tries failed, the last with {failure}")
            if refusals == MOST_REFUSALS:
                raise TransientError(f"refused {refusals} times, the last with {failure}")
            # the endpoint's gate waits as long as the server asks; a first refusal it lets pass
            waits, longest_s = max(number, 1), LONGEST_BACKOFF_S
            if self._goes_batched(request):  # and its waits are not the gate's
                waits, longest_s = number + refusals, LONGEST_BATCH_BACKOFF_S
            await asyncio.sleep(self._wait_s(request, waits, longest_s))

    def _goes_batched(self, request: ModelRequest) -> bool:
        return self._batched.takes(request.config) and request.path == CHAT

    def _shaped(self, request: ModelRequest) -> _Tried:
        used = self._gateway.profiles.of(request.config, request.model)
        if not self._goes_batched(request):
            return _Tried(used.profile, request.shape(used.profile, used.is_plain))
        earlier = self._batched.earlier(request.key, request.endpoint.url)
        if earlier is not None:  # its answer is read by what it was asked by
            used = InUse(earlier.profile, is_plain(earlier.profile))
        sent = request.shape(used.profile, used.is_plain)
        if sent.body.get("stream"):
            left = {k: v for k, v in sent.body.items() if k not in ("stream", "stream_options")}
            sent = Shaped(left, to_json(left, inf_nan_mode="null"), sent.worst)
        return _Tried(used.profile, sent, earlier)

    @staticmethod
    def _wait_s(request: ModelRequest, number: int, longest_s: float) -> float:
        """The jitter keeps requests that failed together from coming back together, and is seeded
        so that a run's waits can be told from its log."""
        longest = min(request.config.backoff_s * 2 ** (number - 1), longest_s)
        jitter = rng_of(request.key, "backoff", number).uniform(0.5, 1.0)
        return longest * jitter

    def _fallback(self, request: ModelRequest, tried: _Tried, failure: SendError) -> str | None:
        """What changes in the endpoint's profile because of this refusal, in words; empty where
        another request has brought a change already; None: the refusal is about something else."""
        if failure.code is None or not (400 <= failure.code < 500 or failure.code in (500, 501)):
            return None
        if failure.code in (401, 402, 403, 404, 408, 409, 425, 429) or request.path != CHAT:
            return None
        refusal = read_refusal(
            failure.body,
            status=failure.code,
            sent=tried.sent.body,
            profile=tried.profile,
            declared=request.config.profile,
        )
        if refusal.fault != "field" or (failure.code >= 500 and refusal.entry not in _SAID_BY_500):
            return None
        now = self._gateway.profiles.of(request.config, request.model).profile
        if now != tried.profile:
            return ""
        log.warning("%s, %s: %s", request.endpoint.url, request.model, refusal.change)
        where = (request.config.endpoint_key, request.model)
        self._gateway.profiles.change(where, **{refusal.entry: refusal.value})
        return refusal.change

    async def _raise_refused(
        self, request: ModelRequest, tried: _Tried, failure: SendError
    ) -> NoReturn:
        """By status: the request's own fault, or the configuration's."""
        code, what = failure.code or 0, failure.detail
        if code == 403 and await self._is_let_in(request):
            raise ItemError("moderated" if is_moderation(failure.body) else "refused", what)
        if (code in (400, 413, 422, 429) and not is_out_of_money(code, failure.body)) or (
            is_moderation(failure.body)
        ):
            refusal = self._refusal(request, tried, failure)
            reason = "refused" if refusal.fault in ("field", "request") else refusal.fault
            if refusal.fault == "field":
                what = f"{what}; this is what roles.{request.role}.profile has set"
            raise ItemError(reason, what)
        advice = f"check roles.{request.role}.base_url and the name of the model"
        if code in (401, 403):
            named = request.config.api_key_env
            advice = f"check the key in {named}" if named else "set api_key_env"
        if is_out_of_money(code, failure.body):
            advice = "the account has no credit or quota left"
        raise ConfigError(f"{what}; {advice}")

    @staticmethod
    def _refusal(request: ModelRequest, tried: _Tried, failure: SendError) -> Refusal:
        return read_refusal(
            failure.body,
            status=failure.code or 0,
            sent=tried.sent.body,
            profile=tried.profile,
            declared=Profile(),
        )

    async def _is_let_in(self, request: ModelRequest) -> bool:
        """Whether a harmless question is answered, so that a 403 was about the text alone."""
        url = request.endpoint.url
        if time.monotonic() < self._allowed_until.get(url, 0.0):
            return True
        row = request.row() | {"step": "after-403"}
        body = {
            "model": request.model,
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": request.config.max_tokens,
        }

        def shape(profile: Profile, is_plain: bool) -> Shaped:
            made = shaped(body, profile)
            raw = to_json(made)
            return Shaped(made, raw, (len(raw), request.config.max_tokens))

        key = f"{row['call_id']}-allowed"
        at_once = request.config.model_copy(update={"batch": False})
        question = request._replace(
            config=at_once, path=CHAT, key=key, row=lambda: row, shape=shape
        )
        try:
            await self._try(question, self._shaped(question), None)
        except SendError as failure:
            return failure.status != "refused"
        self._allowed_until[url] = time.monotonic() + STILL_ALLOWED_S
        return True

    async def _try(self, request: ModelRequest, tried: _Tried, fallback: str | None) -> ChatAnswer:
        """Send once. The slot is given back while a retry waits, and so is the reservation."""
        budget, row, config = self._gateway.budget, request.row(), request.config
        row["fallback"] = fallback
        sent, batched = tried.sent, self._goes_batched(request)
        worst = Amount(config.worst_usd(*sent.worst), sum(sent.worst))
        used = NOTHING
        is_known = went = False

        def goes() -> None:
            """From here on the server may charge for it."""
            nonlocal used, went
            used, went = worst, True
            _charge_worst(row, config, sent.worst)
            if budget.limited and not is_known:  # a kill must not lose what this may have cost
                self._journal.remember(row["call_id"], {"row": to_journal(row)})

        slot_of = _no_slot if batched else request.endpoint.gate.slot
        # before the slot: who waits for the budget must keep nobody from the endpoint, since what
        # frees the budget may be a batch that is asked for there
        is_known = await self._batched.reserve(worst, row, tried.earlier)
        try:
            async with slot_of(request.model, len(sent.raw) // TOKEN_BYTES) as slot:
                start = time.perf_counter()
                try:
                    if tried.earlier is not None or not batched:
                        goes()
                    answered = await self._post(request, tried, row["call_id"], goes)
                    answer = self._read(request, tried, answered)
                    row["latency_s"] = time.perf_counter() - start
                    row["status"] = "ok"
                    _charge(row, config, answer.usage)
                    used = Amount(row["cost_usd"], answer.prompt_tokens + answer.completion_tokens)
                    hint = answered.hint if tried.profile.rate_headers else None
                    slot.outcome = Outcome("ok", answered=True, tokens=used.tokens, hint=hint)
                    self._journal.remember(
                        request.key, {"answer": answer._asdict(), "row": to_journal(row)}
                    )
                    self._show(request, row, sent, answer)
                    return answer
                except SendError as failure:
                    row["latency_s"] = time.perf_counter() - start
                    row["status"], row["detail"] = failure.status, failure.detail
                    slot.outcome = outcome_of(failure, request.key)
                    if not tried.profile.rate_headers:
                        slot.outcome = slot.outcome._replace(hint=None)
                    if not failure.meaning.billed:
                        _charge(row, config, TokenUsage(0, 0))
                        used = NOTHING
                    raise
        finally:  # a cancelled request counts with its worst case, too
            budget.settle(self._stage, worst, used)
            if went or row["status"] != PENDING:
                self._rows.append(row)
                self._write_end(row, is_known=is_known, matters=used != NOTHING or budget.limited)
            if batched and row["status"] != PENDING:
                self._batched.done(request.key)

    def _write_end(self, row: Row, *, is_known: bool, matters: bool) -> None:
        """Of a request without an answer. What is known of one that waits on stays as it is."""
        if row["status"] == "ok" or not matters or (is_known and row["status"] == PENDING):
            return
        end = "ended" if is_known else "end"  # there may be one of an invocation that was stopped
        self._journal.remember(f"{row['call_id']}-{end}", {"row": to_journal(row)})

    async def _post(
        self, request: ModelRequest, tried: _Tried, call_id: str, goes: Callable[[], None]
    ) -> Sent:
        endpoint, config, sent = request.endpoint, request.config, tried.sent
        if self._goes_batched(request):
            api = BatchApi(endpoint, request.role, config.timeout_s)
            noted = BatchedRequest(request.key, tried.profile, call_id)
            asked = BatchQuestion(request.model, noted, sent.raw, goes)
            return Sent(await self._batched.ask(api, asked), None)
        if sent.body.get("stream"):
            return await endpoint.stream(
                sent.raw,
                path=request.path,
                timeout_s=config.timeout_s,
                idle_timeout_s=config.idle_timeout_s,
            )
        return await endpoint.post(sent.raw, path=request.path, timeout_s=config.timeout_s)

    @staticmethod
    def _read(request: ModelRequest, tried: _Tried, answered: Sent) -> ChatAnswer:
        try:
            return request.read(answered.raw, tried.profile, tried.sent.worst)
        except BadBodyError as error:
            said = request.endpoint.scrub(f"{request.endpoint.url}: {error}")
            raise SendError("bad_body", said, hint=answered.hint) from None

    def _show(self, request: ModelRequest, row: Row, sent: Shaped, answer: ChatAnswer) -> None:
        if self._gateway.on_exchange is not None:
            place = (row["stage"], row["role"], row["item_id"], row["step"])
            self._gateway.on_exchange(Exchange(*place, request.path, sent.raw, answer))


def _no_slot(model: str, tokens: int) -> AbstractAsyncContextManager[Slot]:
    """Of a request that waits in a batch: it holds nobody up."""
    return nullcontext(Slot(Ticket(0, 0, model, tokens)))


def _charge_worst(row: Row, config: RoleConfig, worst: tuple[int, int]) -> None:
    row["prompt_tokens"], row["completion_tokens"] = worst
    row["cost_usd"] = config.worst_usd(*worst)


def _charge(row: Row, config: RoleConfig, usage: TokenUsage) -> None:
    row["prompt_tokens"], row["completion_tokens"] = usage.prompt, usage.completion
    row["cached_tokens"], row["reasoning_tokens"] = usage.cached, usage.reasoning
    row["cost_usd"] = config.cost_usd(usage)
