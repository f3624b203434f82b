"""Answers written in earnest to the shipped prompts, for parts of real texts: they pass the checks,
what is confirmed is tried, and a judge that quotes what was changed names it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rewrites import texts_of
from synth.engine.stages import Item, ItemResult
from synth.rephrasing.calibration.kinds import BY_NAME, PARAPHRASE
from synth.rephrasing.calibration.trial import TrialPart, try_judge
from synth.rephrasing.writing.instructions import form_of
from tests.synth.rephrasing.calibration.trial_work import PLAYED, Body, blocks, kind_of, one_part
from tests.synth.scripted import ScriptedApp, model

RECORDED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded.json").read_text())
PARTS = {
    (part.document, part.part, part.style): part
    for part in texts_of("tuning")
    if part.change is None
}
JUDGED = [one for one in RECORDED if "judging" in one]
UNASKED = {"differences": [], "verdict": "faithful"}


def part_of(one: dict[str, Any]) -> TrialPart:
    found = PARTS[one["document"], one["part"], one["style"]]
    form = form_of(found.kind, found.style)
    return TrialPart(
        found.document,
        found.part,
        found.source,
        found.rewrite,
        "",
        form,
        found.source,
        "en",
        "train",
    )


def played(one: dict[str, Any], folder: Path) -> tuple[ItemResult, list[Body]]:
    """The item made with the recorded answers. `agrees` of a reading says which sentence, here
    translated into the letter under which it was shown."""

    def answer(body: Body) -> str:
        match kind_of(body):
            case "judge":
                return one_part(one.get("judging", UNASKED))
            case "reading":
                read = one["reading"]
                first_is_old = blocks(body)[1] == one["writing"]["old"].strip()
                letters = {"original": "ba"[first_is_old], "edited": "ab"[first_is_old]}
                return json.dumps(read | {"agrees": letters.get(read["agrees"], read["agrees"])})
            case _:
                return json.dumps(one["writing"])

    async def run() -> ItemResult:
        async with model(app, folder, PLAYED) as llm:
            item = Item("i", {"sort": one["sort"], "parts": [[one["document"], one["part"]]]})
            place = {"trial_id": "t", "writer_version": "w"}
            return await try_judge(item, llm, [part_of(one)], place=place, judge="m")

    app = ScriptedApp(answer)
    return asyncio.run(run()), app.requests


def outcome_of(one: dict[str, Any]) -> str:
    if not one["writing"]["has_place"]:
        return "no_place"
    wanted = "both" if one["sort"] == PARAPHRASE else "original"
    return "tried" if one["reading"]["agrees"] == wanted else "not_confirmed"


def test_they_are_of_ten_kinds_and_not_all_of_them_come_to_something() -> None:
    tried = {one["sort"] for one in RECORDED if outcome_of(one) == "tried"}
    assert len(tried & BY_NAME.keys()) >= 10
    assert {outcome_of(one) for one in RECORDED} == {"tried", "no_place", "not_confirmed"}
    assert sum(one["sort"] != PARAPHRASE for one in JUDGED) >= 5


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: f"{one['document']}-{one['sort']}")
def test_an_answer_passes_the_checks_at_once(one: dict[str, Any], tmp_path: Path) -> None:
    result, requests = played(one, tmp_path)
    [row] = result.tables["rephrasing_calibration"]
    assert row["outcome"] == outcome_of(one)
    kinds = [kind_of(body) for body in requests]
    assert len(kinds) == len(set(kinds)), "an answer was given back"
    if row["outcome"] == "tried":
        assert blocks(requests[-1])[-1] == part_of(one).rewrite.replace(
            one["writing"]["old"], one["writing"]["new"]
        )


@pytest.mark.parametrize("one", JUDGED, ids=lambda one: f"{one['document']}-{one['sort']}")
def test_the_judge_is_right_and_names_what_was_changed(one: dict[str, Any], tmp_path: Path) -> None:
    [row] = played(one, tmp_path)[0].tables["rephrasing_calibration"]
    assert row["judge_passed"] == row["expected"] == (one["sort"] == PARAPHRASE)
    assert row["named"] == (None if row["expected"] else True)
    assert row["found_by_code"] is False


@pytest.mark.parametrize("one", JUDGED, ids=lambda one: f"{one['document']}-{one['sort']}")
def test_a_judge_that_rejects_for_other_words_names_nothing(
    one: dict[str, Any], tmp_path: Path
) -> None:
    before, _, _ = part_of(one).rewrite.partition(one["writing"]["old"])
    elsewhere = [{"part": "", "rewrite": before.strip()[-30:], "what": "some other reason"}]
    other = one | {"judging": {"differences": elsewhere, "verdict": "unfaithful"}}
    [row] = played(other, tmp_path)[0].tables["rephrasing_calibration"]
    assert row["judge_passed"] is False
    assert row["named"] == (None if row["expected"] else False)
