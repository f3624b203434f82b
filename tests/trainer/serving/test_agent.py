"""A model of ours at work: an agent of a run like any other, from the probe to the decision."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import printable
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from records.settings import validate_as
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.episode.rollout import RolloutConfig
from synth.llm.gateway import Exchange
from synth.llm.probing.questions import FORM, HELLO, REPORT, TOOL, TWO_CITIES, WEATHER
from synth.llm.probing.thorough import probe_thoroughly
from synth.llm.settings.config import RoleConfig
from synth.llm.settings.endpoints import endpoint_settings
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from tests.trainer.played_dataset import QUIET
from tests.trainer.serving.served import CHAT, Served, Talk, served, taught
from trainer.inference.policies import ModelPolicy, PolicyRequest


def call_of(*cities: str) -> dict[str, Any]:
    calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        for number, city in enumerate(cities)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def answered(*cities: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [call_of(*cities)]
    for number, city in enumerate(cities):
        told = json.dumps({"city": city, "sky": "clear", "celsius": 21})
        made.append({"role": "tool", "tool_call_id": f"c{number}", "content": told})
    return [*made, {"role": "assistant", "content": "The sky is clear, at 21 degrees."}]


FILLED_IN = '{"city": "Lisbon", "celsius": 21, "rains": false}'

ANSWER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "Gives the answer.", "parameters": FORM},
}
"""What the client makes of a form for endpoints that are asked for a call of it."""

FILLED_IN_BY_CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "weather", "arguments": FILLED_IN}}
    ],
}


def unclear(seed: int) -> Talk:
    """Words that mean nothing, which the model is taught to decline: what it says to tasks that it
    was not taught has an end then."""
    draws = Random(seed)
    system, user = ("".join(draws.choices(printable, k=60)) for _ in range(2))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return [*messages, {"role": "assistant", "content": DECLINED}], [TOOL] * (seed % 2)


DECLINED = "I cannot do that."

STOPS = [*'eilrsumwykp"12.']
"""Letters that `DECLINED` has not, and its end: so that whatever words the model makes end soon."""

TALKS: list[Talk] = [
    *(unclear(seed) for seed in range(4)),
    ([*WEATHER, *answered("Lisbon")], [TOOL]),
    ([*TWO_CITIES, *answered("Lisbon", "Oslo")], [TOOL]),
    ([*REPORT, {"role": "assistant", "content": FILLED_IN}], []),
    ([*REPORT, FILLED_IN_BY_CALL], [ANSWER_TOOL]),
    ([*HELLO, {"role": "assistant", "content": "Hello."}], []),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return taught(tmp_path_factory.mktemp("taught") / "model", TALKS)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "requests.jsonl"


@pytest.fixture(scope="module")
def server(model: Path, log: Path) -> Iterator[Served]:
    with served(model, log=log, slots=4, slot_tokens=16_384) as running:
        yield running


def role_of(server: Served, **other: Any) -> RoleConfig:
    """The ready endpoint, but at the port that this server has."""
    settings = endpoint_settings("bundled") | {
        "base_url": server.url,
        "models": ["tiny"],
        "temperature": 0.0,
        "max_tokens": 80,
        "usd_per_million_prompt": 0.0,
        "usd_per_million_completion": 0.0,
        **other,
    }
    return validate_as(RoleConfig, settings, where="the role")


def test_the_probe_finds_all_that_the_ready_endpoint_says(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synth.llm.probing.thorough.LONG_TEXT_WORDS", 100)  # seconds of reading
    role = role_of(server)
    (probed,) = asyncio.run(probe_thoroughly({"agent": role}))
    assert probed.problems == []
    assert probed.profile.context_tokens == 16_384
    known = role.profile.model_dump(exclude_none=True)
    found = probed.profile.model_dump(exclude_none=True)
    # an enforced schema is the surest way, and reasoning stands nowhere in what this model says
    expected = known | {"structured": "json_schema_strict", "reasoning_field": "none"}
    assert {name: found[name] for name in found if name in known} == {
        name: expected[name] for name in found if name in known
    }
    works = {f.entry: f.value for f in probed.findings if f.entry.startswith("structured")}
    assert works["structured = json_schema"] is True
    assert works["structured = tool"] is True


def test_its_trajectories_are_judged_and_curated_and_its_tokens_counted(
    server: Served, model: Path, log: Path, tmp_path: Path
) -> None:
    before = len(log.read_text().splitlines()) if log.exists() else 0
    config = RunConfig(
        domains=("parcel_depot",),
        servers=(),
        code=(),
        num_tasks=4,
        workers=1,
        max_failed=1.0,
        rollouts=RolloutConfig(episode=QUIET),
        roles={"agent": role_of(server, extra_body={"stop": STOPS})},
        offline=OfflineConfig(roles=("generator", "user", "simulator", "judge", "embedder")),
    )
    exchanges: list[Exchange] = []

    async def work() -> None:
        folder = str(tmp_path / "data")
        async with open_run(config, folder, command="test", on_exchange=exchanges.append) as run:
            for kind in STAGES:
                await run.run_stage(kind(run))

    asyncio.run(work())
    data = Dataset.open(tmp_path / "data")
    trajectories = list(data.rows("trajectories"))
    assert trajectories, [row["details"] for row in data.rows("stages") if row["details"]]
    assert {row["models"]["agent"] for row in trajectories} == {"tiny"}
    played = {row["trajectory_id"] for row in trajectories}
    assert {row["trajectory_id"] for row in data.rows("verdicts")} <= played
    assert {row["trajectory_id"] for row in data.rows("curation")} == played

    calls = [row for row in data.rows("llm_calls") if row["role"] == "agent"]
    asked = [row for row in calls if row["status"] == "ok" and not row["cache_hit"]]
    assert {"probe", "rollouts"} <= {row["stage"] for row in asked}
    lines = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    of_server = [line for line in lines if line["event"] == "answered" and line["status"] == 200]
    for column in ("prompt_tokens", "completion_tokens"):
        assert Counter(row[column] for row in asked) == Counter(line[column] for line in of_server)

    policy = ModelPolicy(model, chat=CHAT, slots=1, slot_tokens=16_384, device="cpu")
    mine = [exchange for exchange in exchanges if exchange.role == "agent"]
    assert len(mine) == sum(row["stage"] == "rollouts" for row in asked)
    for exchange in mine:
        body = json.loads(exchange.body)
        request = PolicyRequest(body["messages"], body.get("tools", []), body["seed"])
        assert exchange.answer.prompt_tokens == policy.prompt_tokens(request)
