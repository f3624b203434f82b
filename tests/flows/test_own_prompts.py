"""A run whose prompts are a user's has them in its own process and in its workers'."""

import asyncio
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import recorded_config
from synth.pipeline.stages import STAGES
from synth.prompts import templates
from synth.prompts.templates import version_of
from tests.flows.pipeline_work import SMALL, content_of

pytestmark = pytest.mark.slow

COLUMNS = {"agents": "gen_agent", "personas": "gen_persona", "tasks": "gen_brief"}
"""Tables whose rows name the version of the prompt that wrote them."""


def run(folder: Path, config: RunConfig) -> None:
    async def stages() -> None:
        async with open_run(config, str(folder), command="test") as opened:
            for make_stage in STAGES:
                await opened.run_stage(make_stage(opened))

    asyncio.run(stages())


def test_workers_write_with_the_prompts_of_the_run(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in COLUMNS.values():
        text = (templates.FOLDER / f"{name}.md").read_text()
        (mine / f"{name}.md").write_text(f"{text}\nTake care.\n")
    values = SMALL.model_dump() | {"prompts": str(mine), "num_tasks": 6}
    contents = []
    for workers in (1, 2):
        config = RunConfig.model_validate(values | {"workers": workers})
        run(tmp_path / f"d{workers}", config)
        contents.append(content_of(tmp_path / f"d{workers}"))
        dataset = Dataset.open(tmp_path / f"d{workers}")
        with config.prompts_in_use():
            own = {table: version_of(name) for table, name in COLUMNS.items()}
        for table, version in own.items():
            assert {row["prompt_version"] for row in dataset.rows(table)} == {version}, table
            assert version != version_of(COLUMNS[table])
        assert recorded_config(dataset, config.run_id) == config
    assert contents[0] == contents[1]

    (mine / "gen_agent.md").write_text("# user\nOther.\n")
    with pytest.raises(ConfigError, match=r"gen_agent\.md changed since"):
        recorded_config(dataset, config.run_id)
