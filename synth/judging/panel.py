"""Panels: several judge models that decide by vote or in order, and none judges its own words.

The models are those of `roles.judge`. Each member's verdicts are rows of their own, `checked_by`
"panel:MODEL", and count for nothing; what the panel decides is the row of the "judge".
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import duckdb

from records.config import Config
from records.model_names import OFFLINE_MODEL, todays
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.judging.judge import Judgement, JudgeQuestions, judge
from synth.judging.judge_rates import kappa
from synth.llm.client import LLM
from synth.llm.settings.config import OFFLINE, RoleConfig

PanelRule = Literal["one", "vote", "in_order"]

MEMBER = "panel:"
"""Before the model's name, in `checked_by`."""


class PanelConfig(Config):
    """How the models of the judge's role decide together."""

    rule: PanelRule = "one"
    """one: the models share the trajectories by weight, each is judged by one. vote: every model
    judges, and the majority decides criterion by criterion; a tie fails. in_order: the first model
    judges; where it fails anything that decides, or is not sure, the next one is asked, and the
    last one asked decides. A model never judges its own words where there is another."""


@dataclass(frozen=True, slots=True)
class AgentModels:
    """Where the models that played the agent were reached, as far as is known."""

    urls: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Model -> base URLs."""

    def is_offline(self, model: str | None) -> bool:
        """Whether it was the offline model, by its address, else by its name."""
        known = self.urls.get(todays(model or ""))
        return known == {OFFLINE} if known else todays(model or "") == OFFLINE_MODEL

    def is_same(self, model: str | None, judge_model: str, judge_url: str) -> bool:
        """Whether the agent's model is the judge's: by name, and by address where it is known."""
        if model is None or todays(model) != todays(judge_model):
            return False
        known = self.urls.get(todays(model))
        return not known or judge_url in known


def agent_models(dataset: Dataset) -> AgentModels:
    """As the runs of the dataset recorded them."""
    urls: defaultdict[str, set[str]] = defaultdict(set)
    for row in dataset.rows("runs", ["config"]):
        agent = ((row["config"] or {}).get("roles") or {}).get("agent") or {}
        for one in agent.get("models", ()):
            urls[todays(one["name"])].add(agent.get("base_url", OFFLINE))
    return AgentModels({name: frozenset(found) for name, found in urls.items()})


def judges_of(role: RoleConfig, agent: str | None, agents: AgentModels) -> RoleConfig:
    """The judge's role without the `agent`'s own model, where that leaves any other."""
    others = tuple(m for m in role.models if not agents.is_same(agent, m.name, role.base_url))
    return role.model_copy(update={"models": others}) if others else role


def judge_identity(role: RoleConfig) -> dict[str, Any]:
    """What ids of gradings and trials are digests of: the judge's settings, and whether it is the
    offline model. As everywhere the address does not count, so that a server that comes back at
    another one is not asked, and paid, for everything again."""
    return role.identity() | ({"is_offline": True} if role.is_offline else {})


def may_decide(role: RoleConfig, agent: str | None, agents: AgentModels) -> bool:
    """Whether the judge has a say on what the `agent` wrote: the offline model, which goes by
    rules, has none on the words of another."""
    return not role.is_offline or agents.is_offline(agent)


def is_self_judged(
    verdicts: Iterable[Row], role: RoleConfig, agent: str | None, agents: AgentModels
) -> bool:
    """Whether a model that judged, or named a cause, by the rows of `verdicts`, is the one whose
    words it judged."""
    return any(agents.is_same(agent, model, role.base_url) for model in _who_judged(verdicts))


def _who_judged(verdicts: Iterable[Row]) -> set[str]:
    verdicts = list(verdicts)
    rows = [row for row in verdicts if row["checked_by"] != "code"]
    members = {row["checked_by"].removeprefix(MEMBER) for row in rows if is_members(row)}
    causes = [row["cause"] for row in verdicts if row.get("cause")]
    named = {cause["by"] for cause in causes if cause.get("by")}
    versions = named if members else named | {row["checker_version"] for row in rows}
    return members | {version.rpartition("@")[0] for version in versions}


def is_members(row: Row) -> bool:
    """Whether a row of `verdicts` is that of a member of a panel."""
    return row["checked_by"].startswith(MEMBER)


async def ask_panel(
    llm: LLM, asked: JudgeQuestions, *, item: str, role: RoleConfig, rule: PanelRule
) -> dict[str, Judgement]:
    """The judgement of each model that is asked, in the order of asking. Raises what `judge`
    raises, of any of them: a panel that is not whole decides nothing."""
    if rule == "one":
        models = [role.model_of(item, "judge")]
    else:
        models = [model.name for model in role.models]
    judged: dict[str, Judgement] = {}
    for model in models:
        judged[model] = await judge(llm.playing("judge", model), asked, item=item)
        if rule == "in_order" and is_sure(judged[model], asked):
            break
    return judged


def is_sure(judgement: Judgement, asked: JudgeQuestions) -> bool:
    """Whether everything that decides is passed, and at the first asking."""
    decisive = [c.id for c in asked.criteria if c.mandatory]
    return (
        not judgement.asked_again
        and all(opinion.passed for opinion in judgement.statements.values())
        and all(judgement.criteria[i].passed for i in decisive)
    )


def decided(by_member: Sequence[Sequence[Row]], rule: PanelRule) -> list[Row]:
    """The panel's verdicts: on each criterion those of a member that it decides by, the first of
    the majority in a vote of those that decide. Members' rows are on the same criteria in the same
    order."""
    if rule != "vote":
        return list(by_member[-1])
    chosen = []
    for rows in zip(*by_member, strict=True):
        votes = [row for row in rows if row["passed"] is not None] or rows[:1]
        passes = 2 * sum(row["passed"] is True for row in votes) > len(votes)
        chosen.append(next(row for row in votes if bool(row["passed"]) == passes))
    return chosen


def panel_agreement(db: duckdb.DuckDBPyConnection, grading_id: str) -> list[Row]:
    """How often two members of a grading's panel agree, a row for each criterion and pair of
    models: `num` trajectories that both judged, `agreed` with equal verdicts, `share` in [0, 1],
    and `kappa`, None where chance alone explains everything. Empty without a panel.

    In order, a later member sees only what an earlier one was not sure of.
    """
    found = db.execute(_MEMBERS, [grading_id, f"{MEMBER}%"]).fetchall()
    by_trajectory: defaultdict[tuple[str, str], list[tuple[str, bool]]] = defaultdict(list)
    for trajectory_id, criterion_id, checked_by, passed in found:
        member = checked_by.removeprefix(MEMBER)
        by_trajectory[criterion_id, trajectory_id].append((member, passed))
    pairs: defaultdict[tuple[str, str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for (criterion_id, _), said in by_trajectory.items():
        for (one, first), (other, second) in combinations(said, 2):
            pairs[criterion_id, one, other].append((first, second))
    return [_agreement(*names, votes) for names, votes in sorted(pairs.items())]


def _agreement(criterion_id: str, one: str, other: str, votes: list[tuple[bool, bool]]) -> Row:
    agreed = sum(first == second for first, second in votes)
    return {
        "criterion_id": criterion_id,
        "models": (one, other),
        "num": len(votes),
        "agreed": agreed,
        "share": agreed / len(votes),
        "kappa": kappa(
            votes.count((True, True)),
            votes.count((True, False)),
            votes.count((False, True)),
            votes.count((False, False)),
        ),
    }


_MEMBERS = """
SELECT trajectory_id, criterion_id, checked_by, passed FROM verdicts
WHERE grading_id = $1 AND checked_by LIKE $2 AND passed IS NOT NULL ORDER BY ALL"""
