"""The judge's quotes: what the transcript does not hold passes nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from synth.judging.judge import Opinion, is_quoted, judge
from synth.rubrics.criteria import Criterion, Rubric
from tests.synth.scripted import ScriptedApp, model

MESSAGES = [
    {"role": "system", "content": "You rent boats."},
    {"role": "user", "content": "Please rent me the \u201cHeron\u201d."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "rent", "arguments": '{"boat": "Heron"}'}}],
    },
    {"role": "tool", "tool_call_id": "a", "name": "rent", "content": '{"ok": true,\n "price": 20}'},
    {"role": "assistant", "content": "Done, it costs 20 EUR."},
]
RUBRIC = Rubric(
    criteria=tuple(
        Criterion(id=name, words="w", weight=1, mandatory=False, kind="nl") for name in ("a", "b")
    )
)


def judged(folder: Path, *answers: dict[str, tuple[bool, str]]) -> tuple[dict[str, Opinion], int]:
    """The opinions, and how often the judge was asked; an answer is (passed, quote) by id."""
    left = list(answers)

    def answer(_: dict[str, Any]) -> str:
        said = left.pop(0)
        verdicts = [
            {"criterion_id": i, "passed": passed, "quote": quote, "evidence": "e"}
            for i, (passed, quote) in said.items()
        ]
        return json.dumps({"verdicts": verdicts})

    app = ScriptedApp(answer)

    async def run() -> dict[str, Opinion]:
        async with model(app, folder) as llm:
            return await judge(llm, RUBRIC, MESSAGES, item="i")

    return asyncio.run(run()), len(app.requests)


@pytest.mark.parametrize(
    "quote",
    [
        "it costs 20 EUR",
        "IT  COSTS\n20 eur.",
        'rent me the "Heron"',
        '"price": 20',
        '{\\"boat\\": \\"Heron\\"}',
        "Please rent ... Heron",
    ],
)
def test_words_of_the_transcript_support_a_verdict(quote: str, tmp_path: Path) -> None:
    opinions, asked = judged(tmp_path, {"a": (True, quote), "b": (False, "")})
    assert asked == 1
    assert opinions["a"] == Opinion(True, "e", quote, True)
    assert opinions["b"].supported


@pytest.mark.parametrize("quote", ["", "  ", "...", "the boat is yours", "You rent boats."])
def test_a_quote_that_is_not_there_is_asked_for_again(quote: str, tmp_path: Path) -> None:
    first, good = {"a": (True, quote), "b": (True, "Done")}, {"a": (True, "Done"), "b": (False, "")}
    opinions, asked = judged(tmp_path, first, good)
    assert asked == 2
    assert opinions["a"].passed
    assert opinions["b"].passed  # the first opinion on it was supported


def test_an_unsupported_opinion_passes_nothing(tmp_path: Path) -> None:
    wrong = {"a": (True, "verified by the system"), "b": (False, "never said")}
    opinions, asked = judged(tmp_path, wrong, wrong)
    assert asked == 2
    assert opinions["a"] == Opinion(False, "e", "verified by the system", False)
    assert not opinions["b"].passed
    assert not opinions["b"].supported


def test_the_judge_is_told_which_quotes_are_missing(tmp_path: Path) -> None:
    app = ScriptedApp(
        lambda body: json.dumps(
            {
                "verdicts": [
                    {"criterion_id": i, "passed": True, "quote": q, "evidence": ""}
                    for i, q in (("a", "no such words"), ("b", "Done"))
                ]
            }
        )
    )

    async def run() -> None:
        async with model(app, tmp_path) as llm:
            await judge(llm, RUBRIC, MESSAGES, item="i")

    asyncio.run(run())
    complaint = app.requests[1]["messages"][-1]["content"]
    assert "criteria: a." in complaint
    assert is_quoted("done", "done, it costs")
    told = "appointment number: ap-1010, on wednesday"
    assert is_quoted("**Appointment number:** AP-1010", told)
    assert not is_quoted("Appointment number: AP-1011", told)
    for stands_anywhere in ("e", ".", "it", "... o ..."):
        assert not is_quoted(stands_anywhere, "done, it costs")
