"""Whom a failure goes back to: by the end of the episode, its calls, the simulator, the judge."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import Row
from synth.curation.candidates import SPOILED, CurationCandidate, candidate_of
from synth.curation.deciding import CurationRules, decide_all
from synth.episode.endings import FILTERED, OUTSIDE
from synth.judging.attribution import DROP_REASONS
from synth.judging.review import ReviewedEpisode, review
from synth.rubrics.criteria import Rubric
from tests.synth.judging.test_panel import judgement
from tests.synth.scripted import ROLES, ScriptedApp, model

RUBRIC = {
    "pass_threshold": 0.7,
    "criteria": [
        {"id": i, "kind": kind, "words": "w", "weight": 1.0, "mandatory": True, "check": check}
        for i, kind, check in (
            ("goal", "state", {"changes": []}),
            ("not_twice", "call", {"tool": "pay", "must": "not_occur"}),
            ("told", "communicate", {"values": [42]}),
            ("closing", "format", {}),
            ("tone", "nl", None),
        )
    ],
}
TASK = {"task_id": "task", "domain_id": "d", "initial_state": {}, "rubric": RUBRIC}
MESSAGES = [
    {"role": "system", "content": "Serve."},
    {"role": "user", "content": "I paid 42 euro. No, I paid 17 euro."},
    {"role": "assistant", "content": "It is done."},
]
ENDPOINT = "7 of 7 tries failed, the last with status 503: overloaded"


def trajectory(reason: str = "user_done", error: str | None = None) -> Row:
    return {
        "trajectory_id": "t",
        "task_id": "task",
        "termination_reason": reason,
        "split": "train",
        "messages": MESSAGES,
        "error": error,
    }


def call(index: int, name: str = "look", **values: Any) -> Row:
    return {
        "trajectory_id": "t",
        "call_index": index,
        "tool_call_id": f"call_{index}",
        "name": name,
        "executed_by": "state_machine",
        "observation": "{}",
        "is_error": "error_code" in values,
        "error_code": None,
        "injected_outcome": None,
        "recovered": None,
    } | values


def simulated(index: int, **wrong: bool | None) -> Row:
    right = {"state_match": True, "error_match": True, "observation_match": True}
    return {"call_index": index} | right | wrong


def caused(of: str, *, supported: bool = True) -> Row:
    return {"of": of, "evidence": "e", "quote": "q", "supported": supported}


def verdicts(*failed: str, cause: Row | None = None) -> list[Row]:
    return [
        {
            "trajectory_id": "t",
            "criterion_id": c["id"],
            "kind": c["kind"],
            "checked_by": "judge" if c["kind"] == "nl" else "code",
            "mandatory": True,
            "weight": 1.0,
            "passed": c["id"] not in failed,
            "score": float(c["id"] not in failed),
            "cause": (cause or caused("none", supported=False)) if c["id"] in failed else None,
        }
        for c in RUBRIC["criteria"]
    ]


def fate(
    *failed: str,
    ended: Row | None = None,
    calls: tuple[Row, ...] = (),
    simulations: tuple[Row, ...] = (),
    cause: Row | None = None,
    **given: Any,
) -> CurationCandidate:
    found = candidate_of(
        ended or trajectory(),
        calls,
        verdicts(*failed, cause=cause),
        TASK,
        simulations=simulations,
        **given,
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reason", "error", "party"),
    [
        ("user_error", "user turn 3 still wrong", "user"),
        ("infra_error", ENDPOINT, "endpoint"),
        ("infra_error", "refused 240 times, the last with status 429", "endpoint"),
        ("infra_error", "the sandbox ended", "environment"),
        ("infra_error", "3 starts failed, the last one: no memory", "environment"),
        ("infra_error", "simulation_failed: no usable answer to call 4", "simulator"),
        ("format_error", None, "agent"),
        ("max_turns", None, "agent"),
        ("token_budget", None, "agent"),
    ],
)
def test_an_end_that_is_no_end_says_whose_it_is(reason: str, error: str | None, party: str) -> None:
    found = fate("goal", ended=trajectory(reason, error))
    assert (found.attributed_to, found.drop_reason) == (party, reason)


def test_an_answer_that_the_server_filtered_is_the_endpoints_only_where_it_is_rejected() -> None:
    found = fate("closing", ended=trajectory("refused"))
    assert (found.attributed_to, found.drop_reason) == ("endpoint", "endpoint_failed")
    assert fate(ended=trajectory("refused")).attributed_to is None


def test_a_refusal_in_the_models_own_words_is_the_agents() -> None:
    for last, party in (
        ({"content": None, "refusal": "I cannot help with that."}, "agent"),
        ({"content": "", "refusal": FILTERED}, "endpoint"),
        ({"content": "Well, you", "refusal": "Well, you"}, "endpoint"),
    ):
        said = [*MESSAGES[:2], {"role": "assistant"} | last]
        ended = trajectory("refused") | {"messages": said}
        assert fate("closing", ended=ended).attributed_to == party


@pytest.mark.parametrize("reason", ["max_turns", "token_budget", "format_error"])
def test_an_end_at_a_limit_is_whose_tools_kept_the_agent_from_another(reason: str) -> None:
    broken = call(1, error_code="server_ended", recovered=False)
    for calls, wrong, party in (
        ((call(0), broken), {}, "environment"),
        ((call(0, error_code="internal"), call(1)), {}, "agent"),  # it went on
        ((call(0), call(1, error_code="not_found")), {}, "agent"),
        ((call(0), broken), {"state_match": False}, "simulator"),
        ((call(0),), {"observation_match": False}, "agent"),
    ):
        found = fate(ended=trajectory(reason), calls=calls, simulations=(simulated(0, **wrong),))
        assert (found.attributed_to, found.drop_reason) == (party, reason)


@pytest.mark.parametrize(
    ("failed", "untold"),
    [("goal", True), ("not_twice", True), ("told", True), ("closing", False), ("tone", False)],
)
def test_what_only_a_judge_could_have_told_is_undetermined_where_none_did(
    failed: str, untold: bool
) -> None:
    told, untold_rows = verdicts(failed), [row | {"cause": None} for row in verdicts(failed)]
    for rows, party in ((told, "agent"), (untold_rows, "undetermined" if untold else "agent")):
        found = candidate_of(trajectory(), (), rows, TASK)
        assert found is not None
        assert (found.attributed_to, (found.drop_reason or "")[:7]) == (party, "failed_")


def test_what_the_judge_was_asked_and_left_open_is_nobodys_for_sure() -> None:
    rows = [r | {"passed": None} if r["criterion_id"] == "tone" else r for r in verdicts("tone")]
    found = candidate_of(trajectory(), (), rows, TASK)
    assert found is not None
    assert (found.drop_reason, found.attributed_to) == ("undecided", "undetermined")
    assert found.failed_criterion == "tone"
    found = candidate_of(trajectory("max_turns"), (), rows, TASK)
    assert found is not None
    assert (found.drop_reason, found.attributed_to) == ("max_turns", "agent")
    found = candidate_of(trajectory(), (), rows, TASK, "below_minimum")
    assert found is not None
    assert (found.drop_reason, found.decided_by) == (None, "code")


@pytest.mark.parametrize(
    ("name", "party"),
    [(name, "user") for name in ("truth", "answers", "denial", "rules", "tone")]
    + [(name, "agent") for name in ("manners", "language", "harm", "after_refusal")],
)
def test_no_cause_excuses_what_only_the_agent_can_do(name: str, party: str) -> None:
    own = verdicts("tone", cause=caused("user"))
    failing = own[-1] | {"criterion_id": name}
    for rows in ([*own[:-1], failing], [*own, failing]):
        found = candidate_of(trajectory(), (), rows, TASK)
        assert found is not None
        assert found.attributed_to == party
    assert fate("closing", "goal", cause=caused("user")).attributed_to == "agent"


def test_a_user_that_left_its_part_leaves_it_open_whose_failure_it_is() -> None:
    [*own, tone] = verdicts("goal")
    left = tone | {"criterion_id": "user_part", "passed": False, "score": 0.0}
    for rows, party in (([*own, tone], "agent"), ([*own, tone, left], "undetermined")):
        found = candidate_of(trajectory(), (), rows, TASK)
        assert found is not None
        assert found.attributed_to == party


def test_what_nobody_else_caused_is_the_agents() -> None:
    found = fate("goal", calls=(call(0),), simulations=(simulated(0),))
    assert (found.attributed_to, found.drop_reason) == ("agent", "failed_state")


@pytest.mark.parametrize(
    ("failed", "wrong", "observation", "party"),
    [
        ("goal", {"state_match": False}, "{}", "simulator"),
        ("goal", {"error_match": False}, "{}", "simulator"),
        ("goal", {"observation_match": False}, "{}", "agent"),  # the state is the interpreter's
        ("goal", {"state_match": None}, "{}", "agent"),  # nobody measured it
        ("told", {"observation_match": False}, '{"price": 17}', "simulator"),
        ("told", {"observation_match": False}, '{"price": 42}', "agent"),  # it was told
        ("told", {"state_match": False}, '{"price": 42}', "simulator"),
        ("closing", {"state_match": False}, "{}", "agent"),
        ("tone", {"state_match": False}, "{}", "agent"),
    ],
)
def test_a_false_answer_of_the_simulator_is_its_own_where_the_criterion_hangs_on_it(
    failed: str, wrong: dict[str, bool | None], observation: str, party: str
) -> None:
    made = (call(0, executed_by="llm", observation=observation), call(1))
    found = fate(failed, calls=made, simulations=(simulated(0, **wrong),))
    assert found.attributed_to == party
    assert (found.drop_reason == "simulator_wrong") == (party == "simulator")


def test_what_the_simulator_does_after_a_forbidden_call_excuses_nothing() -> None:
    made = (call(0), call(1, "pay"), call(2))
    for wrong_at, party in ((0, "simulator"), (1, "agent"), (2, "agent")):
        wrong = (simulated(wrong_at, state_match=False),)
        assert fate("not_twice", calls=made, simulations=wrong).attributed_to == party


def test_a_tool_that_breaks_is_the_environments_unless_the_agent_got_over_it() -> None:
    for code in ("internal", "server_ended"):
        made = (call(0, error_code=code, recovered=False),)
        assert fate("goal", calls=made).attributed_to == "environment"
        assert fate("tone", calls=made).attributed_to == "agent"
    assert fate("goal", calls=(call(0, error_code="internal", recovered=True),)).attributed_to == (
        "agent"
    )
    assert fate(
        "goal", calls=(call(0, error_code="not_found", recovered=False),)
    ).attributed_to == ("agent")


@pytest.mark.parametrize(
    ("of", "party", "reason"),
    [
        ("user", "user", "user_wrong"),
        ("task", "task", "task_unclear"),
        ("tools", "environment", "environment_failed"),
        ("assistant", "agent", "failed_tone"),
        ("none", "agent", "failed_tone"),
    ],
)
def test_the_judge_names_the_cause_where_its_quote_stands(of: str, party: str, reason: str) -> None:
    found = fate("tone", cause=caused(of))
    assert (found.attributed_to, found.drop_reason) == (party, reason)
    unsupported = fate("tone", cause=caused(of, supported=False))
    assert (unsupported.attributed_to, unsupported.drop_reason) == ("agent", "failed_tone")


def test_a_false_result_of_a_tool_that_a_model_played_is_the_simulators() -> None:
    found = fate("tone", cause=caused("tools"), calls=(call(0, executed_by="llm"),))
    assert (found.attributed_to, found.drop_reason) == ("simulator", "simulator_wrong")


def test_a_judge_whose_word_does_not_count_names_no_cause() -> None:
    unheard: list[dict[str, Any]] = [{"status": "below_minimum"}, {"judge_may_decide": False}]
    for why in unheard:
        found = fate("goal", "tone", cause=caused("user"), **why)
        assert (found.attributed_to, found.decided_by) == ("undetermined", "code")
        assert found.drop_reason == "failed_state"
    assert fate("goal", "tone", cause=caused("user")).attributed_to == "user"


def test_a_judge_that_may_not_decide_rejects_nothing() -> None:
    assert fate("tone").drop_reason == "failed_tone"
    found = fate("tone", judge_may_decide=False, self_judged=True)
    assert (found.drop_reason, found.decided_by) == (None, "code")
    assert not found.self_judged  # its word changes nothing
    assert fate("tone", self_judged=True).self_judged


@given(
    st.sets(st.sampled_from([c["id"] for c in RUBRIC["criteria"]])),
    st.sampled_from(["user_done", "agent_done", "refused", *SPOILED]),
    st.sampled_from([None, *map(caused, ("user", "task", "tools", "none"))]),
    st.booleans(),
)
def test_every_rejected_row_and_no_accepted_one_has_somebody(
    failed: set[str], reason: str, cause: Row | None, state_match: bool
) -> None:
    candidate = fate(
        *failed,
        ended=trajectory(reason, ENDPOINT if reason in OUTSIDE else None),
        calls=(call(0),),
        simulations=(simulated(0, state_match=state_match),),
        cause=cause,
    )
    (row,) = decide_all([candidate], CurationRules("g"))
    assert (row["attributed_to"] is None) == row["accepted"]
    if row["drop_reason"] in DROP_REASONS.values():
        assert row["attributed_to"] != "agent"
    elif row["drop_reason"] not in (None, *SPOILED):
        assert row["attributed_to"] == "agent"


def reviewed(folder: Path, cause: dict[str, str]) -> list[Row]:
    """The judge fails `tone` and names the cause."""

    def answer(body: dict[str, Any]) -> str:
        return json.dumps(json.loads(judgement(body, tone="rude")) | {"cause": cause})

    tone = [c for c in RUBRIC["criteria"] if c["id"] == "tone"]
    episode = ReviewedEpisode(MESSAGES, [], [], Rubric.model_validate({"criteria": tone}))

    async def run() -> list[Row]:
        text = ScriptedApp(lambda body: answer(body).replace("which day", "it is done"))
        async with model(text, folder) as llm:
            return await review(llm, episode, {}, item="i", judge_role=ROLES["judge"], version="1")

    return asyncio.run(run())


@pytest.mark.parametrize(("quote", "supported"), [("I paid 17 euro", True), ("I am rich", False)])
def test_the_cause_stands_with_the_failed_verdicts(
    quote: str, supported: bool, tmp_path: Path
) -> None:
    said = {"evidence": "two sums", "quote": quote, "of": "user"}
    rows = reviewed(tmp_path, said)
    causes = {row["criterion_id"]: row["cause"] for row in rows if row["cause"]}
    assert causes == {"tone": said | {"supported": supported}}
    found = candidate_of(trajectory(), [], rows, TASK)
    assert found is not None
    assert found.attributed_to == ("user" if supported else "agent")
