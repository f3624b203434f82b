"""Descriptions held against what tools do: quotes that stand refuse, words alone are a hint."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.model_names import OFFLINE_MODEL
from synth.catalogue.evolution.batch import base_of
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.proposals.describing import (
    AcceptedTool,
    BrokenPromise,
    JudgedDescription,
    hints_of,
    judged,
)
from synth.catalogue.proposals.wire import spec_of
from synth.catalogue.writing.config import WriteConfig
from synth.llm.settings.config import ModelConfig, RoleConfig
from tests.synth.catalogue.evolution.boats import (
    BOATS,
    FIND,
    MODEL,
    RAISE,
    SHORTEN,
    Tool,
    generator,
    section,
)
from tests.synth.catalogue.evolution.work import config_for, rows_of, run_evolution
from tool_specs.domains.domain import load_domain

LYING: Tool = RAISE | {
    "description": "Raise what a boat costs an hour and tell its skipper. Returns name and "
    "hourly_rate."
}
SPEC = spec_of(LYING)
CHANGE: dict[str, Any] = {
    "op": "update",
    "entity": "boat",
    "id": "BO-1",
    "before": {"hourly_rate": 20},
    "after": {"hourly_rate": 22},
}
EXAMPLE: dict[str, Any] = {
    "arguments": {},
    "observation": {"all": list(range(9))},
    "diff": [CHANGE],
}


class Scripted:
    """Answers every request with one value, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, []

    async def structured(self, role: str, messages: Any, **options: Any) -> Any:
        self.asked.append((role, messages, options))
        return self.answer


def answer_of(llm: Scripted) -> JudgedDescription:
    accepted = AcceptedTool(SPEC, {"example": EXAMPLE, "hints": ["odd"], "calls": 9})
    file = load_domain(BOATS).file
    found = asyncio.run(judged(llm, "item", "describe", [accepted], file))  # type: ignore[arg-type]
    return found[SPEC.name]


def said(*quotes: str, kind: str = "promise") -> dict[str, Any]:
    broken = [{"kind": kind, "quote": quote, "missing": "Nobody is told."} for quote in quotes]
    return {"tools": [{"name": SPEC.name, "broken": broken}]}


def test_a_quote_that_stands_in_the_description_refuses() -> None:
    found = answer_of(Scripted(said("tell its  Skipper.")))
    assert found == JudgedDescription(
        True, (BrokenPromise("promise", "tell its Skipper.", "Nobody is told."),)
    )
    assert "'tell its Skipper.' is promised and not done" in found.broken[0].words


@pytest.mark.parametrize("quote", ["tell the skipper", "skipper", "", "write it down"])
def test_a_quote_that_does_not_stand_there_refuses_nothing(quote: str) -> None:
    assert answer_of(Scripted(said(quote))) == JudgedDescription(True, ())


def test_a_whole_part_of_the_program_that_misleads_refuses_and_other_words_do_not() -> None:
    found = answer_of(Scripted(said("hourly_rate", kind="hidden")))
    assert found.broken[0].words.startswith("semantics: 'hourly_rate' is done")
    assert answer_of(Scripted(said("hourly", kind="misnamed"))).broken == ()
    assert answer_of(Scripted(said("tell its skipper", kind="hidden"))).broken == ()


def test_a_tool_that_the_judge_leaves_out_is_not_refused_and_told_apart() -> None:
    assert answer_of(Scripted({"tools": []})) == JudgedDescription(False, ())


def test_the_judge_reads_the_program_and_no_more_than_that() -> None:
    llm = Scripted(said())
    answer_of(llm)
    [(role, messages, _)] = llm.asked
    [shown] = section({"messages": messages}, "Tools")
    assert role == "judge"
    assert shown["description"] == SPEC.description
    assert [s["op"] for s in shown["does"]] == ["read", "update", "return"]
    assert shown["example"]["changes"] == [CHANGE]
    assert shown["example"]["answer"] == {"all": [0, 1, 2]}
    assert shown["doubts"] == ["odd"]
    parts = {"name", "description", "params", "does", "fields", "example", "doubts"}
    assert set(shown) == parts


def test_words_alone_are_a_hint() -> None:
    told = "Raise what a boat costs. Returns name, hourly_rate and last_service."
    doubtful = SPEC.model_copy(update={"description": told})
    assert hints_of(doubtful) == ["description names last_service, which nothing in the tool does"]
    assert hints_of(spec_of(SHORTEN)) == []


def judge(url: str) -> RoleConfig:
    return RoleConfig(base_url=url, models=(ModelConfig(name=MODEL),), retries=0)


def test_without_a_model_for_a_judge_nobody_is_asked_and_ids_stay() -> None:
    config = EvolveConfig()
    assert config.roles["judge"].models[0].name == OFFLINE_MODEL
    assert set(config.roles_asked()) == {"generator"}
    assert "judge" not in config.identity()["roles"]
    roles = {"judge": judge("http://localhost:1/v1")}
    asked = EvolveConfig.model_validate({"roles": roles, "offline": {"roles": ["generator"]}})
    assert set(asked.roles_asked()) == {"generator", "judge"}
    assert base_of(asked) != base_of(config)
    off = asked.model_copy(update={"described_together": 0})
    assert set(off.roles_asked()) == {"generator"}


def test_written_domains_ask_the_same_judge_and_only_a_model() -> None:
    alone = WriteConfig(domains=("aquarium_keeper",))
    assert (alone.judged_together, set(alone.roles_asked())) == (0, {"generator"})
    roles = {"judge": judge("http://localhost:1/v1")}
    values = {"domains": ["aquarium_keeper"], "roles": roles, "offline": {"roles": ["generator"]}}
    asked = WriteConfig.model_validate(values)
    assert (asked.judged_together, set(asked.roles_asked())) == (8, {"generator", "judge"})


@pytest.mark.slow
def test_a_tool_that_promises_more_goes_back_and_is_dropped(tmp_path: Path) -> None:
    """The generator lies, mends nothing, and the judge quotes it."""
    steps: list[str] = []

    def reply(request: dict[str, Any]) -> Any:
        if tools := section(request, "Tools"):
            steps.append("judge")
            lying = [tool["name"] for tool in tools if "skipper" in tool["description"]]
            broken = said("tell its skipper")["tools"][0]["broken"]
            return {
                "tools": [
                    {"name": tool["name"], "broken": broken if tool["name"] in lying else []}
                    for tool in tools
                ]
            }
        if problems := section(request, "Problems"):
            steps.append("mend")
            assert "is promised and not done" in json.dumps(problems)
            return {"tools": [LYING]}
        return {"tools": [FIND, LYING]}

    with generator(reply) as url:
        config = config_for(url, count=1)
        roles = {**config.roles, "judge": judge(url)}
        run_evolution(tmp_path, config.model_copy(update={"roles": roles}))
    found = {row["name"]: row for row in rows_of(tmp_path, "proposals") if row["name"]}
    assert found["raise_hourly_rate"]["drop_reason"] == "promises_more"
    assert steps[:3] == ["judge", "mend", "judge"]
    [kept] = [row for row in rows_of(tmp_path, "tools") if row["name"] == FIND["name"]]
    assert kept["proof"]["described"] == "kept"
