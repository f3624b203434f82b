"""What an endpoint and a model can do, tried entry by entry: what `synth probe` prints.

Every finding is of a request that was really sent. A model is asked some fifteen times, each time
for a few words; nothing is written to a dataset.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from synth.llm.endpoint.connection import ASGIApp, Endpoint, Sent
from synth.llm.endpoint.failures import SendError
from synth.llm.gateway import Gateway
from synth.llm.probing.probe import context_listed
from synth.llm.probing.questions import FORM, HELLO, REPORT, TOOL, TWO_CITIES, WEATHER
from synth.llm.probing.tool_calls import call_problem
from synth.llm.profiles import ModelAt
from synth.llm.settings.config import RoleConfig, TokenUsage
from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from synth.llm.structured import validator_of
from synth.llm.wire.answer import CACHED, BadBodyError, ChatAnswer, read_answer, value_at
from synth.llm.wire.json_text import NotJsonError, value_in
from synth.llm.wire.refusals import read_refusal
from synth.llm.wire.request import AnswerForm, Message, chat_request
from synth.llm.wire.shape import most_tokens, shaped

ROOM = 1024
"""Tokens of an answer at most, unless the role asks for fewer: models may reason first."""

TRIES = 3
LONGEST_WAIT_S = 60.0
LIST_TIMEOUT_S = 30.0
MOST_CHANGES = 8

LONG_TEXT_WORDS = 2500
"""Of a prompt that servers keep in a cache: most do so from a thousand tokens on."""


class Finding(NamedTuple):
    entry: str
    """Of the profile, or what else was looked at."""
    value: Any
    how: str
    """What was sent and what came, in words."""


class ProbedModel(NamedTuple):
    url: str
    model: str
    roles: list[str]
    profile: Profile
    """What was found and can be set."""
    findings: list[Finding]
    problems: list[str]
    """What will not work, in words; empty for a model that can play its roles."""
    requests: int
    usage: TokenUsage
    usd: float


class _Heard(NamedTuple):
    answer: ChatAnswer
    raw: Mapping[str, Any]
    sent: Sent


class _RefusedError(Exception):
    """The server did not do what was asked, in its own words."""


async def probe_thoroughly(
    roles: Mapping[Any, RoleConfig],
    *,
    offline_app: Callable[[], ASGIApp] | None = None,
    on_progress: Callable[[str], None] = lambda words: None,
) -> list[ProbedModel]:
    """Each model of the roles, once. Raises ConfigError for a key that is missing."""
    parts: dict[ModelAt, list[str]] = {}
    for role, config in roles.items():
        for model in config.models:
            parts.setdefault((config.endpoint_key, model.name), []).append(role)
    probed = []
    async with Gateway(roles, offline_app=offline_app) as gateway:
        for (key, model), players in parts.items():
            config, endpoint = gateway.role(players[0])
            on_progress(f"{model} at {key.base_url}, which plays {', '.join(players)}")
            probed.append(await _Prober(config, endpoint, model, on_progress).probed(players))
    return probed


class _Prober:
    """Of one model."""

    def __init__(
        self, config: RoleConfig, endpoint: Endpoint, model: str, say: Callable[[str], None]
    ) -> None:
        chosen = tuple(one for one in config.models if one.name == model)
        most = min(config.max_tokens, ROOM)
        self._config = config.model_copy(update={"models": chosen, "max_tokens": most})
        self._endpoint, self._model, self._say = endpoint, model, say
        self._found = Profile()
        self._findings: list[Finding] = []
        self._problems: list[str] = []
        self._requests = 0
        self._usages: list[TokenUsage] = []

    async def probed(self, roles: list[str]) -> ProbedModel:
        embeds = roles == ["embedder"]
        steps = [self._listing]
        if not embeds:
            steps += [self._basics, self._forms, self._calls, self._turns]
            steps += [self._streaming, self._reasoning, self._cache]
        for step in steps:
            try:
                await step()
            except _RefusedError as error:
                self._problems.append(str(error))
                if step in (self._listing, self._basics):
                    break
        total = TokenUsage(*map(sum, zip(*self._usages, strict=True))) if self._usages else None
        usage = total or TokenUsage(0, 0)
        return ProbedModel(
            self._endpoint.url,
            self._model,
            roles,
            self._found,
            self._findings,
            self._problems,
            self._requests,
            usage,
            self._config.cost_usd(usage),
        )

    async def _listing(self) -> None:
        self._requests += 1
        try:
            listed = await self._endpoint.models(timeout_s=LIST_TIMEOUT_S)
        except SendError as failure:
            raise _RefusedError(failure.detail) from None
        if listed is None:
            self._note("models listed", None, "the endpoint does not list its models")
            return
        names = [entry["id"] for entry in listed]
        self._note("models listed", len(names), ", ".join(names[:5]))
        if context := context_listed(listed, self._model):
            self._learn("context_tokens", context, "the list of models says so")

    async def _basics(self) -> None:
        """The usual request, with whatever the server wants otherwise."""
        system = {"role": "system", "content": "You answer in a few words."}
        heard = await self._ask([system, *HELLO], adapt=True)
        used = self._used()
        for entry in ("seed", "max_tokens_field", "sampling", "system_role"):
            self._note(entry, getattr(used, entry), "the usual request was answered so")
        if heard.sent.hint is None:
            self._learn("rate_headers", False, "no header says what a minute has left")
        else:
            said = "; ".join(
                f"{what}: {left.remaining} of {left.limit}"
                for what, left in heard.sent.hint._asdict().items()
                if left
            )
            self._learn("rate_headers", True, said)
        self._note("usage", heard.raw.get("usage") is not None, json.dumps(heard.raw.get("usage")))

    async def _forms(self) -> None:
        working = []
        for mode in STRUCTURED:
            try:
                heard = await self._ask(REPORT, form=("weather", FORM), structured=mode)
                value = value_in(heard.answer.content, validator_of(FORM))
                if not validator_of(FORM).is_valid(value):
                    raise _RefusedError(f"the answer does not fit: {heard.answer.content[:80]!r}")
            except NotJsonError:
                self._note(f"structured = {mode}", False, "the answer is no JSON")
            except _RefusedError as error:
                self._note(f"structured = {mode}", False, str(error))
            else:
                working.append(mode)
                self._note(f"structured = {mode}", True, heard.answer.content[:80])
        if working:
            self._learn("structured", working[0], f"works; all that work: {', '.join(working)}")
        else:
            self._problems.append("no way to ask for an answer in a given form works")

    async def _calls(self) -> None:
        heard = await self._ask(WEATHER, tools=[TOOL])
        problem = call_problem(heard.answer)
        if problem is not None:
            self._problems.append(f"tool calls do not work: {problem}")
            self._note("tool calls", False, problem)
            return
        self._note("tool calls", True, heard.answer.tool_calls[0]["function"]["arguments"])
        heard = await self._ask(TWO_CITIES, tools=[TOOL])
        number = len(heard.answer.tool_calls)
        self._note("calls at once", number, "asked for two cities")
        for choice in ("named", "required"):
            try:
                await self._ask(
                    REPORT, form=("weather", FORM), structured="tool", tool_choice=choice
                )
            except _RefusedError as error:
                self._note(f"tool_choice = {choice}", False, str(error))
            else:
                self._learn("tool_choice", choice, "a call was forced so")
                return
        self._learn("tool_choice", "auto", "no call can be forced")

    async def _turns(self) -> None:
        neighbours = [*HELLO, {"role": "user", "content": "And say goodbye."}]
        try:
            await self._ask(neighbours, alternation=False)
        except _RefusedError as error:
            self._learn("alternation", True, str(error))
        else:
            self._learn("alternation", False, "two messages of the user in a row were answered")

    async def _streaming(self) -> None:
        for usage in (True, False):
            try:
                heard = await self._ask(HELLO, stream=True, stream_usage=usage)
            except _RefusedError as error:
                self._note(f"streaming, usage asked for: {usage}", False, str(error))
                continue
            told = heard.raw.get("usage") is not None
            self._note("stream", True, "an answer came streamed")
            self._learn("stream_usage", usage, f"usage at its end: {'yes' if told else 'no'}")
            return
        self._learn("stream", False, "no answer could be streamed")

    async def _reasoning(self) -> None:
        question = {"role": "user", "content": "What is 17 times 23? Answer with the number."}
        heard = await self._ask([question])
        message = heard.raw["choices"][0]["message"]
        place = next((n for n in ("reasoning_content", "reasoning") if message.get(n)), None)
        if place is None:
            place = "think" if heard.answer.reasoning else "none"
        counted = heard.answer.reasoning_tokens
        self._learn("reasoning_field", place, f"{counted} tokens of reasoning were counted")
        if place == "none" and not counted:
            return
        config = self._config.model_copy(update={"reasoning_effort": "low"})
        for field in ("reasoning_effort", "reasoning.effort", "enable_thinking", "thinking"):
            try:
                await self._ask([question], config=config, effort_field=field)
            except _RefusedError as error:
                self._note(f"effort_field = {field}", False, str(error))
            else:
                self._learn("effort_field", field, "the field was taken; whether it acts is not")
                return
        self._learn("effort_field", "none", "no way to set it was taken")

    async def _cache(self) -> None:
        text = " ".join(f"Line {n} says nothing new." for n in range(LONG_TEXT_WORDS // 5))
        asked = [{"role": "user", "content": f"{text}\n\nSay hello."}]
        usage: Mapping[str, Any] = {}
        for _ in range(2):
            usage = (await self._ask(asked)).raw.get("usage") or {}
        for place in CACHED:
            if type(cached := value_at(usage, place)) is int:
                told = f"{cached} tokens of a prompt that was sent before"
                self._learn("cached_usage", place, told)
                return
        self._note("cached_usage", None, "the usage of a repeated prompt names no cache")

    async def _ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        form: AnswerForm | None = None,
        config: RoleConfig | None = None,
        adapt: bool = False,
        **entries: Any,
    ) -> _Heard:
        """With `entries` in the profile. What the server refuses is a _RefusedError; if `adapt`,
        what it wants otherwise is learnt first."""
        config = config or self._config
        for _ in range(MOST_CHANGES):
            used = self._used().model_copy(update=entries)
            asked = chat_request(
                config, "probe", messages, item=f"probe-{self._requests}", tools=tools, form=form
            )
            body = shaped(asked.body, used, size=len(asked.raw), messages=asked.messages)
            try:
                sent = await self._send(to_json(body), streams=bool(body.get("stream")))
            except SendError as failure:
                if failure.code is None:
                    raise _RefusedError(failure.detail) from None
                refusal = read_refusal(
                    failure.body,
                    status=failure.code,
                    sent=body,
                    profile=used,
                    declared=self._config.profile,
                )
                if adapt and refusal.fault == "field":
                    self._learn(refusal.entry, refusal.value, failure.detail)
                    continue
                raise _RefusedError(failure.detail) from None
            room = most_tokens(asked.max_tokens, used, len(asked.raw))
            return self._heard(sent, used, form, (len(asked.raw), room))
        raise _RefusedError("the server refuses one field after the other")

    async def _send(self, raw: bytes, *, streams: bool) -> Sent:
        for number in range(TRIES):
            self._requests += 1
            try:
                if streams:
                    return await self._endpoint.stream(
                        raw,
                        path="/chat/completions",
                        timeout_s=self._config.timeout_s,
                        idle_timeout_s=self._config.idle_timeout_s,
                    )
                return await self._endpoint.post(
                    raw, path="/chat/completions", timeout_s=self._config.timeout_s
                )
            except SendError as failure:
                wait_s = failure.retry_after_s or 2.0**number
                if failure.status == "refused" or number == TRIES - 1 or wait_s > LONGEST_WAIT_S:
                    raise
                self._say(f"  {failure.detail}; again in {wait_s:.0f} s")
                await asyncio.sleep(wait_s)
        raise AssertionError("the loop returns or raises")

    def _heard(
        self, sent: Sent, used: Profile, form: AnswerForm | None, worst: tuple[int, int]
    ) -> _Heard:
        try:
            answer = read_answer(
                sent.raw,
                call_prefix="call",
                fallback_usage=worst,
                answer_in_call=form is not None and used.structured == "tool",
                cached_usage=used.cached_usage,
            )
        except BadBodyError as error:
            raise _RefusedError(str(error)) from None
        self._usages.append(answer.usage)
        return _Heard(answer, json.loads(sent.raw), sent)

    def _used(self) -> Profile:
        return self._config.profile.over(self._found).over(USUAL)

    def _learn(self, entry: str, value: Any, how: str) -> None:
        self._found = self._found.model_copy(update={entry: value})
        self._note(entry, value, how)

    def _note(self, entry: str, value: Any, how: str) -> None:
        self._findings.append(Finding(entry, value, " ".join(how.split())))
        self._say(f"  {entry}: {value}")
