"""The review of one episode: what code leaves to the judge, and what its answers become."""

import asyncio
import json
from pathlib import Path
from typing import Any

from records.tables.schemas import Row
from synth.judging.decision import DecisionConfig, decide_rows, reason_of
from synth.judging.judge import Judgement, JudgeQuestions, Opinion, StatementOpinion
from synth.judging.review import ReviewedEpisode, code_rows, criteria_left, judge_rows, review
from synth.rubrics.built_in import Verdict
from synth.rubrics.criteria import Criterion, Rubric
from synth.rubrics.standing import STANDING, TRUTH
from synth.rubrics.statements.statements import ReplyStatement
from tests.synth.judging.answers import asked_about, judgement
from tests.synth.scripted import ROLES, ScriptedApp, model

STANDING_IDS = [criterion.id for criterion in STANDING if criterion.id != TRUTH]


def criterion(name: str, kind: str = "state", words: str = "w") -> Criterion:
    return Criterion(id=name, words=words, weight=2, mandatory=True, kind=kind)


def statement(number: int, outcome: Any, evidence: str = "") -> ReplyStatement:
    return ReplyStatement(f"s{number}", number, f"Sentence {number}.", outcome, evidence)


RUBRIC = Rubric(
    criteria=(criterion("goal"), criterion("told", "communicate"), criterion("own", "nl"))
)
MATCHED, WRONG = statement(1, "matched", "price: 20"), statement(2, "contradicted", "it is 20")
OPEN, ALSO_OPEN = statement(3, "open"), statement(4, "open")
GOOD = {"goal": Verdict(True, 1.0, "seen"), "told": Verdict(True, 1.0, "told")}


def by_code(verdicts: dict[str, Verdict], *statements: ReplyStatement) -> dict[str, Row]:
    rows = code_rows(RUBRIC, verdicts, statements, version="v")
    assert [row["criterion_id"] for row in rows] == [*verdicts, TRUTH]
    return {row["criterion_id"]: row for row in rows}


def test_code_passes_the_truth_of_what_matches_and_fails_it_by_what_does_not() -> None:
    assert by_code(GOOD, MATCHED)[TRUTH]["passed"] is True
    assert by_code(GOOD, MATCHED, OPEN)[TRUTH]["passed"] is None
    row = by_code(GOOD, MATCHED, WRONG, OPEN)[TRUTH]
    assert (row["passed"], row["quote"]) == (False, WRONG.text)
    assert row["details"] == [
        {"id": "s1", "message": 1, "says": MATCHED.text, "finding": "matched"}
        | {"evidence": "price: 20"},
        {"id": "s2", "message": 2, "says": WRONG.text, "finding": "contradicted"}
        | {"evidence": "it is 20"},
        {"id": "s3", "message": 3, "says": OPEN.text, "finding": "open"},
    ]


def test_the_judge_is_left_what_no_code_checks_and_what_code_leaves_open() -> None:
    rows = by_code(GOOD, OPEN).values()
    assert [c.id for c in criteria_left(RUBRIC, rows, STANDING)] == ["own", *STANDING_IDS]
    rows = by_code(GOOD | {"told": Verdict(None, 0.0, "unclear")}, OPEN).values()
    assert [c.id for c in criteria_left(RUBRIC, rows, STANDING)] == ["told", "own", *STANDING_IDS]


def test_a_criterion_of_the_rubric_takes_the_place_of_a_standing_one() -> None:
    own = Rubric(criteria=(criterion("manners", "nl", words="Is curt."), criterion("truth", "nl")))
    left = criteria_left(own, [], STANDING)
    assert sorted(c.id for c in left) == sorted({*STANDING_IDS, "truth"})
    assert next(c.words for c in left if c.id == "manners") == "Is curt."


def questions(*statements: ReplyStatement) -> JudgeQuestions:
    return JudgeQuestions([], [], [], [criterion("own", "nl")], statements)


def test_one_statement_that_does_not_hold_makes_the_reply_untrue() -> None:
    opinions = {
        "s3": StatementOpinion("follows", "so it is", "", True),
        "s4": StatementOpinion("not_shown", "nothing of it", "", True),
    }
    own = {"own": Opinion(True, "kind", "words", True)}
    rows = judge_rows(questions(OPEN, ALSO_OPEN), Judgement(own, opinions), version="v")
    truth, other = rows
    assert (truth["criterion_id"], truth["passed"], truth["score"]) == (TRUTH, False, 0.0)
    assert truth["quote"] == ALSO_OPEN.text
    assert "not shown: nothing of it" in truth["evidence"]
    assert [entry["finding"] for entry in truth["details"]] == ["follows", "not_shown"]
    assert (other["passed"], other["quote"], other["supported"]) == (True, "words", True)
    assert {row["checked_by"] for row in rows} == {"judge"}

    fine = opinions | {"s4": StatementOpinion("no_claim", "a wish", "", True)}
    truth = judge_rows(questions(OPEN, ALSO_OPEN), Judgement(own, fine), version="v")[0]
    assert (truth["passed"], truth["quote"], truth["supported"]) == (True, "", True)

    hollow = opinions | {"s4": StatementOpinion("shown", "e", "not there", False)}
    truth = judge_rows(questions(OPEN, ALSO_OPEN), Judgement(own, hollow), version="v")[0]
    assert (truth["passed"], truth["supported"]) == (False, False)


def test_a_statement_that_is_left_undecided_leaves_the_truth_so_unless_one_fails() -> None:
    own = {"own": Opinion(True, "kind", "words", True)}
    bare = StatementOpinion("contradicted", "", "", False)
    for other, passed, quote in (
        (StatementOpinion("no_claim", "", "", True), None, OPEN.text),
        (StatementOpinion("not_shown", "nothing of it", "", True), False, ALSO_OPEN.text),
    ):
        judged = Judgement(own, {"s3": bare, "s4": other})
        truth = judge_rows(questions(OPEN, ALSO_OPEN), judged, version="v")[0]
        assert (truth["passed"], truth["quote"], truth["supported"]) == (passed, quote, False)
        decision = decide_rows([truth], pass_threshold=0.0, config=DecisionConfig())
        assert reason_of(decision) == ("undecided" if passed is None else "failed_truth")


def test_of_no_statement_the_judge_gives_no_verdict_on_truth() -> None:
    own = {"own": Opinion(False, "e", "", True)}
    assert [
        r["criterion_id"] for r in judge_rows(questions(), Judgement(own, {}), version="v")
    ] == ["own"]


def test_a_failure_without_a_word_is_left_undecided() -> None:
    own = {"own": Opinion(None, "", "", False)}
    rows = judge_rows(questions(), Judgement(own, {}), version="v")
    assert [(row["passed"], row["score"], row["cause"]) for row in rows] == [(None, 0.0, None)]


MESSAGES = [
    {"role": "system", "content": "You rent boats."},
    {"role": "user", "content": "Please rent me a boat for an appointment."},
    {"role": "assistant", "content": "With pleasure, as ever. The sea is calm."},
]


def reviewed(
    folder: Path, verdicts: dict[str, Verdict], app: ScriptedApp, *, judge_failed: bool = False
) -> list[Row]:
    async def run() -> list[Row]:
        async with model(app, folder) as llm:
            return await review(
                llm,
                ReviewedEpisode(MESSAGES, [], [], RUBRIC),
                verdicts,
                item="i",
                judge_role=ROLES["judge"],
                version="v",
                judge_failed=judge_failed,
            )

    return asyncio.run(run())


def test_everything_that_is_open_is_one_request(tmp_path: Path) -> None:
    app = ScriptedApp(judgement)
    rows = reviewed(tmp_path, GOOD | {"told": Verdict(None, 0.0, "?")}, app)
    [body] = app.requests
    criteria, statements = asked_about(body)
    assert criteria == ["told", "own", *STANDING_IDS]
    assert statements == ["s1", "s2"]
    assert decide_rows(rows, pass_threshold=0.7, config=DecisionConfig()).accepted
    versions = {row["checked_by"]: row["checker_version"] for row in rows}
    assert versions["judge"].partition("@")[0] == body["model"]


def test_code_that_rejects_spares_the_request_unless_reasons_are_wanted(tmp_path: Path) -> None:
    app = ScriptedApp(judgement)
    bad = GOOD | {"goal": Verdict(False, 0.0, "not done")}
    rows = reviewed(tmp_path, bad, app)
    assert app.requests == []
    assert {row["checked_by"] for row in rows} == {"code"}
    also = reviewed(tmp_path, bad, app, judge_failed=True)
    assert len(app.requests) == 1
    assert json.loads(json.dumps(also[: len(rows)])) == json.loads(json.dumps(rows))
    for verdicts in (rows, also):
        decision = decide_rows(verdicts, pass_threshold=0.7, config=DecisionConfig())
        assert decision.failed is not None
        assert decision.failed["criterion_id"] == "goal"
