"""Tools that a model plays: which answers count, what becomes of the others, and of the episode."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offline_llm.app import create_app
from records.errors import ConfigError
from records.tables.schemas import Row
from synth.engine.stages import ItemResult
from synth.episode.replay import replay_rows
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.tools.executors import executors_for
from synth.episode.tools.simulator import (
    REPAIRS,
    SIMULATION_FAILED,
    ModelAnswers,
    Note,
    Question,
    SimulateConfig,
    SimulatedAnswer,
)
from synth.llm.settings.config import RoleConfig
from tests.synth.clinic import QUIET, TASK, catalogue
from tests.synth.episode.test_state_patch import DOMAIN, sound
from tests.synth.scripted import ScriptedApp, model
from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.domain import load_domains
from tool_specs.domains.interpreter import DomainEnvironment

ROLES = {role: RoleConfig() for role in ("agent", "user", "simulator", "judge")}
PLAYED = replace(catalogue(), simulate=SimulateConfig(tools="all"))
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}
TOOL: Row = {
    "tool_id": "tool",
    "name": "lend_thing",
    "description": "Lend a thing.",
    "input_schema": SCHEMA,
    "output_schema": SCHEMA | {"properties": {"lent": {"type": "integer"}}, "required": ["lent"]},
    "semantics_json": None,
}
GOOD = {
    "observation": {"lent": 2},
    "is_error": False,
    "patch": [{"op": "update", "entity": "thing", "id": "TH-1001", "set": {"lent": 2}}],
}


def changed(**parts: Any) -> str:
    return json.dumps(GOOD | parts)


def patched(**parts: Any) -> str:
    return changed(patch=[GOOD["patch"][0] | parts])


def ask(
    folder: Path, said: Iterable[str], *, read_only: bool = False
) -> tuple[SimulatedAnswer | None, Note, ScriptedApp]:
    """What comes of one call when the endpoint says these things, one after another."""
    words = iter(said)
    app = ScriptedApp(lambda body: next(words))
    question = Question(TOOL, {"thing": "TH-1001"}, read_only, DomainEnvironment.of(DOMAIN), (), 0)

    async def work() -> tuple[SimulatedAnswer | None, Note]:
        async with model(app, folder, ROLES) as llm:
            answers = ModelAnswers(llm, item="item")
            return await answers.answer(question), answers.notes[0]

    return *asyncio.run(work()), app


FAULTS = {
    "bad_json": ('{"observation": {"lent": 2', "it is not JSON"),
    "no_patch": (json.dumps({"observation": {}, "is_error": False}), "patch"),
    "unknown_entity": (patched(entity="tool"), "unknown entity; entities: thing, loan"),
    "unknown_field": (patched(set={"colour": "red"}), "colour is not a field"),
    "wrong_type": (patched(set={"lent": "two"}), "lent must be a whole number"),
    "id_not_there": (patched(id="TH-1009"), "there is no thing with this id"),
    "invariant": (patched(set={"lent": 3}), "breaks rule enough"),
    "output_schema": (changed(observation={"lent": "2"}), "observation: lent"),
    "huge_number": (changed(observation={"lent": 1e308}).replace("1e+308", "1e999"), "JSON"),
    "error_with_patch": (changed(is_error=True), "a call that fails changes nothing"),
    "error_without_code": (
        changed(is_error=True, patch=[], observation={"sorry": "no"}),
        "observation of an error must be",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_answer_is_shown_its_faults_and_repaired(fault: str, tmp_path: Path) -> None:
    said, words = FAULTS[fault]
    played, note, app = ask(tmp_path, [said, json.dumps(GOOD)])
    complaint = app.requests[1]["messages"][-1]["content"]
    assert words in complaint
    assert app.requests[1]["messages"][-2]["content"] == said
    assert played is not None
    assert (played.repairs, note.repairs) == (1, 1)
    assert [(c["id"], c["before"], c["after"]) for c in played.diff] == [
        ("TH-1001", {"lent": 1}, {"lent": 2})
    ]
    sound(played.after)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_stays_faulty_is_given_up(fault: str, tmp_path: Path) -> None:
    played, note, app = ask(tmp_path, [FAULTS[fault][0]] * (REPAIRS + 1))
    assert played is None
    assert len(app.requests) == REPAIRS + 1
    assert note.repairs == REPAIRS


def test_a_read_only_tool_may_not_patch(tmp_path: Path) -> None:
    said = [json.dumps(GOOD), changed(patch=[])]
    played, _, app = ask(tmp_path, said, read_only=True)
    assert "read_only: patch must be empty" in app.requests[1]["messages"][-1]["content"]
    assert played is not None
    assert played.after.state_hash == DomainEnvironment.of(DOMAIN).state_hash


def test_an_error_that_is_well_formed_counts(tmp_path: Path) -> None:
    error = {"error": {"code": "not_found", "message": "No such thing."}}
    played, note, _ = ask(tmp_path, [changed(is_error=True, patch=[], observation=error)])
    assert played is not None
    assert (played.is_error, played.error_code, played.diff) == (True, "not_found", [])
    assert note == Note("tool", 0, None)  # nothing defines the tool, so nothing is measured


def test_the_model_sees_rows_that_bear_on_the_call_and_no_program(tmp_path: Path) -> None:
    domain = load_domains(["clinic_desk"])[0]
    tool = next(t for t in tool_rows(domain) if t["name"] == "cancel_appointment")
    arguments = {"appointment_id": "AP-1004", "reason": "travel"}
    question = Question(tool, arguments, False, DomainEnvironment.of(domain), (), 0)
    app = ScriptedApp(lambda body: changed(patch=[], observation={}, is_error=False))

    async def work() -> None:
        async with model(app, tmp_path, ROLES) as llm:
            config = SimulateConfig(page=0)
            await ModelAnswers(llm, item="item", config=config).answer(question)

    asyncio.run(work())
    text = app.requests[0]["messages"][1]["content"]
    rows = json.loads(text.split("## State\n```json\n")[1].split("\n```")[0])
    assert [row["appointment_id"] for row in rows["appointment"]] == ["AP-1004"]
    assert {row["slot_id"] for row in rows["slot"]} == {rows["appointment"][0]["slot_id"]}
    assert len(rows["patient"]) == 1
    assert rows["doctor"] == []
    assert "It must be booked" in text
    assert "semantics" not in text
    assert "require" not in text.split("## Tool")[1].split("## Call")[0].replace("required", "")


# Episodes


def play(folder: Path, app: Any, num: int = 4) -> list[ItemResult]:
    config = RolloutConfig(attempts=num, episode=QUIET)
    items = plan_rollouts([TASK], config=config, roles=ROLES)

    async def work() -> list[ItemResult]:
        async with model(app, folder, ROLES) as llm:
            return [
                await run_rollout(
                    item, llm, llm._journal, catalogue=PLAYED, config=config, roles=ROLES
                )
                for item in items
            ]

    return asyncio.run(work())


class Counted:
    """The offline model with a count of requests by the schema that they ask for."""

    def __init__(self, spoil: bool = False) -> None:
        self._app, self._spoil, self.asked = create_app(), spoil, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        parts = [await receive()]
        while parts[-1].get("more_body"):
            parts.append(await receive())
        data = b"".join(part.get("body", b"") for part in parts)
        body = json.loads(data)
        name = (body.get("response_format") or {}).get("json_schema", {}).get("name")
        self.asked += 1

        async def again() -> Any:
            return {"type": "http.request", "body": data, "more_body": False}

        if self._spoil and name == "simulate_call":
            await ScriptedApp(lambda body: "I would rather not.")(scope, again, send)
        else:
            await self._app(scope, again, send)


def test_an_episode_is_played_measured_and_replayed_without_the_model(tmp_path: Path) -> None:
    made = play(tmp_path, Counted())
    assert {result.status.status for result in made} == {"kept"}
    matches = 0
    for result in made:
        [row], calls = result.tables["trajectories"], result.tables["tool_calls"]
        notes = {note["call_index"]: note for note in result.tables["simulations"]}
        assert row["executed_by"] == ["llm"]
        assert "simulator" in row["models"]
        for call in (c for c in calls if c["executed_by"] == "llm"):
            note = notes[call["call_index"]]
            assert note["tool_id"] == call["tool_id"]
            assert note["state_match"] is not None
            assert bool(call["state_diff"]) == (
                call["state_hash_before"] != call["state_hash_after"]
            )
            matches += note["state_match"]
        report = asyncio.run(replay_rows(row, calls, TASK, PLAYED, QUIET))
        assert report.differences == []
    assert matches


def test_a_record_that_was_tampered_with_does_not_replay(tmp_path: Path) -> None:
    result = next(
        r for r in play(tmp_path, Counted()) if any(c["state_diff"] for c in r.tables["tool_calls"])
    )
    [row], calls = result.tables["trajectories"], [dict(c) for c in result.tables["tool_calls"]]
    call = next(c for c in calls if c["state_diff"])
    change = call["state_diff"][0]
    call["state_diff"] = [change | {"after": change["after"] | {"colour": "red"}}]
    assert asyncio.run(replay_rows(row, calls, TASK, PLAYED, QUIET)).differences


def test_played_again_from_its_journal_nothing_is_asked_or_changed(tmp_path: Path) -> None:
    """What a resume after a kill does: every answer comes from the journal."""
    first, again = Counted(), Counted()
    assert play(tmp_path, first) == play(tmp_path, again)
    assert first.asked > 0
    assert again.asked == 0


def test_no_usable_answer_is_an_error_of_the_world_and_not_tried_in_vain(tmp_path: Path) -> None:
    app = Counted(spoil=True)
    [result] = play(tmp_path, app, num=1)
    [row] = result.tables["trajectories"]
    failed = [c for c in result.tables["tool_calls"] if c["error_code"] == SIMULATION_FAILED]
    assert (result.status.status, result.status.reason) == ("failed", SIMULATION_FAILED)
    assert (row["termination_reason"], row["outcome"]) == ("infra_error", "error")
    assert row["objective_reward"] == 0.0
    assert len(failed) == 1
    assert failed[0]["state_diff"] == []
    assert [note["failed"] for note in result.tables["simulations"]] == [True]
    assert app.asked == 1 + len(failed) + REPAIRS  # the agent's turn, and one call


def test_without_a_simulator_the_setting_is_refused() -> None:
    tools = PLAYED.tools_of(PLAYED.agents["agent"])
    with pytest.raises(ConfigError, match="played by a model"):
        executors_for(PLAYED, TASK, tools, seed=1)


def test_tools_are_routed_by_name_and_share_their_state() -> None:
    mixed = replace(catalogue(), simulate=SimulateConfig(tools=("cancel_appointment",)))
    tools = mixed.tools_of(mixed.agents["agent"])

    class Nobody:
        async def answer(self, question: Question) -> SimulatedAnswer | None:
            after = question.environment.snapshot()
            return SimulatedAnswer({"done": True}, False, None, [], after, 0, [])

    routes = executors_for(mixed, TASK, tools, seed=1, answers=Nobody())
    assert routes["cancel_appointment"].executed_by == "llm"
    others = {e.executed_by for name, e in routes.items() if name != "cancel_appointment"}
    assert others == {"state_machine"}
    book = {"patient_id": "PT-1001", "amount": 5}

    async def pay() -> None:
        await routes["record_payment"].call("record_payment", book, read_only=False)

    asyncio.run(pay())
    assert len({executor.state_hash() for executor in routes.values()}) == 1
