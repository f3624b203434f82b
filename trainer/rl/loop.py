"""A run of reinforcement learning from its config to a finished model, and on from its last
checkpoint.

The folder of a run holds `config.json`, `rollouts/` (what a run goes on from), `samples/` and
`tests/` (what was played, for reading), `gym/` (what environments keep), `checkpoints/`,
`metrics.jsonl`, `tensorboard/`, `curves.html`, `coverage.md` and at a good end `scores.json` and
`model/`.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from records.files import write_atomic
from sandboxes.lending.capacity import machine_live
from synth.gym.registry import Gym
from trainer.data.chat_format import ChatFormat, format_of
from trainer.data.corpus import make_corpus
from trainer.data.row_length import RowLimits
from trainer.data.tokenizer import Tokenizer
from trainer.inference.policies import ModelPolicy
from trainer.model.exchange import import_model, model_folder
from trainer.rl.objective.ptx import PtxRows
from trainer.rl.objective.stepper import RLStepper
from trainer.rl.plots import plots_of
from trainer.rl.run import Reinforced, RLRun
from trainer.rl.settings import RLConfig
from trainer.rl.testing import score_to_json
from trainer.training.account import AccountLine
from trainer.training.curves import write_curves
from trainer.training.devices import device_of, weight_dtype
from trainer.training.metrics import Metrics, MetricsLine, read_metrics
from trainer.training.run_folder import (
    LOCK,
    TOKENS,
    held,
    refuse_another_run,
    write_settings,
)

log = logging.getLogger(__name__)

GYM, SCORES, COVERAGE = "gym", "scores.json", "coverage.md"

FREE = {
    "out", "device", "iterations", "keep", "checkpoint_every", "max_bad_steps", "test.heldout",
    "max_lost_iterations",
    "learning.micro_rows", "learning.spike", "learning.recompute", "gym.budget",
    "sandboxes.backend", "sandboxes.live", "sandboxes.kubernetes",
}  # fmt: skip
"""What a run may change on its way."""

BEFORE_CONFIG = {LOCK, GYM, TOKENS}
"""What a run has written that was killed, or refused, before its settings are."""

OnIteration = Callable[[MetricsLine], None]


def reinforce(config: RLConfig, *, on_iteration: OnIteration | None = None) -> Reinforced:
    """Learn to the end, from the last checkpoint in the folder where there is one.

    ConfigError for settings that cannot work; SynthError, and no model, for a run that has gone
    wrong.
    """
    return asyncio.run(_reinforce(config, on_iteration or (lambda line: None)))


async def _reinforce(config: RLConfig, on_iteration: OnIteration) -> Reinforced:
    async with opened_run(config) as run:
        if (first := await run.begin()) is not None:
            on_iteration(first)
        while not run.ended:
            on_iteration(await run.iterate())
        return await finished(run)


@asynccontextmanager
async def opened_run(config: RLConfig) -> AsyncIterator[RLRun]:
    """The run of a config, alone in its folder; behind it its environments are closed and its
    curves are drawn."""
    with held(config.folder):
        refuse_another_run(config, free=FREE, before=BEFORE_CONFIG)
        async with config.sandboxes.in_use(), _opened_gym(config) as gym:
            run = _opened(config, gym)
            write_settings(config)
            try:
                with Metrics(config.folder, from_step=run.measured) as metrics:
                    run.metrics = metrics
                    yield run
            finally:
                await run.close()
                write_atomic(config.folder / COVERAGE, f"{run.choice.coverage()}\n".encode())
                draw(config)  # what a run was like that stopped is what somebody wants to see


@asynccontextmanager
async def _opened_gym(config: RLConfig) -> AsyncIterator[Gym]:
    live = config.sandboxes.live_of(config.rollouts.in_flight, machine_live())
    gym = Gym.of(config.gym, config.folder / GYM, live=live)
    try:
        yield gym
    finally:
        await gym.close()


def _opened(config: RLConfig, gym: Gym) -> RLRun:
    device, start = device_of(config.device), model_folder(Path(config.start_from))
    chat = format_of(Path(config.start_from))
    policy = ModelPolicy(
        start,
        config.sampling_at(0),
        chat=chat,
        constrained=config.constrained,
        slots=config.slots,
        slot_tokens=config.slot_tokens,
        device=config.device,
        routes=config.learning.replay_routes,
    )
    model = import_model(start, device=device, dtype=weight_dtype(device))
    reference = None
    if config.learning.has_reference:
        reference = import_model(start, device=device, dtype=weight_dtype(device)).eval()
    return RLRun(
        config,
        model,
        policy,
        gym,
        RLStepper.of(model, config.learning, reference),
        _good(config, policy.tokenizer, chat),
        chat,
        start,
    )


def _good(config: RLConfig, tokenizer: Tokenizer, chat: ChatFormat) -> PtxRows | None:
    if not config.good:
        return None
    corpus = make_corpus(
        config.good,
        tokenizer,
        config.folder / TOKENS,
        chat=chat,
        limits=RowLimits(config.good_row_tokens, longer="leave_out"),
    )
    return PtxRows(
        corpus,
        row_tokens=config.good_row_tokens,
        rows=config.learning.ptx.rows,
        seed=config.seed,
        pad=tokenizer.special["[PAD]"],
    )


async def finished(run: RLRun) -> Reinforced:
    """The end of a run that has no iteration left: scores, model, curves."""
    done = await run.end()
    content = {
        "exported": done.exported,
        "validation": done.validation,
        "before": [score_to_json(one) for one in done.before],
        "after": [score_to_json(one) for one in done.after],
    }
    write_atomic(done.folder / SCORES, json.dumps(content, indent=2).encode())
    return done


def draw(config: RLConfig) -> None:
    """Write `curves.html` of the metrics so far."""
    lines = read_metrics(config.folder)
    if not lines:
        return
    write_curves(
        config.folder,
        lines,
        title=f"rl {config.folder.name}",
        about=f"{config.iterations:,} iterations of {config.choice.tasks} tasks, "
        f"{config.rollouts.samples} samples each",
        counts=samples_account(lines),
        plots=plots_of(lines),
        axis="iteration",
    )


def samples_account(lines: Sequence[MetricsLine]) -> list[AccountLine]:
    """Samples by how they ended, over the whole run."""
    outcomes: Counter[str] = Counter()
    for line in lines:
        for name, value in line.items():
            if name.startswith("outcome/"):
                outcomes[name.removeprefix("outcome/")] += value
    ended = [
        AccountLine("samples", number, "ended", outcome, "")
        for outcome, number in sorted(outcomes.items())
    ]
    return [AccountLine("samples", outcomes.total(), "played", "", ""), *ended]
