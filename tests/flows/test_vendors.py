"""Every role on a double of every vendor's server: what is made there is what is made anywhere.

The doubles refuse, wrap and count as the vendors do (`tests/doubles`); behind each is the offline
model, so what comes out is known. Embeddings have a test of their own.
"""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.engine.run import Run
from synth.episode.tools.simulator import SimulateConfig
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from synth.rephrasing.rephrase import rephrase
from synth.rephrasing.writing.config import SourceConfig
from synth.tasks.config import TaskConfig
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import KEY
from tests.doubles.server import DoubleServer, serve
from tests.flows.rephrase_work import SMALL as TEXTS

pytestmark = pytest.mark.slow

PLAYED = "add_allergy"
"""A tool that the simulator plays."""

CONFIG = RunConfig(
    seed=14,  # the played tool is called, and every trajectory accepted
    domains=("clinic_desk",),
    servers=(),
    code=(),
    num_tasks=3,
    shard_size=3,
    workers=1,
    tasks=TaskConfig(personas_per_block=2),
    simulate=SimulateConfig(tools=(PLAYED,)),
)

ASKED = {"generator", "agent", "user", "judge", "simulator", "rewriter"}
STREAMED = ("openai", "openrouter", "mistral", "gemini", "vllm", "azure")
"""Vendors whose streams differ from each other."""


def role_at(server: DoubleServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> RoleConfig:
    monkeypatch.setenv("DOUBLE_KEY", KEY)
    return RoleConfig.model_validate(server.role("DOUBLE_KEY") | more)


async def everything(folder: Path, role: RoleConfig) -> None:
    config = CONFIG.model_copy(update={"roles": dict.fromkeys(CONFIG.roles, role)})
    async with open_run(config, str(folder), command="test") as run:
        for make_stage in STAGES:
            await run.run_stage(make_stage(run))
    sources = (SourceConfig(path="cpython", max_documents=1),)
    roles = dict.fromkeys(TEXTS.roles, role)
    texts = TEXTS.model_copy(update={"roles": roles, "sources": sources, "workers": 1})
    async with open_run(texts, str(folder), command="test") as run:
        await rephrase(run, Run.run_stage)


def check(folder: Path) -> list[dict[str, Any]]:
    """Every item was made, and every role was asked; the calls."""
    dataset = Dataset.open(folder)
    statuses = Counter(
        (status.status, stage, status.reason, status.detail)
        for stage in dataset.stages()
        for one in dataset.items_of(stage)
        for status in one.values()
    )
    assert not [seen for seen in statuses if seen[0] == "failed"]
    assert len(dataset.rows("trajectories")) == CONFIG.num_tasks
    assert dataset.rows("rephrasings")
    calls = dataset.rows("llm_calls")
    assert {call["role"] for call in calls if call["status"] == "ok"} >= ASKED
    return calls


@pytest.mark.parametrize("name", DOUBLES)
def test_every_role_is_played_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(DOUBLES[name]) as server:
        asyncio.run(everything(tmp_path / "d", role_at(server, monkeypatch)))
        calls = check(tmp_path / "d")
        refused = [call for call in calls if call["status"] != "ok"]
        # what a server refuses is refused once or, of requests under way together, a few times
        assert len(refused) <= 12
        assert all(call["detail"] for call in refused)
        billed = server.tokens(delivered=True)
        paid = [call for call in calls if call["status"] == "ok" and not call["cache_hit"]]
        assert sum(call["prompt_tokens"] for call in paid) == billed.prompt
        assert sum(call["completion_tokens"] for call in paid) == billed.completion


@pytest.mark.parametrize("name", STREAMED)
def test_every_role_is_played_on_a_stream_of(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(DOUBLES[name]) as server:
        role = role_at(server, monkeypatch, profile={"stream": True})
        asyncio.run(everything(tmp_path / "d", role))
        check(tmp_path / "d")


def asked_by(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The trajectories of a run that asks for forms in this way."""
    with serve(DOUBLES["vllm"]) as server:
        role = role_at(server, monkeypatch, profile={"structured": way})
        asyncio.run(everything(folder, role))
    rows = Dataset.open(folder).rows("trajectories")
    return sorted((row["trajectory_id"], str(row["messages"])) for row in rows)


@pytest.fixture(scope="module")
def by_schema(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return asked_by("json_schema", tmp_path_factory.mktemp("schema") / "d", monkeypatch)


@pytest.mark.parametrize("structured", ["json_object", "tool", "prompt"])
def test_every_way_of_asking_for_a_form_makes_the_same(
    structured: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_schema: list[tuple[str, str]],
) -> None:
    assert asked_by(structured, tmp_path / "d", monkeypatch) == by_schema
