"""`synth run --estimate` against what the run then cost.

    python benchmarks/bench_estimate.py [--tasks 150] [--pilot 40]

Two configs with different numbers of turns, each on an endpoint that writes as usual and on one
that writes three times as much (`offline.misbehave.verbosity`). For each: the estimate of a fresh
dataset, the run that goes on from its pilot, and the same run without a pilot. Prints predicted and
real usage, and whether the pilot was paid for again. Exit code 1 if a prediction is over 20% off or
anything was paid twice.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flows.runtime.open_run import open_run
from offline_llm.server.misbehaviour import Misbehaviour
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.episode.rollout import RolloutConfig
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.estimate import Estimate, estimate, make_pilot
from synth.tasks.config import TaskConfig
from tests.flows.pipeline_work import content_of, run_pipeline

PRICED = RoleConfig(usd_per_million_prompt=0.6, usd_per_million_completion=2.5)
TURNS = {
    "short": TaskConfig(simple=1.0, complex=0.0),
    "long": TaskConfig(simple=0.0, complex=1.0),
}


def config_of(turns: str, verbosity: float, num_tasks: int) -> RunConfig:
    return RunConfig(
        name="estimate",
        roles=dict.fromkeys(("generator", "agent", "user", "judge"), PRICED),
        domains=(BUILT_IN,),
        servers=(),
        code=(),
        tasks=TURNS[turns],
        rollouts=RolloutConfig(),
        num_tasks=num_tasks,
        max_failed=1.0,
        offline=OfflineConfig(misbehave=Misbehaviour(verbosity=verbosity)),
    )


async def piloted(config: RunConfig, folder: Path, pilot: int) -> Estimate:
    async with open_run(config, str(folder), command="bench estimate") as run:
        made = await make_pilot(run, pilot)
        return estimate(run, made)


def real_usage(folder: Path) -> tuple[float, ...]:
    """Requests, tokens in, tokens out and USD of the ledger, probes left out."""
    query = (
        "select count(*), sum(prompt_tokens), sum(completion_tokens), sum(cost_usd) from llm_calls"
        " where not cache_hit and stage != 'probe'"
    )
    [row] = Dataset.open(folder).connect().execute(query).fetchall()
    return tuple(map(float, row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=150)
    parser.add_argument("--pilot", type=int, default=40)
    args = parser.parse_args()
    print("| turns | writes | what | predicted | between | real | off | paid again |")
    print("|---|---|---|---|---|---|---|---|")
    good = True
    for turns in TURNS:
        for verbosity in (1.0, 3.0):
            config = config_of(turns, verbosity, args.tasks)
            with tempfile.TemporaryDirectory() as parent:
                first, second = Path(parent) / "piloted", Path(parent) / "whole"
                made = asyncio.run(piloted(config, first, args.pilot))
                run_pipeline(first, config)
                run_pipeline(second, config)
                real = real_usage(second)
                twice = real_usage(first)[0] - real[0]
                assert content_of(first) == content_of(second), "the pilot changed rows"
            probe = next(line for line in made.lines if line.stage == "probe")
            total = made.total
            for number, what in enumerate(("requests", "tokens in", "tokens out", "USD")):
                left_out = probe.expected[number]
                said = total.expected[number] - left_out
                low, high = total.low[number] - left_out, total.high[number] - left_out
                off = said / real[number] - 1
                good = good and abs(off) <= 0.2 and twice == 0
                form = ",.3f" if what == "USD" else ",.0f"
                print(
                    f"| {turns} | x{verbosity:g} | {what} | {said:{form}} | {low:{form}} -"
                    f" {high:{form}} | {real[number]:{form}} | {off:+.1%} | {twice:.0f} |",
                    flush=True,
                )
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
