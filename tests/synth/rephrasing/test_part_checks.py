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
from synth.rephrasing.writing.parts import PartCheck
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
        "differences": [] if faithful else found,
        "verdict": "faithful" if faithful else "unfaithful",
    }
    return ScriptedApp(lambda body: json.dumps(answer))


def checked(
    folder: Path,
    app: ScriptedApp,
    *rewrites: str,
    judged: JudgedParts = "flagged",
    drawn_share: float = 0.0,
) -> PartCheck:
    """What is found in the last one of rewrites that come one after the other."""
    config = RephraseConfig(
        judge=judged,
        offline=OfflineConfig(roles=("judge",)),
        fidelity=FidelityConfig(drawn_share=drawn_share),
    )

    async def run() -> PartCheck:
        async with model(app, folder, {"judge": RoleConfig()}) as llm:
            style = instruction("styles", "essay")
            check = PartChecker(config, llm, "item", f"{BEFORE}\n\n{SOURCE}", "knowledge", style)
            found = [
                await check(SOURCE, rewrite, step=f"part-000-{number}")
                for number, rewrite in enumerate(rewrites)
            ]
            return found[-1]

    return asyncio.run(run())


def test_what_nothing_speaks_for_is_judged_by_lot_alone(tmp_path: Path) -> None:
    app = judge(faithful=True)
    assert checked(tmp_path, app, FAITHFUL) == PartCheck()
    assert app.requests == []
    assert checked(tmp_path, app, FAITHFUL, drawn_share=1.0) == PartCheck(verdict="faithful")


def test_what_was_given_back_is_judged_again(tmp_path: Path) -> None:
    app = judge(faithful=False)
    assert checked(tmp_path, app, DENYING, FAITHFUL).verdict == "unfaithful"
    assert len(app.requests) == 2


def test_the_judge_overrules_a_flag(tmp_path: Path) -> None:
    app = judge(faithful=True)
    assert checked(tmp_path, app, SHORT) == PartCheck(verdict="faithful")
    asked = app.requests[0]["messages"][1]["content"]
    assert "Reasoned essay." in asked
    assert BEFORE in asked.split("## Part\n")[0]


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
