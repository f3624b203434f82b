"""A request as tokens to be drawn behind: its prompt, what may be written, how much there is room.

The prompt is what `ModelPolicy` reads for the same messages and tools, token for token.
"""

import secrets
from typing import NamedTuple

from offline_llm.server.request import RequestError
from records.errors import ConfigError
from trainer.data.chat import encode_chat, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.enforcer import MOST_CALLS, AnswerGrammar, Enforcer
from trainer.inference.policies import num_calls
from trainer.inference.sampler import AnswerDraft
from trainer.serving.asked import ChatAsked

CANNOT_BE_READ = (
    ConfigError,
    TypeError,
    AttributeError,
    LookupError,
    ValueError,
    RecursionError,
)
"""What comes of messages and schemas that are JSON and not what they should be: anything may stand
in them, at any depth, and a request is refused for it."""


class PreparedAnswer(NamedTuple):
    draft: AnswerDraft
    sampling: Sampling
    guide: Enforcer | None


class Prompting:
    """For one model. Not for use by several threads at a time: the grammar is made by the first
    request that needs it."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        chat: ChatFormat,
        *,
        capacity: int,
        constrained: bool,
        where: str,
    ) -> None:
        """`capacity`: tokens of prompt and answer together. `constrained`: whether every answer
        keeps the template and calls declared tools validly; one that has to call, must not call or
        has a form is held to it in any case. ConfigError for a tokenizer, from `where`, that cannot
        be constrained although it is to be."""
        self._tokenizer, self._chat, self._where = tokenizer, chat, where
        self._capacity, self._constrained = capacity, constrained
        self._grammar = AnswerGrammar(tokenizer, where=where) if constrained else None

    def prepared(self, asked: ChatAsked) -> PreparedAnswer:
        """RequestError for a conversation that cannot be written or leaves no room, and for tools
        or a form that are too much for the grammar."""
        prompt = self._prompt(asked)
        room = self._capacity - len(prompt)
        if room < 1:
            raise RequestError(
                f"This model's maximum context length is {self._capacity} tokens. However, your "
                f"prompt has {len(prompt)} tokens, and an answer needs at least one. Please reduce "
                "the length of the messages.",
                "messages",
                code="context_length_exceeded",
            )
        request = asked.request
        seed = secrets.randbits(31) if request.seed is None else request.seed
        sampling = Sampling(
            temperature=asked.temperature,
            top_p=asked.top_p,
            max_tokens=min(room, request.max_tokens or room),
        )
        return PreparedAnswer(AnswerDraft(prompt, seed), sampling, self._guide(asked))

    def _prompt(self, asked: ChatAsked) -> list[int]:
        if asked.prompt_ids is not None:
            if (largest := max(asked.prompt_ids)) >= self._tokenizer.size:
                raise RequestError(
                    f"prompt_token_ids must be below {self._tokenizer.size}, which is the number "
                    f"of tokens; got {largest}",
                    "prompt_token_ids",
                )
            return list(asked.prompt_ids)
        try:
            ids = encode_chat(
                self._tokenizer, asked.request.messages, asked.tools, chat=self._chat
            ).ids
        except CANNOT_BE_READ as error:
            raise RequestError(
                f"the conversation cannot be written in the model's template: {error}", "messages"
            ) from error
        return [*ids, *prompt_for_answer(self._tokenizer)]

    def _guide(self, asked: ChatAsked) -> Enforcer | None:
        request = asked.request
        choice, form = request.tool_choice, request.json_schema
        free = choice == "auto" or (choice == "none" and not asked.tools)
        single = bool(asked.tools) and not request.parallel
        if form is None and free and not single and not self._constrained:
            return None
        field = "tools" if form is None else "response_format"
        try:
            if self._grammar is None:
                self._grammar = AnswerGrammar(self._tokenizer, where=self._where)
            if form is not None:
                schema = form or {"type": "object"}
                return self._grammar.form_enforcer(schema, thinking=self._chat.thinking)
            named = choice not in ("auto", "none", "required")
            tools = [
                tool
                for tool in asked.tools
                if choice != "none" and (not named or tool["function"]["name"] == choice)
            ]
            return self._grammar.enforcer(
                tools,
                calls_before=num_calls(request.messages),
                max_calls=1 if named or not request.parallel else MOST_CALLS,
                thinking=self._chat.thinking,
                must_call=named or choice == "required",
            )
        except CANNOT_BE_READ as error:
            raise RequestError(f"the answer cannot be held to this: {error}", field) from error
