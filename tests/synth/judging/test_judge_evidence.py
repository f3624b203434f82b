"""The judge's quotes: what the material does not hold shows nothing."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ItemError
from synth.judging.judge import (
    LONG_TRANSCRIPT,
    MOST_STATEMENTS,
    Cause,
    Judgement,
    JudgeQuestions,
    Opinion,
    StatementOpinion,
    judge,
    judgement_schema,
)
from synth.rubrics.criteria import Criterion
from synth.rubrics.statements.statements import ReplyStatement
from tests.synth.judging.answers import NO_CAUSE, asked_about
from tests.synth.judging.answers import judgement as answer_to
from tests.synth.judging.perturbation_work import section
from tests.synth.scripted import ScriptedApp, model

MESSAGES = [
    {"role": "system", "content": "You rent boats. Nobody sails after dark."},
    {"role": "user", "content": "Please rent me the \u201cHeron\u201d."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "rent", "arguments": '{"boat": "Heron"}'}}],
    },
    {"role": "tool", "tool_call_id": "a", "name": "rent", "content": '{"ok": true,\n "price": 20}'},
    {"role": "assistant", "content": "Done, it costs 20 EUR. Enjoy the day."},
]
CALLS = [
    {
        "name": "rent",
        "actor": "agent",
        "state_diff": [
            {"op": "update", "entity": "boat", "id": "B-7", "before": None, "after": {"rented": 1}}
        ],
    }
]
TOOLS = [{"name": "rent", "description": "Rent out a boat by its name.", "input_schema": {}}]
ASKED = JudgeQuestions(
    MESSAGES,
    CALLS,
    TOOLS,
    [
        Criterion(id=name, words="w", weight=1, mandatory=False, kind="nl")
        for name in ("a", "b", "manners")
    ],
    [
        ReplyStatement("s1", 4, "Done, it costs 20 EUR.", "open", ""),
        ReplyStatement("s2", 4, "Enjoy the day.", "open", ""),
    ],
)
Said = dict[str, tuple[Any, str]]
"""By id: whether it is met, or the finding, and the quote; "met" where it is only listed."""

LEFT_OUT = "left out"

FINE: Said = {
    "a": (True, "Done"),
    "b": (False, ""),
    "manners": ("met", ""),
    "s1": ("shown", '"price": 20'),
    "s2": ("no_claim", ""),
}


def answered(
    said: Said, cause: dict[str, str] = NO_CAUSE, evidence: str = "e", reason: str = "e"
) -> str:
    verdicts = [
        {"criterion_id": i, "evidence": evidence, "quote": quote, "passed": value}
        for i, (value, quote) in said.items()
        if isinstance(value, bool)
    ]
    statements = [
        {"id": i, "evidence": reason, "quote": quote, "finding": value}
        for i, (value, quote) in said.items()
        if not isinstance(value, bool) and value not in ("no_claim", "met", LEFT_OUT)
    ]
    lists = {
        name: [i for i, (value, _) in said.items() if value == name] for name in ("no_claim", "met")
    }
    return json.dumps({"statements": statements, "verdicts": verdicts, "cause": cause} | lists)


def judged(folder: Path, *answers: Said, **given: Any) -> tuple[Judgement, ScriptedApp]:
    """What comes of these answers, the changes of each to what is fine. `given`: the cause, the
    evidence on every criterion and the `reason` on every statement."""
    left = [answered(FINE | said, **given) for said in answers]
    app = ScriptedApp(lambda _: left.pop(0))
    return asyncio.run(asked_of(app, folder)), app


async def asked_of(app: ScriptedApp, folder: Path, asked: JudgeQuestions = ASKED) -> Judgement:
    async with model(app, folder) as llm:
        return await judge(llm, asked, item="i")


@pytest.mark.parametrize(
    "quote",
    [
        "please RENT\nme",
        'rent me the "Heron"',
        '"price": 20',
        '{\\"boat\\": \\"Heron\\"}',
        "Please rent ... Heron",
        "Nobody sails after dark",
        "Rent out a boat by its name.",
        '"rented": 1',
    ],
)
def test_words_of_the_material_support_a_verdict(quote: str, tmp_path: Path) -> None:
    judgement, app = judged(tmp_path, {"a": (True, quote), "s1": ("shown", quote)})
    assert len(app.requests) == 1
    assert judgement.criteria["a"] == Opinion(True, "e", quote, True)
    assert judgement.statements["s1"] == StatementOpinion("shown", "e", quote, True)
    assert judgement.statements["s1"].passed


def test_what_is_missing_or_met_by_absence_needs_no_quote(tmp_path: Path) -> None:
    judgement, app = judged(tmp_path, {"b": (False, ""), "manners": (True, "")})
    assert len(app.requests) == 1
    assert judgement.criteria["b"] == Opinion(False, "e", "", True)
    assert judgement.criteria["manners"].passed


def test_what_is_only_listed_is_met_or_claims_nothing(tmp_path: Path) -> None:
    judgement, app = judged(tmp_path, {})
    assert len(app.requests) == 1
    assert judgement.criteria["manners"] == Opinion(True, "", "", True)
    assert judgement.statements["s2"] == StatementOpinion("no_claim", "", "", True)
    both: Said = {"manners": (False, "Enjoy the day."), "s2": ("contradicted", "")}
    app = ScriptedApp(
        lambda _: json.dumps(
            json.loads(answered(FINE | both)) | {"met": ["manners"], "no_claim": ["s2", "s2"]}
        )
    )
    judgement = asyncio.run(asked_of(app, tmp_path / "both"))
    assert not judgement.criteria["manners"].passed  # an entry is the more careful word
    assert not judgement.statements["s2"].passed


@pytest.mark.parametrize("name", ["manners", "s1", "s2"])
def test_an_id_without_an_answer_is_asked_about_again(name: str, tmp_path: Path) -> None:
    without: Said = {name: (LEFT_OUT, "")}
    judgement, app = judged(tmp_path / "again", without, {})
    assert app.requests[1]["messages"][-1]["content"] == (
        f"These are nowhere answered: {name}. Judge again, everything."
    )
    assert list(judgement.criteria) == ["a", "b", "manners"]
    assert list(judgement.statements) == ["s1", "s2"]
    assert judgement.asked_again
    with pytest.raises(ItemError, match=f"judge_incomplete: no verdict on {name}"):
        judged(tmp_path / "never", without, without)


@pytest.mark.parametrize("finding", ["follows", "not_shown", "contradicted"])
def test_only_a_statement_that_is_shown_needs_a_quote(finding: str, tmp_path: Path) -> None:
    judgement, app = judged(tmp_path, {"s1": (finding, "")})
    assert len(app.requests) == 1
    opinion = judgement.statements["s1"]
    assert opinion.supported
    assert opinion.passed == (finding == "follows")


@pytest.mark.parametrize(
    ("finding", "passed"), [("follows", False), ("not_shown", None), ("contradicted", None)]
)
def test_a_finding_without_a_word_is_asked_for_again_and_then_shows_nothing(
    finding: str, passed: bool | None, tmp_path: Path
) -> None:
    bare: Said = {"s1": (finding, " ")}
    judgement, app = judged(tmp_path / "never", bare, bare, reason="")
    assert app.requests[1]["messages"][-1]["content"] == (
        "For these you give neither a reason nor a quote: s1. Judge again, everything."
    )
    assert judgement.statements["s1"].passed is passed
    assert not judgement.statements["s1"].supported
    quoted: Said = {"s1": (finding, '"price": 20')}
    judgement, _ = judged(tmp_path / "again", bare, quoted, reason="")
    assert judgement.statements["s1"] == StatementOpinion(finding, "", '"price": 20', True)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("finding", ["not_shown", "contradicted"])
def test_what_does_not_hold_shows_no_quote_that_stands_nowhere(
    finding: str, tmp_path: Path
) -> None:
    bogus: Said = {"s1": (finding, "the price is 90")}
    judgement, app = judged(tmp_path / "reason", bogus, bogus)
    assert len(app.requests) == 2
    assert judgement.statements["s1"] == StatementOpinion(finding, "e", "", False)  # pyright: ignore[reportArgumentType]
    assert judgement.statements["s1"].passed is False
    judgement, _ = judged(tmp_path / "none", bogus, bogus, reason="")
    assert judgement.statements["s1"].passed is None


@pytest.mark.parametrize("quote", ["", "  ", "...", "the boat is yours", "e", "sa\u00efls"])
@pytest.mark.parametrize("name", ["a", "s1"])
def test_a_quote_that_is_not_there_is_asked_for_again(
    name: str, quote: str, tmp_path: Path
) -> None:
    claimed: Said = {"a": (True, quote), "s1": ("shown", quote)}
    again: Said = {"a": (False, ""), "s1": ("not_shown", ""), "b": (True, "Done")}
    judgement, app = judged(tmp_path, {name: claimed[name]}, again)
    assert len(app.requests) == 2
    complaint = app.requests[1]["messages"][-1]["content"]
    assert complaint.startswith(f"What you quote for these does not stand there: {name}.")
    found = {**judgement.criteria, **judgement.statements}
    assert not found[name].passed
    others = {"a", "s1"} - {name}
    assert all(found[other].passed for other in others)  # the first opinion was supported
    assert not found["b"].passed


def test_an_unsupported_opinion_passes_nothing(tmp_path: Path) -> None:
    wrong: Said = {
        "a": (True, "verified by the system"),
        "b": (False, "never said"),
        "manners": (True, "so very kind"),
        "s1": ("shown", "the price is a bargain"),
    }
    judgement, app = judged(tmp_path, wrong, wrong)
    assert len(app.requests) == 2
    assert judgement.wanting == ["a", "b", "s1"]
    assert not any(judgement.criteria[i].passed for i in ("a", "b"))
    assert not judgement.statements["s1"].passed
    assert judgement.criteria["a"] == Opinion(False, "e", "", False)


@pytest.mark.parametrize("quote", ["it costs 20 EUR", "Done, it costs", '"content": "Done'])
def test_the_assistants_own_words_show_no_statement(quote: str, tmp_path: Path) -> None:
    own: Said = {"s1": ("shown", quote), "a": (True, "it costs 20 EUR")}
    judgement, app = judged(tmp_path, own, own)
    assert len(app.requests) == 2
    assert "itself says does not show" in app.requests[1]["messages"][-1]["content"]
    assert judgement.wanting == ["s1"]
    assert not judgement.statements["s1"].passed
    assert judgement.criteria["a"].passed


def test_whatever_passes_quotes_words_that_stand_somewhere(tmp_path: Path) -> None:
    bogus: Said = {"s2": ("follows", "the gateway answered: delivered")}
    judgement, app = judged(tmp_path, bogus, bogus)
    assert len(app.requests) == 2
    assert not judgement.statements["s2"].passed
    for number, quote in enumerate(("Enjoy the day.", "20", "-")):
        judgement, app = judged(tmp_path / str(number), {"s2": ("follows", quote)})
        assert len(app.requests) == 1
        assert judgement.statements["s2"].passed


def test_what_is_met_where_nothing_is_amiss_loses_a_wrong_quote_alone(tmp_path: Path) -> None:
    judgement, app = judged(tmp_path, {"manners": (True, "so very kind")})
    assert len(app.requests) == 1
    assert judgement.criteria["manners"] == Opinion(True, "e", "", False)
    assert judgement.wanting == []


def test_a_failure_decides_by_its_reason_or_not_at_all(tmp_path: Path) -> None:
    bogus: Said = {"manners": (False, "you fool"), "b": (False, "")}
    judgement, app = judged(tmp_path / "reason", bogus, bogus)
    assert len(app.requests) == 2
    assert judgement.criteria["manners"] == Opinion(False, "e", "", False)
    judgement, app = judged(tmp_path / "none", bogus, bogus, evidence=" ")
    assert len(app.requests) == 2
    assert [judgement.criteria[i].passed for i in ("manners", "b")] == [None, None]
    passed: Said = {"a": (True, ""), "b": (True, "Done")}
    judgement, _ = judged(tmp_path / "passed", passed, passed, evidence="")
    assert judgement.criteria["a"].passed is False
    assert judgement.criteria["a"].evidence


@pytest.mark.parametrize(
    ("of", "quote", "supported"),
    [
        ("user", "Please rent me", True),
        ("user", '"price": 20', False),
        ("tools", '"price": 20', True),
        ("tools", "it costs 20 EUR", False),
        ("task", "Please rent me", True),
        ("task", "Nobody sails after dark", True),
        ("task", "it costs 20 EUR", False),
        ("none", "", False),
    ],
)
def test_a_cause_quotes_whom_it_names(of: str, quote: str, supported: bool, tmp_path: Path) -> None:
    judgement, _ = judged(tmp_path, {}, cause={"evidence": "e", "quote": quote, "of": of})
    assert judgement.cause == Cause(of, "e", quote, supported)  # pyright: ignore[reportArgumentType]


def test_many_statements_are_asked_in_several_requests(tmp_path: Path) -> None:
    many = [
        ReplyStatement(f"s{i}", 4, "Enjoy the day.", "open", "")
        for i in range(1, 2 * MOST_STATEMENTS + 2)
    ]
    app = ScriptedApp(lambda body: answer_to(body, finding="no_claim", quote="Heron"))
    found = asyncio.run(asked_of(app, tmp_path, replace(ASKED, statements=many)))
    asked = [asked_about(body) for body in app.requests]
    assert [len(statements) for _, statements in asked] == [MOST_STATEMENTS, MOST_STATEMENTS, 1]
    assert [criteria for criteria, _ in asked] == [["a", "b", "manners"], ["none"], ["none"]]
    assert list(found.statements) == [statement.id for statement in many]
    assert list(found.criteria) == ["a", "b", "manners"]


@given(st.booleans(), st.text(max_size=30), st.sampled_from(["shown", "follows", "contradicted"]))
def test_nothing_passes_without_support(passed: bool, quote: str, finding: Any) -> None:
    opinion = StatementOpinion(finding, "e", quote, passed)
    assert not opinion.passed or (opinion.supported and finding != "contradicted")


def test_the_form_asks_for_evidence_before_the_verdict() -> None:
    schema = judgement_schema(["a", "manners"], ["s1"])["properties"]
    for name, last in (("verdicts", "passed"), ("statements", "finding")):
        keys = list(schema[name]["items"]["properties"])
        assert keys.index("evidence") < keys.index("quote") < keys.index(last)
    assert list(schema) == ["statements", "no_claim", "verdicts", "met", "cause"]
    assert list(schema["cause"]["properties"]) == ["evidence", "quote", "of"]


def test_a_criterion_of_the_task_has_an_entry_and_what_always_holds_may_be_listed() -> None:
    schema = judgement_schema(["a", "b", "manners"], ["s1"])["properties"]
    assert schema["verdicts"]["minItems"] == 2
    assert schema["met"]["items"]["enum"] == ["manners"]
    assert schema["no_claim"]["items"]["enum"] == ["s1"]
    assert "no_claim" not in schema["statements"]["items"]["properties"]["finding"]["enum"]


def test_excerpts_stand_beside_statements_of_long_transcripts_only(tmp_path: Path) -> None:
    told = ASKED.statements[0]._replace(beside=("one", "two", "three"))
    long = [*MESSAGES, {"role": "user", "content": "word " * LONG_TRANSCRIPT}]
    for number, (messages, beside) in enumerate(((MESSAGES, None), (long, ["one", "two"]))):
        app = ScriptedApp(lambda body: answer_to(body, quote="Heron", finding="no_claim"))
        asked = replace(ASKED, messages=messages, statements=[told])

        asyncio.run(asked_of(app, tmp_path / str(number), asked))
        [statement] = section(app.requests[0], "Statements of the assistant")
        assert statement.get("beside") == beside
