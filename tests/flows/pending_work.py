"""The small pipeline with an agent that cannot be made while a file lies beside the dataset: work
for the killing harness."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from records.errors import PendingError, TransientError
from synth.engine import shard_maker
from synth.pipeline import stages
from synth.tasks.agents.agents import AgentPlan, make_agent
from tests.flows.pipeline_work import SMALL, run_pipeline

CONFIG = SMALL.model_copy(update={"seed": 0, "num_tasks": 6, "max_failed": 1.0})
"""With an agent of each domain."""


def down_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.down")


def run_short(folder: Path) -> None:
    """Every stage as far as it goes, with nothing in the way unless the file is there."""

    async def made(plan: AgentPlan, llm: Any, **more: Any) -> Any:
        row = await make_agent(plan, llm, **more)
        if down_file(folder).exists() and plan.source.title.startswith("Clinic"):
            raise TransientError("the machine under it is gone")
        return row

    shard_maker.ITEM_RETRY_S = 0.0
    stages.make_agent = made
    with suppress(PendingError):
        run_pipeline(folder, CONFIG)
