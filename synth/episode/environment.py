"""The episode environment, after Gymnasium: an action is one assistant message, an observation is
the messages it caused (tool results in call order, or the user's next turn).

The reward is 0 until the end and then `objective_reward`: what code can check of the rubric. No
judge is asked here. Mistakes of the agent (arguments that are no JSON, tools that do not exist)
come back as error observations; failures around it end the episode as `infra_error` or
`budget_stop`, which say nothing about the agent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from records.digest import canonical_json, digest
from records.errors import BudgetError, TransientError
from records.store.journal import ShardJournal
from records.tables.columns import renamed_row
from records.tables.schemas import Row
from sandboxes.mcp.protocol.questions import AnswerServer
from synth.episode.config import EpisodeConfig
from synth.episode.delegation import (
    TOOL,
    SubAgents,
    Work,
    is_delegation,
    message_tokens,
    run_mixed,
)
from synth.episode.endings import OUTSIDE, TRUNCATED, Reason
from synth.episode.episode_state import EnvironmentStep, EpisodeSnapshot, EpisodeState
from synth.episode.server_answers import AskedScene, ServerAnswers
from synth.episode.sessions import num_sessions, part_of
from synth.episode.tools.calls import FORMAT_ERRORS, Actor, Caller, CallRecord
from synth.episode.tools.cassette import NotRecordedError
from synth.episode.tools.executors import Catalogue, RecordedCalls, executors_for
from synth.episode.tools.fault_injection import FaultInjector
from synth.episode.tools.mcp_executor import CallPlace
from synth.episode.tools.notes import NOTE_TOOLS
from synth.episode.tools.simulator import SIMULATION_FAILED, Answers
from synth.episode.users.user import Scene, User, UserCall, UserError
from synth.llm.wire.request import Message
from synth.prompts.templates import render
from synth.rubrics.built_in import Episode
from synth.rubrics.criteria import Rubric
from synth.rubrics.reward import decide_by_code, evidence_of, objective_reward, rubric_of

PROMPT = "agent"


class EpisodeEnvironment:
    """One episode at a time. Not for concurrent steps; close it when done with it.

    Without a `user` the first answer in words ends the episode as `agent_done`.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        config: EpisodeConfig = EpisodeConfig(),
        *,
        user: Callable[[Row, Row], User] | None = None,
        faults: Callable[[int], FaultInjector] | None = None,
        journal: ShardJournal | None = None,
        episode_id: str = "",
        answers: Answers | None = None,
        recorded: RecordedCalls | None = None,
        sub_agents: SubAgents | None = None,
        server_answers: ServerAnswers | None = None,
    ) -> None:
        """`user` makes a simulated user from (task, persona), `faults` the injected ones from a
        seed.

        With a `journal` the results that it holds for `episode_id` are what counts. `answers` are
        those of a simulator, for tools that a model plays; `recorded` replays them instead. With
        `sub_agents` the agent can delegate to them. `server_answers` are those to what servers ask
        in a call; without them all is declined.
        """
        self._catalogue = catalogue
        self._config = config
        self._user = user
        self._faults = faults or (lambda seed: FaultInjector(config.fault_injection, seed))
        self._journal = journal
        self._episode_id = episode_id
        self._answers, self._recorded, self._sub_agents = answers, recorded, sub_agents
        self._server_answers = server_answers
        self._episode: EpisodeState | None = None

    @property
    def state(self) -> EpisodeState:
        """The episode going on, or just ended. ValueError before the first `reset`."""
        if self._episode is None:
            raise ValueError("no episode: call reset first")
        return self._episode

    async def reset(self, task: Row, seed: int) -> tuple[list[Message], dict[str, Any]]:
        """The system prompt and the user's opening; `info` holds `tools` in OpenAI form."""
        await self.close()
        state = self._episode = self._begin(task, seed)
        self._append(state, self._beginning(state))
        tools = state.caller.openai_tools() + [TOOL] * (self._sub_agents is not None)
        return list(state.messages), {"tools": tools, "turn": 0, "session": 0}

    async def step(self, action: Message) -> EnvironmentStep:
        """Play one assistant message. ValueError when no episode is going on."""
        state = self.state
        if state.reason is not None:
            raise ValueError(f"the episode has ended ({state.reason}): call reset")
        state.turn += 1
        self._append(state, [action])
        observation: list[Message] = []
        records: list[CallRecord] = []
        try:
            if action.get("refusal"):
                state.reason = "refused"
            elif action.get("tool_calls"):
                records = await self._call_tools(state, action)
                observation = [record.message() for record in records]
            elif (action.get("content") or "").strip():
                observation = await self._hear_user(state)
            else:
                state.reason = "format_error"
        except BudgetError as error:
            state.reason, state.error = "budget_stop", str(error)
        except TransientError as error:
            state.reason, state.error = "infra_error", str(error)
            state.hopeless = state.hopeless or isinstance(error, NotRecordedError)
        except UserError as error:
            state.reason, state.error = "user_error", str(error)
        self._append(state, observation)
        self._apply_limits(state)
        return await self._step(state, observation, records)

    def snapshot(self) -> EpisodeSnapshot:
        state = self.state
        return EpisodeSnapshot(
            task=state.task,
            seed=state.seed,
            messages=tuple(state.messages),
            turn=state.turn,
            tokens=state.tokens,
            format_errors=state.format_errors,
            caller=state.caller.snapshot(),
            user_faults=tuple(state.user_faults),
            conversations=tuple(state.conversations),
            session=state.session,
            begins_at=state.begins_at,
            turns_before=state.turns_before,
        )

    async def restore(self, snapshot: EpisodeSnapshot) -> None:
        """Go on from `snapshot`, taken of this or another environment while its episode ran."""
        await self.close()
        state = self._begin(snapshot.task, snapshot.seed)
        state.messages = list(snapshot.messages)
        state.turn, state.tokens = snapshot.turn, snapshot.tokens
        state.format_errors = snapshot.format_errors
        state.user_faults = list(snapshot.user_faults)
        state.conversations = list(snapshot.conversations)
        state.begins_at, state.turns_before = snapshot.begins_at, snapshot.turns_before
        if snapshot.session:
            self._enter(state, snapshot.session)
        await state.caller.restore(snapshot.caller)
        self._episode = state

    def stop(self, reason: Reason, error: str) -> None:
        """End the episode for a cause that lies outside it, such as an endpoint that is down."""
        self.state.reason, self.state.error = reason, error

    async def close(self) -> None:
        """Stop what the episode runs. Its `state` can still be read."""
        state = self._episode
        if state is not None:
            state.hash_final = state.hash_final or state.caller.state_hash()
            await state.caller.close()

    def _begin(self, task: Row, seed: int) -> EpisodeState:
        agent = self._catalogue.agents[task["agent_id"]]
        tools = self._catalogue.tools_of(agent)
        if num_sessions(task["user_brief"]) > 1:
            tools += NOTE_TOOLS
        own = self._catalogue.user_tools_of(task)
        caller = Caller(
            tools,
            executors_for(
                self._catalogue,
                task,
                [*tools, *own],
                seed=seed,
                answers=self._answers,
                recorded=self._recorded,
                answers_for=self._answers_for if self._server_answers else None,
            ),
            self._faults(seed),
            max_parallel_calls=self._config.max_parallel_calls,
            observation_chars=self._config.observation_chars,
            user_tools=own,
        )
        state = EpisodeState(task, seed, caller, None, caller.state_hash())
        self._enter(state, 0)
        return state

    def _answers_for(self, place: CallPlace) -> AnswerServer:
        """What a server asks in the call is asked of those who are in the conversation."""
        state, answers = self.state, self._server_answers
        assert answers is not None
        scene = AskedScene(
            place,
            self._catalogue.personas[state.task["persona_id"]],
            part_of(state.task["user_brief"], state.session),
            state.conversation,
            self._made_by_user(state),
        )
        return partial(answers.answer, scene)

    def _enter(self, state: EpisodeState, session: int) -> None:
        """Have the user of the conversation take its place."""
        task, state.session = state.task, session
        if self._user is not None:
            part = task | {"user_brief": part_of(task["user_brief"], session)}
            state.user = self._user(part, self._catalogue.personas[task["persona_id"]])

    def _beginning(self, state: EpisodeState) -> list[Message]:
        """The first messages of the conversation that begins."""
        opening = part_of(state.task["user_brief"], state.session)["opening"]
        return [self._system_message(state.task), {"role": "user", "content": opening}]

    def _comes_back(self, state: EpisodeState) -> bool:
        """Whether another conversation follows this one."""
        return state.session + 1 < num_sessions(state.task["user_brief"])

    def _system_message(self, task: Row) -> Message:
        background = self._catalogue.background_of(task)
        prompt = render(
            PROMPT,
            system_prompt=self._catalogue.agents[task["agent_id"]]["system_prompt"],
            notes=num_sessions(task["user_brief"]) > 1,
            **background._asdict(),
        )
        return prompt.messages[0]

    async def _call_tools(self, state: EpisodeState, action: Message) -> list[CallRecord]:
        calls, signature = action["tool_calls"], digest(action)
        if self._sub_agents is None or not any(map(is_delegation, calls)):
            records = await self._run_calls(state, calls, signature, "agent")
        else:
            records = await run_mixed(calls, signature, self._work(state, self._sub_agents))
        wrong = any(record.error_code in FORMAT_ERRORS for record in records)
        state.format_errors = state.format_errors + 1 if wrong else 0
        if state.format_errors >= self._config.max_format_errors:
            state.reason = "format_error"
        return records

    def _work(self, state: EpisodeState, agents: SubAgents) -> Work:
        return Work(
            agents,
            self._config,
            state.caller,
            self._catalogue.background_of(state.task),
            state.conversations,
            state.turn,
            state.session,
            partial(self._run_calls, state, actor="agent"),
            lambda: state.reason is not None,
        )

    async def _run_calls(
        self,
        state: EpisodeState,
        calls: Sequence[Mapping[str, Any]],
        signature: str,
        actor: Actor,
        *,
        place: int = 0,
        parent: str | None = None,
    ) -> list[CallRecord]:
        """Run the calls in their order, the first of which is at `place` in its message. On a
        resume the journalled results are what counts."""
        records = await state.caller.run(
            calls,
            turn=state.turn,
            actor=actor,
            place=place,
            parent_call_id=parent,
            session=state.session,
        )
        if self._journal is not None:
            # the digest keeps a branch taken after `restore` from the first branch's results
            step = f"turn-{state.turn}-{signature}"
            records = self._settled(self._journal, state, step, records)
        state.caller.keep(records)
        if failed := next((r for r in records if r.error_code == SIMULATION_FAILED), None):
            state.reason, state.hopeless = "infra_error", True
            state.error = f"{SIMULATION_FAILED}: no usable answer to call {failed.call_index}"
        return records

    def _settled(
        self, journal: ShardJournal, state: EpisodeState, step: str, records: list[CallRecord]
    ) -> list[CallRecord]:
        fresh = [record._asdict() for record in records]
        known = journal.observation(self._episode_id, step)
        if known is None:
            journal.record(self._episode_id, step, {"calls": fresh})
            return records
        seen = [CallRecord(**renamed_row("tool_calls", call)) for call in known["calls"]]
        if canonical_json([record._asdict() for record in seen]) == canonical_json(fresh):
            return records
        state.drifts.append(step)
        return seen

    async def _hear_user(self, state: EpisodeState) -> list[Message]:
        state.format_errors = 0
        if state.user is None:
            state.reason = "agent_done"
            return []
        said = await state.user.reply(self._scene(state))
        # its last words answer nothing and nobody answers them: the agent has the last word
        if said.done and not self._comes_back(state):
            state.reason = "user_done"
            return []
        state.caller.user_answered(state.turn)
        if said.done:
            state.begins_at, state.turns_before = len(state.messages), state.turn
            self._enter(state, state.session + 1)
            return self._beginning(state)
        return [{"role": "user", "content": said.message}]

    def _scene(self, state: EpisodeState) -> Scene:
        async def act(calls: Sequence[UserCall]) -> list[CallRecord]:
            wire = [call.wire() for call in calls]
            made = await self._run_calls(state, wire, f"user-{digest(wire)}", "user")
            if state.error is not None:  # whatever the user would say now, the episode is over
                raise TransientError(state.error)
            return made

        return Scene(
            messages=state.conversation,
            goal_open=lambda: self._goal_open(state),
            turn=state.turn,
            turns_before=state.turns_before,
            calls=self._made_by_user(state),
            act=act,
            note=state.user_faults.append,
        )

    def _made_by_user(self, state: EpisodeState) -> list[CallRecord]:
        """Calls of its own tools in the conversation that is going on."""
        made = (record for record in state.caller.records if record.actor == "user")
        return [record for record in made if record.session == state.session]

    async def _goal_open(self, state: EpisodeState) -> bool | None:
        """Whether a mandatory criterion that code can check is not met yet; None for a task that
        cannot be solved, and while a later conversation is still to come."""
        if not state.task["solvable"] or self._comes_back(state):
            return None
        rubric = rubric_of(state.task)
        evidence = await self._evidence(state, rubric)
        verdicts = self._catalogue.kinds.check_all(rubric, evidence)
        return bool(decide_by_code(rubric, verdicts).failed)

    async def _evidence(self, state: EpisodeState, rubric: Rubric) -> Episode:
        """With the results of the graded tests, which run elsewhere; TransientError where that
        fails."""
        calls = [record._asdict() for record in state.caller.records]
        tests = await self._catalogue.bench.tests_of(state.task, rubric, calls)
        return evidence_of(state.messages, calls, tests)

    def _append(self, state: EpisodeState, messages: Sequence[Message]) -> None:
        state.messages += messages
        state.tokens += sum(message_tokens(m) for m in messages if m["role"] != "system")

    def _apply_limits(self, state: EpisodeState) -> None:
        if state.reason is not None:
            return
        if state.tokens > state.task["token_budget"]:
            state.reason = "token_budget"
        elif state.turn >= state.task["max_turns"]:
            state.reason = "max_turns"

    async def _step(
        self, state: EpisodeState, observation: list[Message], records: list[CallRecord]
    ) -> EnvironmentStep:
        info: dict[str, Any] = {"turn": state.turn, "tokens": state.tokens, "calls": records}
        info["session"] = state.session
        if state.reason is None:
            return EnvironmentStep(observation, 0.0, False, False, info)
        reward, verdicts = 0.0, {}
        if state.reason not in OUTSIDE:
            rubric = rubric_of(state.task)
            try:
                evidence = await self._evidence(state, rubric)
                verdicts = self._catalogue.kinds.check_all(rubric, evidence)
                reward = objective_reward(rubric, verdicts)
            except TransientError as error:  # of the sandbox that grades
                state.reason, state.error = "infra_error", str(error)
        info |= {"termination_reason": state.reason, "verdicts": verdicts}
        if state.error is not None:
            info["error"] = state.error
        truncated = state.reason in TRUNCATED
        return EnvironmentStep(observation, reward, not truncated, truncated, info)
