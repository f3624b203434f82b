"""Panels: who is asked, whose verdict counts, what is paid, and who judges whose words."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.engine.stages import KEPT
from synth.judging.calibration import JudgingConfig
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.grading import grading_id_of
from synth.judging.panel import (
    AgentModels,
    PanelConfig,
    PanelRule,
    agent_models,
    decided,
    is_self_judged,
    judges_of,
    may_decide,
    panel_agreement,
)
from synth.judging.review import ReviewedEpisode, review
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import OFFLINE, ModelConfig, RoleConfig
from synth.rubrics.criteria import JUDGED, Criterion, Rubric
from tests.synth.scripted import ScriptedApp
from tests.synth.small_dataset import row

URL = "https://models.example/v1"


def role_of(*models: str, base_url: str = OFFLINE) -> RoleConfig:
    return RoleConfig(models=tuple(ModelConfig(name=name) for name in models), base_url=base_url)


THREE = role_of("cheap", "middle", "dear")
EPISODE = ReviewedEpisode(
    messages=[
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": "Please rent me the Heron."},
        {"role": "assistant", "content": "Which day would you like it for?"},
    ],
    calls=[],
    tools=[],
    rubric=Rubric(
        criteria=tuple(
            Criterion(id=name, words="w", weight=1, mandatory=mandatory, kind=JUDGED)
            for name, mandatory in (("asks", True), ("brief", False))
        )
    ),
)


def judgement(body: dict[str, Any], **failed: str) -> str:
    """All is passed but the criteria of `failed`, each with its evidence."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    wanted = schema["verdicts"]["items"]["properties"]["criterion_id"]["enum"]
    open_ = [i for i in schema["statements"]["items"]["properties"]["id"]["enum"] if i != "none"]
    return json.dumps(
        {
            "statements": [],
            "no_claim": open_,
            "verdicts": [
                {
                    "criterion_id": i,
                    "evidence": failed.get(i, "seen"),
                    "quote": "which day",
                    "passed": i not in failed,
                }
                for i in wanted
            ],
            "met": [],
            "cause": {"evidence": "", "quote": "", "of": "none"},
        }
    )


def reviewed(
    folder: Path, app: ScriptedApp, rule: PanelRule, role: RoleConfig = THREE, item: str = "i"
) -> tuple[list[Row], list[Row]]:
    """Rows of `verdicts` but code's, and of `llm_calls`."""

    async def run() -> tuple[list[Row], list[Row]]:
        async with Gateway({"judge": role}, offline_app=lambda: app) as gateway:
            with ShardJournal(folder / "journal.sqlite") as journal:
                llm = LLM(gateway, journal, stage="grading", invocation_id="test")
                rows = await review(
                    llm, EPISODE, {}, item=item, judge_role=role, version="1", rule=rule
                )
                return rows, llm.rows()

    rows, requests = asyncio.run(run())
    return [r for r in rows if r["checked_by"] != "code"], requests


def by_checker(rows: list[Row], criterion: str) -> dict[str, bool]:
    return {r["checked_by"]: r["passed"] for r in rows if r["criterion_id"] == criterion}


def voting(*failing: str) -> ScriptedApp:
    """`asks` is failed by these models."""

    def answer(body: dict[str, Any]) -> str:
        return judgement(body, **({"asks": body["model"]} if body["model"] in failing else {}))

    return ScriptedApp(answer)


@pytest.mark.parametrize(
    ("failing", "passes"),
    [((), True), (("cheap",), True), (("cheap", "dear"), False)],
)
def test_in_a_vote_everyone_judges_and_the_majority_decides(
    failing: tuple[str, ...], passes: bool, tmp_path: Path
) -> None:
    app = voting(*failing)
    rows, requests = reviewed(tmp_path, app, "vote")
    assert [r["model"] for r in requests] == [b["model"] for b in app.requests]
    assert [b["model"] for b in app.requests] == ["cheap", "middle", "dear"]
    verdicts = by_checker(rows, "asks")
    assert verdicts == {
        "panel:cheap": "cheap" not in failing,
        "panel:middle": "middle" not in failing,
        "panel:dear": "dear" not in failing,
        "judge": passes,
    }
    (decision,) = (r for r in rows if (r["criterion_id"], r["checked_by"]) == ("asks", "judge"))
    winners = {name for name in ("cheap", "middle", "dear") if (name not in failing) == passes}
    assert passes or decision["evidence"] in winners


def test_a_tie_fails(tmp_path: Path) -> None:
    role = role_of("cheap", "dear")
    rows, _ = reviewed(tmp_path, voting("dear"), "vote", role)
    assert by_checker(rows, "asks")["judge"] is False
    assert by_checker(rows, "brief")["judge"] is True


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=7))
def test_a_vote_passes_what_more_than_half_pass(votes: list[list[bool]]) -> None:
    members = [
        [{"criterion_id": str(i), "passed": passed} for i, passed in enumerate(own)]
        for own in votes
    ]
    for number, chosen in enumerate(decided(members, "vote")):
        passes = Counter(own[number] for own in votes)[True]
        assert chosen["criterion_id"] == str(number)
        assert chosen["passed"] == (passes > len(votes) / 2)


@pytest.mark.parametrize(
    ("votes", "passed"),
    [((None, True, False), False), ((None, None, True), True), ((None, None, None), None)],
)
def test_a_member_that_decides_nothing_has_no_vote(
    votes: tuple[bool | None, ...], passed: bool | None
) -> None:
    (chosen,) = decided([[{"criterion_id": "a", "passed": vote}] for vote in votes], "vote")
    assert chosen["passed"] is passed


def test_members_verdicts_decide_nothing_by_themselves(tmp_path: Path) -> None:
    rows, _ = reviewed(tmp_path, voting("cheap"), "vote")
    decision = decide_rows(rows, pass_threshold=0.7, config=DecisionConfig())
    assert decision.accepted
    assert decision.score == 1.0


@pytest.mark.parametrize(
    ("failing", "asked"),
    [((), 1), (("cheap",), 2), (("cheap", "middle"), 3), (("cheap", "middle", "dear"), 3)],
)
def test_in_order_the_next_is_asked_where_something_decisive_fails(
    failing: tuple[str, ...], asked: int, tmp_path: Path
) -> None:
    app = voting(*failing)
    rows, _ = reviewed(tmp_path, app, "in_order")
    models = [body["model"] for body in app.requests]
    assert models == ["cheap", "middle", "dear"][:asked]
    verdicts = by_checker(rows, "asks")
    assert verdicts["judge"] == (models[-1] not in failing)
    assert verdicts.keys() == {"judge", *(f"panel:{model}" for model in models)}


def test_in_order_what_only_ranks_makes_nobody_unsure(tmp_path: Path) -> None:
    app = ScriptedApp(lambda body: judgement(body, brief="long", helpful="no"))
    reviewed(tmp_path, app, "in_order")
    assert [body["model"] for body in app.requests] == ["cheap"]


def test_in_order_a_pass_at_the_second_asking_is_not_sure(tmp_path: Path) -> None:
    said = Counter[str]()

    def answer(body: dict[str, Any]) -> str:
        said[body["model"]] += 1
        text = judgement(body)
        first = body["model"] == "cheap" and said["cheap"] == 1
        return text.replace("which day", "the boat is yours") if first else text

    app = ScriptedApp(answer)
    reviewed(tmp_path, app, "in_order")
    assert [body["model"] for body in app.requests] == ["cheap", "cheap", "middle"]


def test_one_judge_leaves_no_rows_of_members(tmp_path: Path) -> None:
    for item in "abcdef":
        (tmp_path / item).mkdir()
        app = voting()
        rows, _ = reviewed(tmp_path / item, app, "one", item=item)
        assert {r["checked_by"] for r in rows} == {"judge"}
        (asked,) = {body["model"] for body in app.requests}
        assert asked == THREE.model_of(item, "judge")
        assert all(r["checker_version"].startswith(f"{asked}@") for r in rows)


@pytest.mark.parametrize("rule", ["one", "vote", "in_order"])
def test_a_second_time_asks_the_same_models_and_pays_nobody(
    rule: PanelRule, tmp_path: Path
) -> None:
    rows, _ = reviewed(tmp_path, voting("cheap"), rule)
    app = voting()  # would say otherwise, if it were asked
    again, requests = reviewed(tmp_path, app, rule)
    assert app.requests == []
    assert again == rows
    models = [r["model"] for r in requests if r["cache_hit"]]
    paid = [r["model"] for r in requests if not r["cache_hit"]]
    assert models == paid


def test_no_model_judges_its_own_words_where_there_is_another() -> None:
    agents = AgentModels({"dear": frozenset({URL})})
    role = THREE.model_copy(update={"base_url": URL})
    others = [model.name for model in judges_of(role, "dear", agents).models]
    assert others == ["cheap", "middle"]
    assert judges_of(role, "unknown", agents) == role
    assert all(
        judges_of(role, "dear", agents).model_of(str(i), "judge") != "dear" for i in range(9)
    )
    alone = role_of("dear", base_url=URL)
    assert judges_of(alone, "dear", agents) == alone


def test_the_same_name_at_another_address_is_another_model() -> None:
    agents = AgentModels({"large": frozenset({URL})})
    assert agents.is_same("large", "large", URL)
    assert not agents.is_same("large", "large", "https://elsewhere.example/v1")
    assert AgentModels().is_same("large", "large", "https://elsewhere.example/v1")
    assert not agents.is_same(None, "large", URL)


def test_the_offline_judge_has_a_say_on_the_offline_agent_alone() -> None:
    agents = AgentModels({"large": frozenset({URL}), "mine": frozenset({OFFLINE})})
    offline, hosted = RoleConfig(), role_of("large", base_url=URL)
    said = {name: may_decide(offline, name, agents) for name in ("large", "mine", "offline-model")}
    assert said == {"large": False, "mine": True, "offline-model": True}
    assert not may_decide(offline, None, agents)
    assert all(may_decide(hosted, name, agents) for name in (*said, None))


def test_a_judge_of_its_own_words_is_told_from_the_rows(tmp_path: Path) -> None:
    agents = AgentModels()
    alone = role_of("dear")
    for rule in ("one", "vote"):
        folder = tmp_path / rule
        folder.mkdir()
        rows, _ = reviewed(folder, voting(), rule, alone)
        assert is_self_judged(rows, alone, "dear", agents)
        assert not is_self_judged(rows, alone, "cheap", agents)
    rows, _ = reviewed(tmp_path, voting(), "vote", judges_of(THREE, "dear", agents))
    assert not is_self_judged(rows, THREE, "dear", agents)


def test_where_the_agent_was_reached_stands_in_the_runs(tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path)

    def run(number: int, url: str, *models: str) -> Row:
        agent = {"base_url": url, "models": [{"name": name} for name in models]}
        config = {"roles": {"agent": agent}}
        return row("runs", invocation_id=f"i{number}", event="started", config=config)

    runs = [run(1, URL, "large"), run(2, OFFLINE, "offline-model"), run(3, OFFLINE, "large")]
    dataset.commit(run_id="r", stage="x", shard=0, tables={"runs": runs}, items={"x": KEPT})
    agents = agent_models(dataset)
    assert agents.urls["large"] == {URL, OFFLINE}
    assert agents.is_offline("offline-model")
    assert not agents.is_offline("large")  # some of it was written elsewhere
    assert not agents.is_offline(None)


def test_a_panel_is_a_grading_of_its_own_and_one_judge_is_none() -> None:
    vote = PanelConfig(rule="vote")
    assert grading_id_of(THREE) == grading_id_of(THREE, panel=PanelConfig())
    assert grading_id_of(THREE) != grading_id_of(THREE, panel=vote)
    assert "panel" not in JudgingConfig().identity()
    assert JudgingConfig(panel=vote).identity()["panel"] == {"rule": "vote"}


def test_members_agreement_is_counted_by_criterion_and_pair(tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path)
    votes = [(True, True), (True, False), (False, False), (True, True)]
    verdicts = [
        row(
            "verdicts",
            grading_id="g",
            trajectory_id=f"t{number}",
            criterion_id="asks",
            checked_by=f"panel:{model}",
            passed=passed,
        )
        for number, pair in enumerate(votes)
        for model, passed in zip(("cheap", "dear"), pair, strict=True)
    ]
    verdicts.append(verdicts[0] | {"checked_by": "judge"})
    dataset.commit(
        run_id="r", stage="grading", shard=0, tables={"verdicts": verdicts}, items={"x": KEPT}
    )
    (found,) = panel_agreement(dataset.connect(), "g")
    assert found | {"kappa": 0} == {
        "criterion_id": "asks",
        "models": ("cheap", "dear"),
        "num": 4,
        "agreed": 3,
        "share": 0.75,
        "kappa": 0,
    }
    assert found["kappa"] == pytest.approx(0.5)
    assert panel_agreement(dataset.connect(), "another") == []
