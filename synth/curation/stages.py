"""The stage of curation, and what stages share that decide over the verdicts of a grading."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from records.digest import digest
from records.reading.lookup import RowsBy
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation import embedding, leaks
from synth.curation.candidates import (
    CurationCandidate,
    FollowingTurns,
    SharedValues,
    candidate_of,
    following,
)
from synth.curation.deciding import CurationRules, curation_id_of, decide_all, no_pairs
from synth.curation.duplicates import Conversations, conversation_text
from synth.curation.embedding import NearestPassages, embedded_by
from synth.curation.evaluation_index import EvaluationIndex
from synth.curation.leaks import embedded_passages, leaks_of, looked_through
from synth.curation.quotas import warnings_of
from synth.curation.turns import false_statements
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.episode.sessions import is_episode, session_id, whole_episode
from synth.judging.judge_rates import JudgeStatus, judge_rates, judge_status_of
from synth.judging.panel import is_self_judged, may_decide
from synth.judging.stages import Judged, trials
from synth.llm.client import LLM

TOLD_EVERY = 10_000
"""Trajectories between two lines of the log."""

log = logging.getLogger(__name__)


class Decided(Judged):
    """What stages share that look at what verdicts come to."""

    def __init__(self, run: RunContext[Any]) -> None:
        super().__init__(run)
        self.verdicts = RowsBy(run.dataset, "verdicts", "trajectory_id")
        self.simulations = RowsBy(run.dataset, "simulations", "trajectory_id")
        rows = run.dataset.rows("domains", ["domain_id", "name"])
        self.domain_names = {row["domain_id"]: row["name"] for row in rows}

    def verdicts_on(self, trajectory_id: str) -> list[Row]:
        """Of this grading."""
        found = self.verdicts.get(trajectory_id, ())
        return [row for row in found if row["grading_id"] == self.grading_id]

    def candidate(self, trajectory: Row, status: JudgeStatus) -> CurationCandidate | None:
        """What this grading's verdicts come to, where the judge's status is this one; None while
        the episode has yet to be judged. `trajectory`: its first row."""
        i, agent = trajectory["trajectory_id"], trajectory["models"].get("agent")
        judge, verdicts = self.run.config.roles["judge"], self.verdicts_on(i)
        task = self.recorded.task(trajectory["task_id"])
        return candidate_of(
            whole_episode(trajectory, self.recorded.trajectories, task),
            self.recorded.tool_calls.get(i, ()),
            verdicts,
            task,
            status,
            self.run.config.judging.decision,
            simulations=self.simulations.get(i, ()),
            judge_may_decide=may_decide(judge, agent, self.agents),
            self_judged=is_self_judged(verdicts, judge, agent, self.agents),
            domain=self.domain_names.get(trajectory["domain_id"]),
            no_loss=self.run.config.curation.no_loss,
        )


class CurationStage(Decided):
    """One item: it looks at every trajectory of the dataset at once."""

    name = "curation"
    needs_all = True

    def __init__(self, run: RunContext[Any]) -> None:
        super().__init__(run)
        settings = run.config.curation.decontamination
        self.index = EvaluationIndex(settings) if settings.files else None

    def plan(self) -> list[Item]:
        conversations: list[FollowingTurns] = []
        candidates = list(self._candidates(conversations))
        if not candidates:
            return []
        curation_id = self._newest_id(curation_id_of(candidates, self._rules()))
        return [Item(curation_id, {"candidates": candidates, "following": conversations})]

    def _rules(self) -> CurationRules:
        config = self.run.config
        evaluations = None
        if self.index is not None:
            evaluations = self.index.version
            if config.asks_embedder:
                role = config.roles[embedding.ROLE]
                evaluations = digest(evaluations, embedded_by(role, self.index.passages))
        return CurationRules(
            self.grading_id,
            config.curation,
            config.judging.decision,
            faulty_tasks(self.run.dataset, self.grading_id),
            evaluations,
        )

    def _newest_id(self, curation_id: str) -> str:
        """Under which the decision is, or becomes, the newest one. A decision that was made before
        and overruled since is made again, under an id of its own."""
        made = list(self.run.dataset.item_statuses(self.name))  # as they were first committed
        while curation_id in made[:-1]:
            overruled_by = made[made.index(curation_id) + 1]
            curation_id = digest("curation again", curation_id, overruled_by)
        return curation_id

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        nearest = await self._nearest(item, shard.llm)
        return await asyncio.to_thread(self._decided, item, nearest)

    async def _nearest(self, item: Item, llm: LLM) -> NearestPassages | None:
        """What the embedder finds, where there is something to be found and somebody plays it."""
        if self.index is None or not self.run.config.asks_embedder:
            return None
        stored = chain.from_iterable(self.run.dataset.in_commits(embedding.TABLE))
        role = self.run.config.roles[embedding.ROLE]
        nearest = NearestPassages(role, self.index.passages, stored)
        rows = looked_through(self.run.dataset, self.recorded.tasks)
        await nearest.ask(llm, embedded_passages(rows), item=item.item_id)
        return nearest

    def _decided(self, item: Item, nearest: NearestPassages | None) -> ItemResult:
        candidates: list[CurationCandidate] = item.data["candidates"]
        found: list[Row] = []
        episodes: set[str] = set()
        if self.index is not None:
            cosine = self.run.config.curation.decontamination.cosine
            rows = looked_through(self.run.dataset, self.recorded.tasks)
            for number, one in enumerate(rows, start=1):
                if own := leaks_of(one, self.index, nearest, cosine=cosine):
                    found += own
                    episodes.add(one.episode_id)
                if number % TOLD_EVERY == 0:
                    log.info("curation: %d looked through, %d leaks", number, len(episodes))
        found.sort(key=lambda row: (row["trajectory_id"], row["method"]))
        rows = self._rows(candidates, episodes)
        dropped = Counter(row["drop_reason"] for row in rows)
        for warning in warnings_of(candidates, dropped, self.run.config.curation):
            log.warning("curation: %s", warning)
        rows += following(rows, item.data["following"])
        for row in chain(rows, found):
            row["curation_id"] = item.item_id
        reasons = Counter(row["drop_reason"] for row in rows if row["drop_reason"])
        return ItemResult(
            {
                "curation": rows,
                leaks.TABLE: found,
                embedding.TABLE: nearest.new if nearest else [],
            },
            noted=dict(sorted(reasons.items())),
        )

    def _rows(self, candidates: list[CurationCandidate], in_evaluation: set[str]) -> list[Row]:
        near = self.run.config.curation.near
        rules = self._rules()
        if near is None:
            return decide_all(candidates, rules, in_evaluation=in_evaluation, similar=no_pairs)
        passed = {c.trajectory_id for c in candidates if c.drop_reason is None}
        with Conversations() as conversations:
            columns = ("trajectory_id", "messages")
            stored = self.run.dataset.in_commits("trajectories", columns)
            for row in chain.from_iterable(stored):
                if row["trajectory_id"] in passed:
                    text = conversation_text(row["messages"])
                    conversations.add(row["trajectory_id"], text)
            return decide_all(
                candidates,
                rules,
                in_evaluation=in_evaluation,
                similar=lambda ranked: conversations.repeats(ranked, near=near),
            )

    def _candidates(self, conversations: list[FollowingTurns]) -> Iterator[CurationCandidate]:
        """In commit order, so that what belongs to a trajectory is read together with it.
        Sub-agents' conversations and later ones with the user are no candidates: they are added to
        `conversations`."""
        tried = trials(self.run.dataset, self.grading_id)
        minimum = self.run.config.judging.minimum_quality
        status, shared = judge_status_of(judge_rates(tried), minimum), SharedValues()
        for row in chain.from_iterable(self.run.dataset.in_commits("trajectories", _COLUMNS)):
            if not is_episode(row):
                conversations.append(self._follower(row, status))
            elif candidate := self.candidate(row, status):
                yield shared.of(candidate)

    def _follower(self, row: Row, status: JudgeStatus) -> FollowingTurns:
        no_loss, episode = self.run.config.curation.no_loss, row["episode_id"]
        false_at: list[int] = []
        if "false_statement" in no_loss and row["parent_call_id"] is None:
            verdicts = self.verdicts_on(episode)
            before = sum(
                len(self.recorded.trajectories[session_id(episode, number)]["messages"])
                for number in range(row["session"])
            )
            judge, agent = self.run.config.roles["judge"], row["models"].get("agent")
            is_heard = status != "below_minimum" and may_decide(judge, agent, self.agents)
            said = false_statements(verdicts, judge_counts=is_heard)
            false_at = [at - before for at in said]
        calls = self.recorded.tool_calls.get(episode, ())
        return FollowingTurns.of(row, calls, no_loss=no_loss, false_at=false_at)


def faulty_tasks(dataset: Dataset, grading_id: str) -> set[str]:
    """Ids of the tasks that count as faulty by the newest measurement of the grading."""
    columns = ("task_id", "grading_id", "fault")
    newest = {
        row["task_id"]: row["fault"]
        for rows in dataset.in_commits("difficulty", columns)
        for row in rows
        if row["grading_id"] == grading_id
    }
    return {task_id for task_id, fault in newest.items() if fault}


_COLUMNS = (
    *("trajectory_id", "task_id", "split", "termination_reason", "messages", "episode_id"),
    *("session", "parent_call_id", "models", "error", "domain_id", "server", "variant", "outcome"),
    "executed_by",
)
