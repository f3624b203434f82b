"""What each operator does to the pass rate of the offline agent: children beside their parents.

    python -m benchmarks.difficulty [DATASET] [--tasks 96] [--slips 3]

One run with four attempts a task and one round. The agent of the offline model makes `--slips`
times its usual mistakes, so that there are tasks to make easier. Attempts that decide whether a
task is made harder or easier say nothing of how hard it is: a task that was lucky four times looks
easier than it is. So parents and children are played four times more once the round is over, and
only these attempts are compared. With a DATASET that a run has begun, the run goes on there.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.measured import show
from benchmarks.serving import served
from flows.runtime.open_run import open_run
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from synth.curation.stages import Decided
from synth.engine.job_config import OfflineConfig
from synth.engine.run import Run
from synth.episode.rollout import RolloutConfig
from synth.judging.stages import GradingStage
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.difficulty import run_rounds
from synth.pipeline.stages import STAGES, RolloutStage
from synth.render.intervals import wilson
from synth.tasks.config import TaskConfig
from synth.tasks.difficulty import EASIER, HARDER, DifficultyConfig
from synth.tasks.forms.forms import ALL_PLAIN

ATTEMPTS = 4
"""Before the round, and again after it."""

AGENT = "slipping-agent"


class Compared(NamedTuple):
    """Fresh attempts at the children of one operator, and at their parents."""

    operator: str
    pairs: int
    parents: tuple[int, int]
    """(passed, attempts)."""
    children: tuple[int, int]

    @property
    def outside(self) -> bool:
        """Whether neither pass rate lies in the other's 95% interval."""
        rates = (self.parents, self.children)
        return not any(
            wilson(*one).low <= other[0] / other[1] <= wilson(*one).high
            for one, other in (rates, rates[::-1])
        )

    def line(self) -> str:
        shown = [
            f"{passed / n:>5.2f} [{wilson(passed, n).low:.2f}, {wilson(passed, n).high:.2f}]"
            f" of {n:>3}"
            for passed, n in (self.parents, self.children)
        ]
        moved = "outside both intervals" if self.outside else "within an interval"
        return f"{self.operator:<12} {self.pairs:>5}  {'  '.join(shown)}  {moved}"


def settings(num_tasks: int, url: str, attempts: int) -> RunConfig:
    return RunConfig(
        name="difficulty",
        domains=(BUILT_IN,),
        servers=(),
        code=(),
        num_tasks=num_tasks,
        # of which the offline model plays little
        tasks=TaskConfig(forms=ALL_PLAIN),
        roles={"agent": RoleConfig(base_url=url, models=(ModelConfig(name=AGENT),))},
        offline=OfflineConfig(roles=("generator", "user", "judge", "simulator")),
        rollouts=RolloutConfig(attempts=attempts),
        # above it, what a task of four attempts passes three or four times
        difficulty=DifficultyConfig(rounds=1, target=0.6),
    )


async def play(config: RunConfig, folder: str) -> None:
    """The run with its round, then fresh attempts at all of its tasks."""
    async with open_run(config, folder, command="benchmark") as run:
        for stage in STAGES[: STAGES.index(RolloutStage) + 1]:
            await run.run_stage(stage(run))
        await run_rounds(run, lambda run, stage: run.run_stage(stage))
        for report in run.reports.values():
            print(f"{report.stage}: {report.summary()} {report.reasons or ''}", flush=True)


async def compare(config: RunConfig, folder: str) -> list[Compared]:
    async with open_run(config, folder, command="benchmark") as run:
        # the round that was planned stands; no further task is derived from these attempts
        await run.run_stage(RolloutStage(run))
        await run.run_stage(GradingStage(run))
        return compared(run)


def compared(run: Run[RunConfig]) -> list[Compared]:
    """Over the attempts that no round has looked at."""
    judged = Decided(run)
    passed, attempts = Counter[str](), Counter[str]()
    for row in run.dataset.rows("trajectories"):
        candidate = judged.candidate(row, "unmeasured") if row["attempt"] >= ATTEMPTS else None
        if candidate is not None:
            attempts[row["task_id"]] += 1
            passed[row["task_id"]] += candidate.drop_reason is None
    tasks = [task for task in run.dataset.rows("tasks") if task["operator"]]
    found = []
    for operator in (*HARDER, *EASIER):
        pairs = [
            (t["parent_task_id"], t["task_id"])
            for t in tasks
            if t["operator"] == operator and attempts[t["task_id"]]
        ]
        if pairs:
            sums = [
                (sum(passed[i] for i in ids), sum(attempts[i] for i in ids))
                for ids in zip(*pairs, strict=True)
            ]
            found.append(Compared(operator, len(pairs), *sums))
    return found


async def measure(folder: str, num_tasks: int, slips: float) -> None:
    models = OfflineSettings(models={AGENT: slips})
    async with served(create_app(models)) as url:
        await play(settings(num_tasks, url, ATTEMPTS), folder)
        found = await compare(settings(num_tasks, url, 2 * ATTEMPTS), folder)
    print(f"{'operator':<12} pairs  parents                    children")
    for one in found:
        print(one.line())
    outside = sum(one.outside for one in found)
    show({"benchmark": "difficulty", "tasks": num_tasks, "slips": slips, "outside": outside})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", nargs="?", type=Path)
    parser.add_argument("--tasks", type=int, default=96)
    parser.add_argument("--slips", type=float, default=3.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = str(given.dataset or Path(folder) / "difficulty")
        asyncio.run(measure(dataset, given.tasks, given.slips))


if __name__ == "__main__":
    main()
