"""Sub-agents played by the model of the role `agent`, and their rows of `trajectories`.

A row of a sub-agent tells its conversation: messages, tools, tokens and its own end. Outcome,
reward and states are the episode's, and so is the one record of calls: in `tool_calls` they stand
under the episode, with the `parent_call_id` of the row that made them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.episode.answers import EpisodeUsage, assistant_message
from synth.episode.delegation import NAME, PROMPT, SubConversation
from synth.episode.environment import EpisodeState
from synth.episode.tools.executors import Catalogue
from synth.llm.client import LLM
from synth.llm.wire.request import Message
from synth.prompts.templates import version_of


def can_delegate(catalogue: Catalogue, agent_id: str, share: float) -> bool:
    """Whether the agent is one of the drawn share; none is that has a tool of this name. Agents
    that differ in the tools beside their own alone are drawn alike: their prompt is the same."""
    agent = catalogue.agents[agent_id]
    names = {tool["name"] for tool in catalogue.tools_of(agent)}
    drawn = rng_of(digest(agent["system_prompt"]), NAME).random()
    return drawn < share and NAME not in names


class LlmSubAgents:
    """The sub-agents of one episode. An answer is kept under its call and turn, so that a run that
    died in the middle of one asks again for nothing that was paid."""

    def __init__(self, llm: LLM, *, item: str) -> None:
        self._llm, self._item = llm, item
        self.usage = EpisodeUsage()
        """By the call that began the sub-agent."""

    async def answer(
        self,
        call_id: str,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        turn: int,
    ) -> Message:
        completion = await self._llm.chat(
            "agent",
            list(messages),
            item=self._item,
            step=f"agent-{call_id}-{turn}",
            tools=tools or None,
        )
        self.usage.add(call_id, completion)
        before = sum(len(message.get("tool_calls") or ()) for message in messages)
        return assistant_message(completion, num_calls=before, prefix=call_id)


def counts_of(
    state: EpisodeState, messages: Sequence[Message], parent_call_id: str | None, session: int = 0
) -> Row:
    """Columns that count what one conversation of the episode holds: a sub-agent's, or the agent's
    own of this number."""
    records = [
        record
        for record in state.caller.records
        if record.actor == "agent" and record.parent_call_id == parent_call_id
        if parent_call_id is not None or record.session == session
    ]
    speakers = Counter(message["role"] for message in messages)
    return {
        "num_messages": len(messages),
        "num_turns": speakers["assistant"],
        "num_user_turns": speakers["user"],
        "num_tool_calls": len(records),
        "num_errors": sum(record.is_error for record in records),
        "executed_by": sorted({r.executed_by for r in records if r.executed_by}),
        "injected_outcomes": [r.injected_outcome for r in records if r.injected_outcome],
    }


def conversation_id(episode_id: str, parent_call_id: str) -> str:
    """Id of the row of `trajectories` that tells the sub-agent's conversation."""
    return digest("sub_agent", episode_id, parent_call_id)


def rows_of_conversations(
    episode: Row,
    state: EpisodeState,
    tokens: Mapping[str, Mapping[str, int]],
    mended: Mapping[str | None, int],
) -> list[Row]:
    """A row for each sub-agent, in the order in which they began. `episode`: the agent's first row;
    `tokens` and `mended` (calls recovered from) by the call that began each."""
    tools = [tool for tool in episode["tools"] if tool["function"]["name"] != NAME]

    def row(conversation: SubConversation) -> Row:
        call_id = conversation.call_id
        return episode | {
            "trajectory_id": conversation_id(episode["trajectory_id"], call_id),
            "session": conversation.session,
            "parent_call_id": call_id,
            "messages": conversation.messages,
            "tools": tools,
            **counts_of(state, conversation.messages, call_id),
            "num_recovered": mended.get(call_id, 0),
            "termination_reason": conversation.reason,
            "models": {"agent": episode["models"]["agent"]},
            "prompt_versions": {PROMPT: version_of(PROMPT)},
            "token_counts": {"agent": tokens[call_id]},
            "error": None,
            "user_faults": [],
        }

    return [row(conversation) for conversation in state.conversations]
