"""A part's checks: code first, then hints, then the judge, whose word stands over theirs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from synth.engine.job_config import OfflineConfig
from synth.llm.settings.config import RoleConfig
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.writing.config import JudgedParts, RephraseConfig
from synth.rephrasing.writing.instructions import instruction
from synth.rephrasing.writing.part_checks import PartChecker
from synth.rephrasing.writing.parts import PartCheck, WrittenPart
from tests.synth.scripted import ScriptedApp, model

SOURCE = (
    "Most of the pears ripen in September, unless the spring was late. The gardener of the house,"
    " Ruth Ambleside, picks them before they are soft, because wasps come to those that have"
    " been left."
)
BEFORE = "The wall of the house at Wexcombe faces south."
FAITHFUL = (
    "Pears are picked there while they are still hard; Ruth Ambleside, who keeps the garden of"
    " the house, says that wasps visit whatever stays on the branch. September is when most are"
    " ripe, with the exception of years in which spring came late."
)
SHORT = "Most of the pears ripen in September, unless the spring was late."
"""Flagged: half of the part is gone."""
DENYING = SOURCE.replace("picks them before", "never picks them before")


def judge(*, faithful: bool) -> ScriptedApp:
    found = [
        {"part": "picks them", "rewrite": "never picks them", "what": "the part says she does"}
    ]
    answer = {
        "number": 1,
        "differences": [] if faithful else found,
        "verdict": "faithful" if faithful else "unfaithful",
    }
    return ScriptedApp(lambda body: json.dumps({"parts": [answer]}))


def checks(
    folder: Path,
    app: ScriptedApp,
    *rewrites: str,
    judged: JudgedParts = "flagged",
    drawn_share: float = 0.0,
    before: str | None = None,
) -> list[PartCheck]:
    """Of parts that all say the same in the source; `before`: what each was first and is checked
    before."""
    config = RephraseConfig(judge=judged, offline=OfflineConfig(roles=("judge",)))
    document = "\n\n".join((BEFORE, *(SOURCE for _ in rewrites)))
    starts = [len(BEFORE) + 2 + n * (len(SOURCE) + 2) for n in range(len(rewrites))]

    async def run() -> list[PartCheck]:
        async with model(app, folder, {"judge": RoleConfig()}) as llm:
            check = PartChecker(
                config,
                llm,
                "item",
                document,
                "knowledge",
                instruction("styles", "essay"),
                FidelityConfig(drawn_share=drawn_share),
            )
            parts = [
                WrittenPart(number, start, SOURCE, rewrite)
                for number, (start, rewrite) in enumerate(zip(starts, rewrites, strict=True), 1)
            ]
            if before is not None:
                await check([part._replace(rewrite=before) for part in parts], step="part-first")
            return await check(parts, step="part-000")

    return asyncio.run(run())


def checked(folder: Path, app: ScriptedApp, rewrite: str, **given: Any) -> PartCheck:
    return checks(folder, app, rewrite, **given)[0]


def test_what_nothing_speaks_for_is_judged_by_lot_alone(tmp_path: Path) -> None:
    app = judge(faithful=True)
    assert checked(tmp_path, app, FAITHFUL) == PartCheck()
    assert app.requests == []
    assert checked(tmp_path, app, FAITHFUL, drawn_share=1.0) == PartCheck(verdict="faithful")


def test_what_was_given_back_is_judged_again(tmp_path: Path) -> None:
    app = judge(faithful=False)
    assert checked(tmp_path, app, FAITHFUL, before=DENYING).verdict == "unfaithful"
    assert len(app.requests) == 2


def test_the_judge_overrules_a_flag(tmp_path: Path) -> None:
    app = judge(faithful=True)
    assert checked(tmp_path, app, SHORT) == PartCheck(verdict="faithful")
    asked = app.requests[0]["messages"][1]["content"]
    assert "Reasoned essay." in asked
    assert BEFORE in asked.split("## Part 1\n")[0]


def test_an_unfaithful_part_goes_back_with_the_words_that_differ(tmp_path: Path) -> None:
    found = checked(tmp_path, judge(faithful=False), DENYING)
    assert found.fault is not None
    assert (found.fault.reason, found.fault.is_of_fact) == ("unfaithful", True)
    assert "never picks them" in found.fault.words


def test_without_a_judge_a_flag_stays(tmp_path: Path) -> None:
    app = judge(faithful=False)
    found = checked(tmp_path, app, SHORT, judged="none")
    assert found == PartCheck(flags=("too_short",))
    assert app.requests == []


@pytest.mark.parametrize("judged", ["flagged", "all"])
def test_what_is_exact_and_wrong_needs_no_judge(tmp_path: Path, judged: JudgedParts) -> None:
    app = judge(faithful=True)
    found: Any = checked(tmp_path, app, FAITHFUL.replace("September", "October"), judged=judged)
    assert found.fault.reason == "date_changed"
    assert app.requests == []


def test_all_parts_are_judged_where_that_is_asked_for(tmp_path: Path) -> None:
    app = judge(faithful=True)
    assert checked(tmp_path, app, SOURCE, judged="all").verdict == "faithful"
    assert len(app.requests) == 1


def test_flagged_parts_are_judged_in_one_request(tmp_path: Path) -> None:
    """The faithful part between them is not shown, and each gets its own verdict."""
    found = {"part": "wasps come", "rewrite": "", "what": "the wasps are gone"}
    answer = [
        {"number": 3, "differences": [found], "verdict": "unfaithful"},
        {"number": 1, "differences": [], "verdict": "faithful"},
    ]
    app = ScriptedApp(lambda body: json.dumps({"parts": answer}))
    wrong = FAITHFUL.replace("September", "October")
    made = checks(tmp_path, app, SHORT, SOURCE, SHORT, wrong)
    assert [check.verdict for check in made] == ["faithful", None, "unfaithful", None]
    assert [check.fault.reason if check.fault else None for check in made] == [
        *(None, None),
        *("unfaithful", "date_changed"),
    ]
    [request] = app.requests
    asked = request["messages"][1]["content"]
    assert asked.count("## Part ") == asked.count("## Rewrite ") == 2
    assert asked.endswith("Judge parts 1, 3.")
