"""Rollouts: one trajectory of a task, from the user's opening to the end of the episode.

Nothing is paid or done twice. Every answer of a model is kept by the LLM layer before it is used,
every tool result is journalled before the model sees it. A run that died is run again from the
start of the episode: kept answers cost nothing, actions are executed again to rebuild the state,
and the journalled result is what counts.

The user's closing words are not stored: they ask for nothing and nobody answers them, so that a
conversation which came to its end has the agent's as its last message.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.errors import BudgetError, TransientError
from records.seeds import rng_of, seed_of
from records.sizes import TOKEN_COUNTER
from records.store.commits import failed
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.engine.stages import KEPT, Item, ItemResult
from synth.episode.answers import EpisodeUsage, assistant_message
from synth.episode.config import EpisodeConfig
from synth.episode.delegation import PROMPT as SUB_AGENT_PROMPT
from synth.episode.endings import OUTSIDE, TRUNCATED
from synth.episode.environment import PROMPT, EnvironmentStep, EpisodeEnvironment, EpisodeState
from synth.episode.recovery import recoveries
from synth.episode.server_answers import LlmServerAnswers
from synth.episode.sessions import conversations_in, session_id
from synth.episode.sub_agents import (
    LlmSubAgents,
    can_delegate,
    counts_of,
    rows_of_conversations,
)
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.fault_injection import BEFORE_EXECUTION
from synth.episode.tools.simulator import PROMPT as SIMULATOR_PROMPT
from synth.episode.tools.simulator import ROLE as SIMULATOR
from synth.episode.tools.simulator import SIMULATION_FAILED, ModelAnswers, Note, SimulationAccuracy
from synth.episode.users.elicitation import PROMPT as FORM_PROMPT
from synth.episode.users.user import PROMPT as USER_PROMPT
from synth.episode.users.user import LlmUser
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import version_of
from synth.rubrics.reward import decide_by_code, rubric_of

STAGE_VERSION = 8
"""Raised when the same item would give another trajectory."""

INFRA_ATTEMPTS = 3
"""How often an episode is played when something outside it fails; then the failure is its row."""

NOT_RECORDED = "not_recorded"
"""Reason of an episode that asked a cassette for what it does not hold."""

INFRA_WAIT_S = 1.0
"""Longest wait before the second attempt; doubles with each."""


class RolloutConfig(Config):
    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"attempts"})

    attempts: int = Field(default=1, ge=1, le=256)
    """Trajectories for each task."""
    episode: EpisodeConfig = EpisodeConfig()
    """The limits of an episode, and the faults that are injected."""


def prompt_versions() -> dict[str, str]:
    return {name: version_of(name) for name in (PROMPT, USER_PROMPT)}


def plan_rollouts(
    tasks: Iterable[Row],
    *,
    config: RolloutConfig,
    roles: Mapping[Any, RoleConfig],
    simulation: Callable[[str], Sequence[Any]] = lambda task_id: (),
) -> list[Item]:
    """An item for each attempt at each task, in the tasks' order; its id is `trajectory_id`.

    `simulation`: what decides the answers of a task's simulated tools, and to what its server asks;
    nothing where it has neither.
    """
    decided = [
        STAGE_VERSION,
        config.identity(),
        roles["agent"].identity(),
        roles["user"].identity(),
        prompt_versions(),
        TOKEN_COUNTER,
    ]
    if config.episode.delegation.share:
        decided.append(version_of(SUB_AGENT_PROMPT))
    return [
        Item(
            digest("trajectory", decided, task["task_id"], attempt, *simulation(task["task_id"])),
            {"task": task, "attempt": attempt},
        )
        for task in tasks
        for attempt in range(config.attempts)
    ]


async def run_rollout(
    item: Item,
    llm: LLM,
    journal: ShardJournal,
    *,
    catalogue: Catalogue,
    config: RolloutConfig,
    roles: Mapping[Any, RoleConfig],
) -> ItemResult:
    """Rows of `trajectories` and `tool_calls`. BudgetError stops it; the journal waits then.

    Steps whose tools answered otherwise than journalled are noted as `replay_drift`.
    """
    attempt = 1
    while True:
        played = await _play(item, llm, journal, catalogue, config.episode)
        over = attempt == INFRA_ATTEMPTS or played.state.hopeless
        if played.state.reason != "infra_error" or over:
            return _result(item, played, roles)
        jitter = rng_of(item.item_id, "infra_wait", attempt).uniform(0.5, 1.0)
        await asyncio.sleep(INFRA_WAIT_S * 2 ** (attempt - 1) * jitter)
        attempt += 1


class _Played(NamedTuple):
    state: EpisodeState
    tools: list[dict[str, Any]]
    last: EnvironmentStep | None
    """The step that ended the episode; None when it ended between steps."""
    tokens: dict[str, dict[str, int]]
    """Reported usage by role."""
    notes: list[Note]
    """On the calls that the simulator answered, in their order."""
    sub_tokens: dict[str, dict[str, int]]
    """Reported usage of sub-agents by the call that began them."""
    filled_in: bool
    """Whether the user was asked to fill in a form of a server."""


async def _play(
    item: Item, llm: LLM, journal: ShardJournal, catalogue: Catalogue, config: EpisodeConfig
) -> _Played:
    """messages -> model -> step, until the episode ends. Raises BudgetError."""
    trajectory_id, task = item.item_id, item.data["task"]
    usage = EpisodeUsage("agent", "user")

    def user(task: Row, persona: Row) -> LlmUser:
        return LlmUser(
            llm,
            item=trajectory_id,
            persona=persona,
            brief=task["user_brief"],
            tools=catalogue.user_tools_of(task),
            retries=config.user_retries,
            on_answer=partial(usage.add, "user"),
        )

    answers = ModelAnswers(
        llm,
        item=trajectory_id,
        config=catalogue.simulate,
        on_answer=partial(usage.add, SIMULATOR),
    )
    sub_agents = LlmSubAgents(llm, item=trajectory_id)
    server_answers = LlmServerAnswers(llm, item=trajectory_id, on_answer=usage.add)
    delegates = can_delegate(catalogue, task["agent_id"], config.delegation.share)
    env = EpisodeEnvironment(
        catalogue,
        config,
        user=user,
        journal=journal,
        episode_id=f"{trajectory_id}-{llm.retry_number_of(trajectory_id)}",
        answers=answers,
        sub_agents=sub_agents if delegates else None,
        server_answers=server_answers,
    )
    step: EnvironmentStep | None = None
    messages, info = await env.reset(task, episode_seed(trajectory_id))
    try:
        while env.state.reason is None:
            completion = await llm.chat(
                "agent",
                messages,
                item=trajectory_id,
                step=f"agent-{env.state.turn}",
                tools=info["tools"] or None,
            )
            usage.add("agent", completion)
            action = assistant_message(completion, num_calls=len(env.state.caller.records))
            step = await env.step(action)
            messages = env.state.conversation
    except TransientError as error:
        env.stop("infra_error", str(error))
    finally:
        await env.close()
    if env.state.reason == "budget_stop":
        raise BudgetError(env.state.error)
    return _Played(
        env.state,
        info["tools"],
        step,
        usage.by_role,
        answers.notes,
        sub_agents.usage.by_role,
        server_answers.filled_in,
    )


def episode_seed(trajectory_id: str) -> int:
    return seed_of(trajectory_id, "episode")


def _result(item: Item, played: _Played, roles: Mapping[Any, RoleConfig]) -> ItemResult:
    made = [record._asdict() for record in played.state.caller.records]
    recovered = recoveries(made, played.state.messages)
    mended = [call for call, well in zip(made, recovered, strict=True) if call["is_error"] and well]
    by_sub_agents = Counter(call["parent_call_id"] for call in mended)
    by_sessions = Counter(call["session"] for call in mended if call["parent_call_id"] is None)
    sessions = _rows_of_sessions(item, played, roles, by_sessions)
    row = sessions[0]
    place = {"trajectory_id": item.item_id, "split": row["split"]}
    calls = [call | place | {"recovered": well} for call, well in zip(made, recovered, strict=True)]
    outside = row["termination_reason"] in ("infra_error", "user_error")
    reason = row["termination_reason"]
    if any(record.error_code == SIMULATION_FAILED for record in played.state.caller.records):
        reason = SIMULATION_FAILED  # a retry asks the simulator anew
    elif reason == "infra_error" and played.state.hopeless:
        reason = NOT_RECORDED  # a later invocation would find no more in the cassette
    status = failed(reason, row["error"] or "") if outside else KEPT
    drifts = {"replay_drift": n} if (n := len(played.state.drifts)) else {}
    rows = [row]
    if status == KEPT:  # what is tried again leaves no further conversation behind
        rows += sessions[1:]
        rows += rows_of_conversations(row, played.state, played.sub_tokens, by_sub_agents)
    tables = {"trajectories": rows, "tool_calls": calls}
    if simulations := _simulations(item, played, roles):
        tables["simulations"] = simulations
    return ItemResult(tables, status, drifts)


def _simulations(item: Item, played: _Played, roles: Mapping[Any, RoleConfig]) -> list[Row]:
    """Rows of the table: how each answer of the simulator came about, and how true it was."""
    simulated = [
        record
        for record in played.state.caller.records
        if record.executed_by == "llm" and record.injected_outcome not in BEFORE_EXECUTION
    ]
    rows = []
    for record, note in zip(simulated, played.notes, strict=False):
        measured = (
            note.measured._asdict() if note.measured else dict.fromkeys(SimulationAccuracy._fields)
        )
        rows.append(
            {
                "trajectory_id": item.item_id,
                "call_index": record.call_index,
                "tool_id": note.tool_id,
                "model": roles[SIMULATOR].model_of(item.item_id, SIMULATOR),
                "prompt_version": version_of(SIMULATOR_PROMPT),
                "repairs": note.repairs,
                "failed": record.error_code == SIMULATION_FAILED,
                **measured,
                "split": item.data["task"]["split"],
            }
        )
    return rows


def _versions(played: _Played) -> dict[str, str]:
    own = [SIMULATOR_PROMPT] * bool(played.notes) + [FORM_PROMPT] * played.filled_in
    return prompt_versions() | {name: version_of(name) for name in own}


def _rows_of_sessions(
    item: Item, played: _Played, roles: Mapping[Any, RoleConfig], mended: Mapping[int, int]
) -> list[Row]:
    """A row for each conversation with the user; `mended`: calls recovered from in each. Tokens are
    told of the whole episode, in its first row."""
    state = played.state
    row = _episode_row(item, played, roles)
    return [
        row
        | {
            "trajectory_id": session_id(item.item_id, session),
            "session": session,
            "messages": messages,
            **counts_of(state, messages, None, session),
            "num_recovered": mended.get(session, 0),
        }
        | ({"token_counts": {}, "user_faults": []} if session else {})
        for session, messages in enumerate(conversations_in(state.messages))
    ]


def _episode_row(item: Item, played: _Played, roles: Mapping[Any, RoleConfig]) -> Row:
    """What all rows of an episode's sessions have in common."""
    state, task = played.state, item.data["task"]
    made = [record for record in state.caller.records if record.actor == "agent"]
    hashes = [r.state_hash_before for r in made if r.state_hash_before is not None]
    return {
        "task_id": task["task_id"],
        "agent_id": task["agent_id"],
        "persona_id": task["persona_id"],
        "domain_id": task["domain_id"],
        "server": task["server"],
        "variant": task["variant"],
        "attempt": item.data["attempt"],
        "seed": state.seed,
        "tools": played.tools,
        "termination_reason": state.reason,
        "outcome": _outcome(played),
        "objective_reward": played.last.reward if played.last else 0.0,
        "state_hash_initial": state.hash_initial or next(iter(hashes), None),
        "state_hash_final": state.hash_final,
        "models": {role: roles[role].model_of(item.item_id, role) for role in played.tokens},
        "prompt_versions": _versions(played),
        "token_counts": played.tokens,
        "error": state.error,
        "split": task["split"],
        "user_faults": [fault._asdict() for fault in state.user_faults],
        "episode_id": item.item_id,
        "parent_call_id": None,
    }


def _outcome(played: _Played) -> str:
    reason = played.state.reason
    if reason in OUTSIDE or played.last is None:
        return "error"
    if reason in TRUNCATED:
        return "truncated"
    decision = decide_by_code(rubric_of(played.state.task), played.last.info["verdicts"])
    return "passed" if decision.accepted else "failed"
