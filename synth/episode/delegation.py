"""Delegation: a call of the tool `delegate` hands a piece of the work to a sub-agent.

The sub-agent is the same role with a prompt of its own. It has the agent's tools but `delegate`,
works on the same state, has turns and tokens of its own, and its last words are the call's result.
Its conversation is told apart; its calls stand in the episode's one record of calls, marked with
the call that they were made for, for there is one state and one outcome.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from records.digest import digest
from records.sizes import count_tokens
from synth.episode.config import EpisodeConfig
from synth.episode.endings import Reason
from synth.episode.tools.calls import (
    FORMAT_ERRORS,
    Caller,
    CallRecord,
    NotJson,
    cut,
    parsed_arguments,
    schema_problem,
)
from synth.episode.tools.executors import TaskBackground
from synth.episode.tools.fault_injection import error_text
from synth.llm.wire.request import Message
from synth.prompts.templates import render

NAME = "delegate"
"""Of the tool, and of no other tool of an agent that has it."""

PROMPT = "sub_agent"

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "What is to be found out or done, with every id, value and limit that "
            "is needed for it: nothing else of this conversation is seen.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Hand a piece of the work that stands by itself to a second assistant with "
        "the same tools. It cannot ask anybody; it answers once, with what it found and did.",
        "parameters": PARAMETERS,
    },
}
"""In OpenAI form. No row of the table `tools`: it belongs to no domain and no server."""

TOO_MANY, UNFINISHED = "too_many_delegations", "unfinished"
"""Error codes of calls of it."""


class SubAgents(Protocol):
    async def answer(
        self,
        call_id: str,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        turn: int,
    ) -> Message:
        """The next message of the sub-agent that the call began; `turn` counts those before."""
        ...


@dataclass
class SubConversation:
    """What was said between the call and its result."""

    call_id: str
    messages: list[Message]
    session: int = 0
    """The conversation with the user in which the call was made."""
    turns: int = 0
    """Messages of the sub-agent."""
    tokens: int = 0
    format_errors: int = 0
    """In a row."""
    reason: Reason = "infra_error"
    """`agent_done` where it came to its end; as here until it has ended."""


class RunCalls(Protocol):
    async def __call__(
        self,
        calls: Sequence[Mapping[str, Any]],
        signature: str,
        *,
        place: int = 0,
        parent: str | None = None,
    ) -> list[CallRecord]:
        """Run calls of one message and keep their records. `signature` tells the message from every
        other of the turn, `place` is that of the first call in it, `parent` the call whose
        sub-agent wrote it."""
        ...


class Work(NamedTuple):
    """What a turn of the episode gives its sub-agents to work with."""

    agents: SubAgents
    config: EpisodeConfig
    caller: Caller
    background: TaskBackground
    conversations: list[SubConversation]
    """Of the episode; new ones are added."""
    turn: int
    session: int
    run: RunCalls
    is_over: Callable[[], bool]
    """Whether something has ended the episode meanwhile."""


def is_delegation(call: Mapping[str, Any]) -> bool:
    return call["function"]["name"] == NAME


async def run_mixed(
    calls: Sequence[Mapping[str, Any]], signature: str, work: Work
) -> list[CallRecord]:
    """The calls of one message, of which some go to a sub-agent, one after the other; none any more
    once something has ended the episode. Raises what stops an episode from outside."""
    made: list[CallRecord] = []
    for place, call in enumerate(calls):
        if is_delegation(call) and place < work.config.max_parallel_calls:
            made.append(await _delegate(call, work))
        else:
            made += await work.run([call], f"{signature}-{place}", place=place)
        if work.is_over():
            break
    return made


async def _delegate(call: Mapping[str, Any], work: Work) -> CallRecord:
    result, arguments = await _result(call, work)
    here = work.caller.state_hash()  # its calls have changed the state, and have said so
    record = CallRecord(
        turn=work.turn,
        call_index=len(work.caller.records),
        tool_call_id=call["id"],
        tool_id=None,
        name=NAME,
        executed_by="sub_agent",
        arguments=arguments,
        observation=result.text,
        is_error=result.error_code is not None,
        error_code=result.error_code,
        policy_violations=[],
        injected_outcome=None,
        state_hash_before=here,
        state_hash_after=here,
        state_diff=[],
        session=work.session,
    )
    if result.error_code not in (None, UNFINISHED):  # no sub-agent was asked
        record = record._replace(executed_by=None, state_hash_before=None, state_hash_after=None)
    work.caller.keep([record])
    return record


class _Result(NamedTuple):
    text: str
    error_code: str | None


async def _result(call: Mapping[str, Any], work: Work) -> tuple[_Result, Any]:
    """What the agent reads, and the arguments: the parsed object, or the model's own text."""
    text, limits = call["function"]["arguments"], work.config.delegation
    arguments = parsed_arguments(text)
    if isinstance(arguments, NotJson):
        return _failure("invalid_arguments", arguments.problem), text
    if problem := schema_problem(PARAMETERS, arguments):
        return _failure("invalid_arguments", problem), arguments
    if len(work.conversations) >= limits.max_delegations:
        limit = f"At most {limits.max_delegations} pieces of work can be handed over."
        return _failure(TOO_MANY, limit), arguments
    conversation = _begun(call["id"], arguments["task"], work)
    work.conversations.append(conversation)
    await _converse(conversation, work)
    words = (conversation.messages[-1].get("content") or "").strip()
    if conversation.reason != "agent_done":
        return _failure(
            UNFINISHED, f"The work was not finished ({conversation.reason})."
        ), arguments
    return _Result(cut(words, work.config.observation_chars), None), arguments


def _failure(code: str, message: str) -> _Result:
    return _Result(error_text(code, message), code)


def _begun(call_id: str, task: str, work: Work) -> SubConversation:
    background = work.background
    prompt = render(
        PROMPT, task=task, about=background.about, now=background.now, policy=background.policy
    )
    tokens = message_tokens(prompt.messages[-1])
    return SubConversation(call_id, list(prompt.messages), work.session, tokens=tokens)


async def _converse(conversation: SubConversation, work: Work) -> None:
    """The sub-agent's turns, until it says something without a call or a limit ends it."""
    limits, tools = work.config.delegation, work.caller.openai_tools()
    ended: Reason | None = None
    while ended is None:
        action = await work.agents.answer(
            conversation.call_id, list(conversation.messages), tools, conversation.turns
        )
        conversation.turns += 1
        _append(conversation, [action])
        ended = await _after(action, conversation, work)
        if work.is_over():
            return
        if ended is None and conversation.tokens > limits.token_budget:
            ended = "token_budget"
        elif ended is None and conversation.turns >= limits.max_turns:
            ended = "max_turns"
    conversation.reason = ended


async def _after(action: Message, conversation: SubConversation, work: Work) -> Reason | None:
    """Make the message's calls; how it ends the conversation, if it does."""
    if action.get("refusal"):
        return "refused"
    if not action.get("tool_calls"):
        return "agent_done" if (action.get("content") or "").strip() else "format_error"
    signature = f"{conversation.call_id}-{conversation.turns}-{digest(action)}"
    records = await work.run(action["tool_calls"], signature, parent=conversation.call_id)
    _append(conversation, [record.message() for record in records])
    wrong = any(record.error_code in FORMAT_ERRORS for record in records)
    conversation.format_errors = conversation.format_errors + 1 if wrong else 0
    return "format_error" if conversation.format_errors >= work.config.max_format_errors else None


def _append(conversation: SubConversation, messages: Sequence[Message]) -> None:
    conversation.messages += messages
    conversation.tokens += sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    """Size of what a message says, calls included."""
    calls = (call["function"] for call in message.get("tool_calls") or ())
    texts = [message.get("content") or "", *(f["name"] + f["arguments"] for f in calls)]
    return sum(map(count_tokens, texts))
