"""Perturbed negatives and paraphrases: what confirms them, and what nothing confirms is counted."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synth.judging.negatives import Attempt, Attempts
from synth.judging.perturbation.episodes import PassedEpisode, reported_in
from synth.judging.perturbation.faults import BY_NAME, FAULTS
from synth.judging.perturbation.registry import BY_PHRASE, PARAPHRASE, perturb
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import BUILT_IN
from tests.synth.judging.perturbation_work import MARK, asked_for, players, section, sources, writes
from tests.synth.scripted import ScriptedApp, model

ROLES = {role: RoleConfig() for role in ("generator", "judge")}
Player = Callable[[dict[str, Any]], str]


def source_for(name: str) -> PassedEpisode:
    """One that has a place for the perturbation."""
    if name in BY_PHRASE:
        return next(s for s in sources() if perturb(name, s))
    return next(s for s in sources() if BY_NAME[name].fits(s))


def attempted(
    folder: Path, name: str, play: Player, source: PassedEpisode | None = None
) -> tuple[Attempt | None, list[dict[str, Any]]]:
    """The attempt at an episode that has a place for it, and what was asked for it."""
    source, app = source or source_for(name), ScriptedApp(play)

    async def run() -> Attempt | None:
        async with model(app, folder, ROLES) as llm:
            return await Attempts(llm, source, BUILT_IN, "item", []).attempt(name)

    return asyncio.run(run()), app.requests


@pytest.mark.parametrize("name", ["work_not_done", "rude", "wrong_id", "wrong_language"])
def test_a_written_fault_is_confirmed_by_a_reading_that_names_it(name: str, tmp_path: Path) -> None:
    made, requests = attempted(tmp_path, name, players())
    assert made is not None
    assert (made.outcome, made.confirmed_by) == ("tried", "second_reading")
    assert made.criterion_id == BY_NAME[name].criterion_id
    assert made.tried is not None
    assert MARK in str(made.tried.messages[-1]["content"])
    assert [asked_for(body) for body in requests] == ["written_fault", "second_reading"]


@pytest.mark.parametrize(
    ("faulty", "quote"),
    [("neither", ""), ("marked", "Let me know if"), ("other", MARK), ("marked", "")],
    ids=["finds nothing", "names other words", "blames the original", "names nothing"],
)
def test_what_the_second_reading_does_not_name_is_counted_out(
    faulty: str, quote: str, tmp_path: Path
) -> None:
    def read(body: dict[str, Any]) -> str:
        marked = "a" if MARK in json.dumps(section(body, "Ending A")) else "b"
        other = {"a": "b", "b": "a"}[marked]
        found = {"marked": marked, "other": other}.get(faulty, faulty)
        return json.dumps({"evidence": "e", "quote": quote, "faulty": found})

    made, _ = attempted(tmp_path, "work_not_done", players(read=read))
    assert made is not None
    assert (made.outcome, made.confirmed_by, made.tried) == ("not_confirmed", None, None)
    assert made.edit is not None
    assert "second reading" in made.detail


@pytest.mark.parametrize("name", ["work_not_done", "rude", "hedge"])
def test_the_second_reading_is_blind_to_the_fault_and_to_which_ending_was_edited(
    name: str, tmp_path: Path
) -> None:
    _, requests = attempted(tmp_path, name, players())
    text = json.dumps([body for body in requests if asked_for(body) == "second_reading"])
    fault = BY_NAME[name]
    for told in (fault.name, fault.what, fault.keep, "edited", "original", '"w"'):
        assert told not in text, told
    reply = reported_in(source_for(name).trajectory["messages"])
    assert json.dumps(reply)[1:-1].split("\\n")[0] in text


def test_either_ending_may_be_the_edited_one(tmp_path: Path) -> None:
    places = set()
    for fault in FAULTS[:12]:
        folder = tmp_path / fault.name
        folder.mkdir()
        _, requests = attempted(folder, fault.name, players())
        places |= {MARK in json.dumps(section(body, "Ending A")) for body in requests[1:2]}
    assert places == {True, False}


def test_code_confirms_a_told_value_that_is_missing_and_nobody_is_asked(tmp_path: Path) -> None:
    made, requests = attempted(tmp_path, "fact_not_told", players())
    assert made is not None
    assert (made.outcome, made.confirmed_by, requests) == ("tried", "code", [])


def test_an_edited_result_is_asked_for_and_changes_nothing_any_more(tmp_path: Path) -> None:
    error = json.dumps({"error": {"code": "unavailable", "message": "No answer."}})

    def write(body: dict[str, Any]) -> str:
        reply = section(body, "Reply to edit")
        wrong = reply.split()[0]
        answer = {"why": "w", "has_place": True, "result": error, "reply": reply, "wrong": wrong}
        return json.dumps(answer)

    def read(body: dict[str, Any]) -> str:
        failed = "a" if "unavailable" in json.dumps(section(body, "Ending A")) else "b"
        said = section(body, f"Ending {failed.upper()}")
        assert said["changed"] == []
        quote = said["transcript"][-1]["content"]
        return json.dumps({"evidence": "e", "quote": quote, "faulty": failed})

    play = players(write=write, read=read)
    made, requests = attempted(tmp_path, "pretended_after_failure", play)
    assert made is not None
    assert "fails and changes nothing" in requests[0]["messages"][1]["content"]
    assert made.tried is not None
    assert made.tried.calls[-1]["is_error"]
    assert made.tried.calls[-1]["observation"] == error


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"reply": ""}, "reply is empty"),
        ({"wrong": "words that are nowhere"}, "does not stand in reply"),
        ({"wrong": ""}, "wrong is empty"),
        ({"reply": None}, "unchanged"),
    ],
)
def test_a_writer_whose_edit_does_not_hold_is_told_and_then_left(
    answer: dict[str, Any], told: str, tmp_path: Path
) -> None:
    def write(body: dict[str, Any]) -> str:
        given = json.loads(writes(body)) | answer
        if given["reply"] is None:
            given["reply"] = section(body, "Reply to edit")
        return json.dumps(given)

    made, requests = attempted(tmp_path, "work_not_done", players(write=write))
    assert made is not None
    assert (made.outcome, made.tried) == ("not_written", None)
    assert told in requests[1]["messages"][-1]["content"]


def test_no_place_is_counted_where_a_writer_was_asked_and_nothing_where_code_finds_none(
    tmp_path: Path,
) -> None:
    def write(body: dict[str, Any]) -> str:
        return json.dumps(json.loads(writes(body)) | {"has_place": False, "reply": "", "wrong": ""})

    made, requests = attempted(tmp_path, "rude", players(write=write))
    assert made is not None
    assert (made.outcome, len(requests)) == ("no_place", 1)
    silent = next(s for s in sources() if not any(call["state_diff"] for call in s.calls))
    assert attempted(tmp_path, "work_denied", players(), silent) == (None, [])


def test_a_paraphrase_in_which_a_fault_is_found_is_no_control(tmp_path: Path) -> None:
    def read(body: dict[str, Any]) -> str:
        put = "a" if "Gladly" in json.dumps(section(body, "Ending A")) else "b"
        return json.dumps({"evidence": "It promises.", "quote": "Gladly.", "faulty": put})

    source, outcomes = source_for("work_not_done"), []  # any episode with a reply
    for number, play in enumerate((players(), players(read=read))):
        folder = tmp_path / str(number)
        folder.mkdir()
        made, _ = attempted(folder, PARAPHRASE, play, source)
        assert made is not None
        outcomes.append(made)
    assert [a.outcome for a in outcomes] == ["tried", "not_confirmed"]
    assert outcomes[0].tried is not None
    assert outcomes[1].tried is None
    assert all(a.edit and a.edit.reply.startswith("Gladly.") for a in outcomes)
