"""Asking a model: cache, budget, retries and ledger around one request.

A billed answer is in the shard's journal before anybody sees it, so it is never paid twice.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from records.digest import digest
from records.errors import ItemError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.first_requests import note_request
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, new_row
from synth.llm.sending import CHAT, ModelRequest, Sender, Shaped
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.llm.settings.profile import Profile
from synth.llm.structured import StructuredOutput, cut_words
from synth.llm.wire.answer import ChatAnswer, read_answer
from synth.llm.wire.embeddings import PATH as EMBEDDINGS
from synth.llm.wire.embeddings import embedding_body, read_embeddings, vectors_of
from synth.llm.wire.request import AnswerForm, Message, PlainRequest, chat_request, request_hash
from synth.llm.wire.shape import most_tokens, shaped

DOUBLINGS = 2
"""How often an answer that was cut is asked for again, each time with twice the room."""

Reader = Callable[[bytes, Profile, tuple[int, int]], ChatAnswer]
"""Given the body of an answer, the profile that it was asked by, and its worst case."""


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
        self._structured = StructuredOutput(self._ask_for)
        # what an earlier try of this shard paid for: its ledger died with it
        self._rows: list[Row] = journalled_rows(journal)
        self._sender = Sender(gateway, journal, stage, self._rows)
        self._playing: dict[str, str] = {}

    def playing(self, role: str, model: str) -> "LLM":
        """The same models, but `role` is played by `model`, one of its own, whatever the item."""
        chosen = copy.copy(self)
        chosen._playing = self._playing | {role: model}
        chosen._structured = StructuredOutput(chosen._ask_for)
        return chosen

    def retry_number_of(self, item: str) -> int:
        """0, or how often the item was asked for in vain: a retry shares no answer with another."""
        return self._retry_numbers.get(item, 0)

    def rows(self) -> list[Row]:
        """For the table `llm_calls`: every request and cache hit of this shard so far."""
        return list(self._rows)

    def take_rows(self) -> list[Row]:
        """As `rows`, which are forgotten then: for who asks without end."""
        taken = list(self._rows)
        self._rows.clear()  # the one list that the sender writes to
        return taken

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        tools: Sequence[dict[str, Any]] | None = None,
        may_be_cut: bool = False,
    ) -> Completion:
        """One answer, any answer: what it says is not validated. `may_be_cut`: whether one that was
        cut is of use as it is, and not asked for again with more room.

        (item, role, step) names the place; the same request there is asked and paid once. Raises
        TransientError when the retries are spent, UnavailableError when the endpoint is gone for
        longer than the run waits, BudgetError when the request does not fit, ConfigError for a
        wrong key or an unknown model, and ItemError for what is this request's own: `refused`,
        `moderated`, `context_length`, or `cut_off` for an answer that needs more tokens than it may
        have.
        """
        doublings = 0 if may_be_cut else DOUBLINGS
        answer = await self._ask(
            role, messages, item=item, step=step, tools=tools, doublings=doublings
        )
        if answer.finish_reason == "length" and not may_be_cut:
            raise ItemError("cut_off", f"{role} for {item}: {cut_words(answer.completion_tokens)}")
        return answer

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
        config = self._role(role)
        note_request(role, {"input": list(texts)})
        body = embedding_body(config, role, texts, item=item)
        sent = Shaped({}, body, (len(body), 0))

        def read(raw: bytes, profile: Profile, worst: tuple[int, int]) -> ChatAnswer:
            return read_embeddings(raw, count=len(texts), fallback_tokens=len(body))

        place = _Place(item, role, step, 0)
        made = await self._fetch(
            place, body, EMBEDDINGS, lambda profile, is_plain: sent, lambda key: read
        )
        return vectors_of(made.content)

    def _role(self, role: str) -> RoleConfig:
        config, _ = self._gateway.role(role)
        if role not in self._playing:
            return config
        return config.model_copy(update={"models": (ModelConfig(name=self._playing[role]),)})

    async def _ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        item: str,
        step: str,
        tools: Sequence[dict[str, Any]] | None = None,
        form: AnswerForm | None = None,
        attempt: int = 0,
        doublings: int = DOUBLINGS,
    ) -> Completion:
        """An answer that was cut is asked for again with more room, as long as that helps."""
        config = self._role(role)
        place = _Place(item, role, step, attempt)
        room = 1
        while True:
            asked = chat_request(
                config,
                role,
                messages,
                item=item,
                round_=self.retry_number_of(item),
                tools=tools,
                form=form,
                room=room,
            )
            note_request(role, asked.body)
            shape, read_for = _shaping(asked), _reading(form)
            answer = await self._fetch(place, asked.raw, CHAT, shape, read_for)
            if answer.finish_reason != "length" or room == 2**doublings:
                return answer
            profile = self._gateway.profiles.of(config, answer.model).profile
            size = len(asked.raw)
            if most_tokens(2 * asked.max_tokens, profile, size) <= most_tokens(
                asked.max_tokens, profile, size
            ):
                return answer
            room *= 2

    async def _ask_for(
        self,
        role: str,
        messages: Sequence[Message],
        /,
        *,
        item: str,
        step: str,
        form: AnswerForm,
        attempt: int,
    ) -> Completion:
        return await self._ask(role, messages, item=item, step=step, form=form, attempt=attempt)

    async def _fetch(
        self,
        place: "_Place",
        body: bytes,
        path: str,
        shape: Callable[[Profile, bool], Shaped],
        read_for: Callable[[str], Reader],
    ) -> Completion:
        """From the journal, or paid for. `body` is what is asked, before it is shaped; `read_for`
        is given the answer's key."""
        config = self._role(place.role)
        model = config.model_of(place.item, place.role)
        hashed = request_hash(body, model)
        key = digest(hashed, *place)

        def row() -> Row:
            return new_row(
                invocation_id=self._invocation_id,
                stage=self._stage,
                model=model,
                request_hash=hashed,
                **place._asdict(),
            )

        entry = self._journal.cached(key)
        if entry is not None:
            self._rows.append(row() | {"cache_hit": True, "status": "ok"})
            return _completion(ChatAnswer(**entry["answer"]), model, cached=True)
        _, endpoint = self._gateway.role(place.role)
        request = ModelRequest(
            config, endpoint, place.role, model, path, key, row, shape, read_for(key)
        )
        return _completion(await self._sender.send(request), model, cached=False)


class _Place(NamedTuple):
    """Where a request belongs: the same one there is asked and paid once."""

    item: str
    role: str
    step: str
    attempt: int


def _shaping(asked: PlainRequest) -> Callable[[Profile, bool], Shaped]:
    size = len(asked.raw)

    def shape(profile: Profile, is_plain: bool) -> Shaped:
        if is_plain:
            return Shaped(asked.body, asked.raw, (size, asked.max_tokens))
        body = shaped(asked.body, profile, size=size, messages=asked.messages)
        raw = to_json(body, inf_nan_mode="null")
        return Shaped(body, raw, (len(raw), most_tokens(asked.max_tokens, profile, size)))

    return shape


def _reading(form: AnswerForm | None) -> Callable[[str], Reader]:
    def read_for(key: str) -> Reader:
        def read(raw: bytes, profile: Profile, worst: tuple[int, int]) -> ChatAnswer:
            in_a_call = form is not None and profile.structured == "tool"
            return read_answer(
                raw,
                # ids hang on the place, not on the try, so that reruns give the same rows
                call_prefix=f"call_{key}",
                fallback_usage=worst,
                answer_in_call=in_a_call,
                cached_usage=profile.cached_usage,
            )

        return read

    return read_for


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
