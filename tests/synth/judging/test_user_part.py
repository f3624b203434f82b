"""The simulated user is judged, too, and the cause is asked for where code rejects."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from synth.curation.candidates import CurationCandidate, candidate_of
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.grading import Recorded
from synth.judging.panel import AgentModels, is_self_judged
from synth.judging.review import ReviewedEpisode, review
from synth.rubrics.built_in import Verdict
from synth.rubrics.criteria import Criterion, Rubric
from synth.rubrics.standing import USER_PART
from tests.synth.clinic import PERSONA, TASK, TOOLS
from tests.synth.judging.answers import asked_about, judgement
from tests.synth.judging.perturbation_work import asked_for, section
from tests.synth.scripted import ROLES, ScriptedApp, model

BRIEF = {"name": "Ada", "wants": ["Rent the Heron."], "knows": {"day": "Friday"}}
MESSAGES = [
    {"role": "system", "content": "You rent boats."},
    {"role": "user", "content": "Please rent me the Heron."},
    {"role": "assistant", "content": "For which day?"},
    {"role": "user", "content": "Friday. In this role-play I also want the Gull."},
    {"role": "assistant", "content": "Both are yours on Friday, as an appointment."},
]
GOAL = Criterion(id="goal", words="The Heron is rented.", weight=1, mandatory=True, kind="state")
RUBRIC = Rubric(criteria=(GOAL,))
OWN_WORDS = "In this role-play I also want the Gull"


def reviewed(
    folder: Path,
    app: ScriptedApp,
    *,
    user: Row | None = None,
    goal: bool = True,
    kind: str = "state",
    messages: list[Row] = MESSAGES,
    **given: Any,
) -> list[Row]:
    rubric = Rubric(criteria=(GOAL.model_copy(update={"kind": kind}),))

    async def run() -> list[Row]:
        async with model(app, folder) as llm:
            return await review(
                llm,
                ReviewedEpisode(messages, [], [], rubric, user),
                {"goal": Verdict(goal, float(goal), "the Gull was rented, too")},
                item="i",
                judge_role=ROLES["judge"],
                version="v",
                **given,
            )

    return asyncio.run(run())


def fails_user(quote: str, *others: str) -> ScriptedApp:
    """A judge that passes everything but the user's part and `others`."""

    def answer(body: dict[str, Any]) -> str:
        made = json.loads(judgement(body))
        for verdict in made["verdicts"]:
            verdict["passed"] = verdict["criterion_id"] not in (USER_PART.id, *others)
            if verdict["criterion_id"] == USER_PART.id:
                verdict["quote"] = quote
        return json.dumps(made)

    return ScriptedApp(answer)


def fate(rows: list[Row], **given: Any) -> CurationCandidate:
    ended = {"trajectory_id": "t", "task_id": "task", "split": "train", "messages": MESSAGES}
    task = TASK | {"rubric": RUBRIC.model_dump(mode="json")}
    found = candidate_of(ended | {"termination_reason": "user_done"}, [], rows, task, **given)
    assert found is not None
    return found


def of_user(rows: list[Row]) -> Row:
    (row,) = (row for row in rows if row["criterion_id"] == USER_PART.id)
    return row


def test_without_a_brief_nobody_asks_about_the_user(tmp_path: Path) -> None:
    app = ScriptedApp(judgement)
    reviewed(tmp_path, app)
    assert USER_PART.id not in asked_about(app.requests[0])[0]
    assert "was to want and know" not in app.requests[0]["messages"][1]["content"]


def test_a_user_who_leaves_its_part_is_nobody_elses_failure(tmp_path: Path) -> None:
    app = fails_user(OWN_WORDS)
    rows = reviewed(tmp_path, app, user=BRIEF)
    assert len(app.requests) == 1
    text = app.requests[0]["messages"][1]["content"]
    assert json.dumps(BRIEF) in text.split("## What the user was to want and know")[1]
    row = of_user(rows)
    assert (row["passed"], row["supported"], row["weight"]) == (False, True, 0.0)
    decision = decide_rows(rows, pass_threshold=0.7, config=DecisionConfig())
    assert not decision.accepted
    assert decision.score == 1.0
    found = fate(rows)
    assert (found.drop_reason, found.attributed_to) == ("user_wrong", "user")
    assert fate(rows, status="below_minimum").drop_reason is None


def test_what_the_agent_fails_beside_it_stays_the_agents(tmp_path: Path) -> None:
    rows = reviewed(tmp_path, fails_user(OWN_WORDS, "manners"), user=BRIEF)
    found = fate(rows)
    assert (found.drop_reason, found.attributed_to) == ("failed_manners", "agent")


@pytest.mark.parametrize("quote", ["", "Both are yours", "You rent boats", "I want the Gull now"])
def test_only_words_of_the_user_show_that_the_user_was_wrong(quote: str, tmp_path: Path) -> None:
    app = fails_user(quote)
    rows = reviewed(tmp_path, app, user=BRIEF)
    assert len(app.requests) == 2
    row = of_user(rows)
    assert (row["passed"], row["supported"]) == (None, False)
    assert fate(rows).drop_reason is None


def test_the_brief_is_shown_as_the_user_got_it() -> None:
    tool = TOOLS[0] | {"tool_id": "own", "description": "Signs the slip. With a pen."}
    tools = {t["tool_id"]: t for t in (*TOOLS, tool)}
    given = Recorded({}, {}, {}, {}, tools, personas={"persona": PERSONA})
    shown = given.user_of(TASK)
    assert shown is not None
    assert shown["name"] == PERSONA["name"]
    assert shown["wants"] == TASK["user_brief"]["wishes"]
    assert list(shown["knows"]) == [fact["label"] for fact in TASK["user_brief"]["facts"]]
    assert "can do" not in shown
    acting = given.user_of(TASK | {"user_tool_ids": ["own"]})
    assert acting is not None
    assert acting["can do"] == ["Signs the slip."]
    assert given.user_of(TASK | {"user_brief": None}) is None
    assert Recorded({}, {}, {}, {}, tools).user_of(TASK) is None


def causes(of: str, quote: str) -> ScriptedApp:
    return ScriptedApp(lambda _: json.dumps({"evidence": "e", "quote": quote, "of": of}))


@pytest.mark.parametrize(
    ("of", "quote", "party"),
    [
        ("user", OWN_WORDS, "user"),
        ("user", "Both are yours", "agent"),
        ("task", "Both are yours", "agent"),
        ("task", "You rent boats", "task"),
        ("task", "rent me the Heron", "task"),
        ("assistant", "Both are yours", "agent"),
    ],
)
def test_the_judge_is_asked_for_the_cause_alone_where_code_rejects(
    of: str, quote: str, party: str, tmp_path: Path
) -> None:
    app = causes(of, quote)
    rows = reviewed(tmp_path, app, user=BRIEF, goal=False, ask_for_cause=True)
    [body] = app.requests
    assert asked_for(body) == "cause"
    assert section(body, "Criteria that are not met") == [
        {"words": GOAL.words, "why": "the Gull was rented, too"}
    ]
    assert {row["checked_by"] for row in rows} == {"code"}
    found = fate(rows)
    assert (found.attributed_to, found.decided_by) == (party, "code")
    for unheard in ({"status": "below_minimum"}, {"judge_may_decide": False}):
        assert fate(rows, **unheard).attributed_to == "undetermined"


@pytest.mark.parametrize("kind", ["state", "call", "communicate", "policy"])
@pytest.mark.parametrize("turns", [MESSAGES, MESSAGES[:3]])
def test_a_cause_is_asked_for_whatever_the_user_or_the_task_can_make_fail(
    kind: str, turns: list[Row], tmp_path: Path
) -> None:
    app = causes("task", "rent me the Heron")
    rows = reviewed(tmp_path, app, goal=False, kind=kind, messages=turns, ask_for_cause=True)
    assert [asked_for(body) for body in app.requests] == ["cause"]
    assert fate(rows).attributed_to == "task"


def test_no_cause_is_asked_for_that_could_only_be_the_agents(tmp_path: Path) -> None:
    app = causes("user", OWN_WORDS)
    reviewed(tmp_path, app, goal=False)
    reviewed(tmp_path, app, goal=False, kind="format", ask_for_cause=True)
    assert app.requests == []


def test_a_cause_by_the_agents_own_model_is_self_judged(tmp_path: Path) -> None:
    rows = reviewed(tmp_path, causes("user", OWN_WORDS), goal=False, ask_for_cause=True)
    judge = ROLES["judge"].models[0].name
    assert is_self_judged(rows, ROLES["judge"], judge, AgentModels())
    assert not is_self_judged(rows, ROLES["judge"], "another", AgentModels())
    assert fate(rows, self_judged=True).self_judged
    assert not fate(rows, self_judged=True, status="below_minimum").self_judged


def test_what_is_only_scored_does_not_spare_the_judge(tmp_path: Path) -> None:
    app = ScriptedApp(judgement)
    aside = DecisionConfig(scored_only=("state",))
    rows = reviewed(tmp_path, app, goal=False, ask_for_cause=True, decision=aside)
    assert [asked_for(body) for body in app.requests] == ["judgement"]
    assert "judge" in {row["checked_by"] for row in rows}


def test_an_answer_that_cannot_be_used_leaves_it_undetermined(tmp_path: Path) -> None:
    app = ScriptedApp(lambda _: "I would rather not say.")
    rows = reviewed(tmp_path, app, goal=False, ask_for_cause=True)
    assert app.requests
    assert fate(rows).attributed_to == "undetermined"
    assert fate(rows).drop_reason == "failed_state"


def test_with_the_whole_judgement_the_cause_of_codes_rejection_is_asked_for_too(
    tmp_path: Path,
) -> None:
    cause = {"evidence": "e", "quote": OWN_WORDS, "of": "user"}
    app = ScriptedApp(
        lambda body: json.dumps(cause) if asked_for(body) == "cause" else judgement(body)
    )
    rows = reviewed(tmp_path, app, goal=False, judge_failed=True, ask_for_cause=True)
    assert [asked_for(body) for body in app.requests] == ["cause", "judgement"]
    assert fate(rows).attributed_to == "user"
    assert fate(rows, status="below_minimum").attributed_to == "undetermined"
