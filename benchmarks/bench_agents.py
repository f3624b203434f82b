"""How many agents are distinct, and what they cost.

    python benchmarks/bench_agents.py [--count 2000]

Plans and makes agents of all built-in domains with the offline model, and screens them for
near-duplicates, all as a run does. Prints one JSON line. The prompts are the offline model's: how
often a hosted model repeats itself is not shown by it.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from flows.runtime.open_run import open_run
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.stages import AgentStage, CatalogueStage, ScreeningStage


async def measure(count: int, folder: str) -> dict[str, object]:
    per_agent = RunConfig().tasks.tasks_per_agent
    config = RunConfig(domains=(BUILT_IN,), servers=(), code=(), num_tasks=count * per_agent)
    seconds: dict[str, float] = {}
    async with open_run(config, folder, command="bench_agents") as run:
        for make_stage in (CatalogueStage, AgentStage, ScreeningStage):
            began = time.process_time()
            stage = make_stage(run)
            await run.run_stage(stage)
            seconds[stage.name] = round(time.process_time() - began, 2)
        statuses = Counter(
            s.reason or "kept" for s in run.dataset.item_statuses("screening").values()
        )
        rows = run.dataset.rows("agents", ("agent_id", "system_prompt", "tool_ids"))
    return {
        "name": "agents",
        "requested": count,
        "made": len(rows),
        **statuses,
        "distinct_prompts": len({row["system_prompt"] for row in rows}),
        "distinct_toolsets": len({frozenset(row["tool_ids"]) for row in rows}),
        "cpu_s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="agents to make")
    with tempfile.TemporaryDirectory() as folder:
        show(asyncio.run(measure(parser.parse_args().count, folder)))


if __name__ == "__main__":
    main()
