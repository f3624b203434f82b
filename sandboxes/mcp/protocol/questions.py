"""What a server asks its client in the middle of a call, and how it is answered.

Two requests are answered: `elicitation/create`, a form for the user, and `sampling/createMessage`,
a text of the model. Who answers is given with the call (an episode has a simulated user and a
model); without it, or where the server's definition switches it off, the form is declined and the
text refused, as a person would who says no. Each question of a call is written down with its
answer, so that the call can be made again without a model.

Over its one stream a server does not say for which of several calls it asks. So calls of a server
that may ask are made one after the other.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Literal, NamedTuple

import mcp_types as types
from pydantic import BaseModel

from tool_specs.execution.fields import clean_json
from tool_specs.language.schemas import SchemaError, Validator
from tool_specs.language.values import EvaluationError

MOST_ASKED = 8
"""Questions of one call that are answered."""

MAX_QUESTION = 50_000
"""Characters of a question as JSON."""

USER_REJECTED = -1
"""Code of the error that refuses a text, as the protocol has it."""

NOBODY = "nobody is there to answer: the call is made outside an episode"

AskedMethod = Literal["elicitation/create", "sampling/createMessage"]


class ServerQuestion(NamedTuple):
    method: AskedMethod
    params: dict[str, Any]
    """As on the wire, without what the transport adds."""


class ServerAnswer(NamedTuple):
    result: dict[str, Any] | None
    """As on the wire; None where there is none but an error."""
    refusal: str | None = None
    """Why the form is declined, or there is no text."""


class ServerExchange(NamedTuple):
    """A question and its answer, as `tool_calls.exchanges` has them."""

    method: str
    params: dict[str, Any]
    result: dict[str, Any] | None
    refusal: str | None


AnswerServer = Callable[[ServerQuestion, int], Awaitable[ServerAnswer]]
"""Who answers: given the question and its number in the call, from 0."""


def refused(question: ServerQuestion, why: str) -> ServerAnswer:
    """No, in the way that the protocol has for it."""
    is_form = question.method == "elicitation/create"
    return ServerAnswer({"action": "decline"} if is_form else None, why)


def recorded_answers(exchanges: Sequence[ServerExchange]) -> AnswerServer:
    """Says what was said then; refuses what was not asked then."""

    async def answer(question: ServerQuestion, number: int) -> ServerAnswer:
        for exchange in (*exchanges[number : number + 1], *exchanges):
            if (exchange.method, exchange.params) == question:
                return ServerAnswer(exchange.result, exchange.refusal)
        return refused(question, "this was not asked when the call was recorded")

    return answer


def form_problems(params: dict[str, Any], content: Any) -> list[str]:
    """Why what was filled in does not fit the form; empty where it does. SchemaError for a form
    that nothing can be held against."""
    form = Validator({"type": "object", **params["requestedSchema"]})
    try:
        return form.problems(clean_json(content))
    except EvaluationError as error:
        return [f"the content is {error}"]


class CallQuestions:
    """The questions of one call."""

    def __init__(self, answers: AnswerServer | None) -> None:
        self._answers = answers
        self._num_asked = 0
        self._one_by_one = asyncio.Lock()
        self._tasks: list[asyncio.Task[ServerAnswer]] = []
        self.exchanges: list[ServerExchange] = []
        self._clock: asyncio.Timeout | None = None
        self.failure: Exception | None = None
        """What went wrong with an answer, and is nothing that the server did."""

    async def answer(self, question: ServerQuestion) -> ServerAnswer:
        """A question is answered once it was asked, also where the call ends before."""
        self._num_asked += 1
        if self._num_asked > MOST_ASKED:
            return refused(question, f"at most {MOST_ASKED} questions of one call are answered")
        if (size := len(json.dumps(question.params, ensure_ascii=False))) > MAX_QUESTION:
            return refused(question, f"a question of {size} characters; at most {MAX_QUESTION}")
        task = asyncio.create_task(self._answered(question))
        self._tasks.append(task)
        await asyncio.wait([task])  # where the call is given up, the client must live on
        return refused(question, "the call was given up") if task.cancelled() else task.result()

    @contextmanager
    def timed_by(self, clock: asyncio.Timeout) -> Iterator[None]:
        """The clock of a request, which stands still while an answer is thought of."""
        self._clock = clock
        try:
            yield
        finally:
            self._clock = None

    async def settled(self) -> None:
        """Wait for what was asked and not waited for."""
        while waiting := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(waiting)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _answered(self, question: ServerQuestion) -> ServerAnswer:
        async with self._one_by_one:
            number = len(self.exchanges)
            answer = self._by_rule(question)
            if answer is None:
                answer = await self._thought_of(question, number)
            self.exchanges.append(ServerExchange(*question, *answer))
            return answer

    def _by_rule(self, question: ServerQuestion) -> ServerAnswer | None:
        if self._answers is None:
            return refused(question, NOBODY)
        if question.params.get("mode", "form") != "form":
            return refused(question, "only forms are filled in; no page is opened")
        return None

    async def _thought_of(self, question: ServerQuestion, number: int) -> ServerAnswer:
        assert self._answers is not None
        clock, left = self._clock, 0.0
        if clock is not None and (when := clock.when()) is not None and not clock.expired():
            left = when - asyncio.get_running_loop().time()
            clock.reschedule(None)
        try:
            return _checked(question, await self._answers(question, number))
        except Exception as error:  # for the caller: the SDK would keep it to itself
            self.failure = error
            return refused(question, "the question could not be answered")
        finally:
            if clock is not None and clock is self._clock and not clock.expired():
                clock.reschedule(asyncio.get_running_loop().time() + left)


def _checked(question: ServerQuestion, answer: ServerAnswer) -> ServerAnswer:
    """An accepted form that fits, or none."""
    if question.method != "elicitation/create" or (answer.result or {}).get("action") != "accept":
        return answer
    try:
        problems = form_problems(question.params, (answer.result or {}).get("content"))
    except SchemaError as error:
        problems = [str(error)]
    return refused(question, "; ".join(problems)) if problems else answer


class QuestionCallbacks:
    """The client's end of what one server asks. Its methods are the SDK's callbacks."""

    def __init__(self, *, elicitation: bool, sampling: bool) -> None:
        switches: dict[AskedMethod, bool] = {
            "elicitation/create": elicitation,
            "sampling/createMessage": sampling,
        }
        self._off = frozenset(method for method, on in switches.items() if not on)
        self._may_ask = any(switches.values())
        self._turn = asyncio.Lock()
        self._calls: list[CallQuestions] = []
        """More than one only where everything is switched off."""

    @asynccontextmanager
    async def of_call(self, answers: AnswerServer | None) -> AsyncIterator[CallQuestions]:
        """What the server asks inside is asked by this call. Raises, instead of whatever the call
        came to, what went wrong with an answer."""
        async with AsyncExitStack() as stack:
            if self._may_ask:
                await stack.enter_async_context(self._turn)
            call = CallQuestions(answers)
            self._calls.append(call)
            try:
                yield call
                await call.settled()
            except Exception as error:
                if call.failure is None:
                    raise
                raise call.failure from error
            finally:
                self._calls.remove(call)
                call.cancel()
            if call.failure is not None:
                raise call.failure

    async def elicit(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        answer = await self._asked("elicitation/create", params)
        return types.ElicitResult.model_validate(answer.result)

    async def sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        answer = await self._asked("sampling/createMessage", params)
        if answer.result is None:
            words = f"No text is written: {answer.refusal}"
            return types.ErrorData(code=USER_REJECTED, message=words)
        return types.CreateMessageResult.model_validate(answer.result)

    async def _asked(self, method: AskedMethod, params: BaseModel) -> ServerAnswer:
        wire = params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
        question = ServerQuestion(method, wire)
        if method in self._off:
            return refused(question, f"{method} is switched off for this server")
        if not self._calls:
            return refused(question, "no call is going on")
        return await self._calls[0].answer(question)
