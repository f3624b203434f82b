"""Rollouts: tokens and environment steps a second against episodes in flight, and weights' way.

    python benchmarks/bench_rollouts.py [--preset tiny] [--slots 16] [--delay 0.5] [--repeats 3]

A random model plays episodes of four turns, whose environment takes `--delay` seconds a step, as a
tool or a sandbox does. Prints one JSON line per measurement: for each number of episodes in flight
tokens and steps a second, the share of the slots that a pass drew for and the share of the time in
which the model waited for environments; the same in the deterministic mode; the tokens that are
read where the samples of a task share what they begin with, and where they do not; and the seconds
until new weights draw.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from torch import Tensor

from benchmarks.measured import show, spread
from records.chat.k2 import END
from records.seeds import rng_of
from synth.gym.core.environment import GymStep, GymTask, Reward
from synth.llm.wire.request import Message
from trainer.data.tokenizer import train_tokenizer
from trainer.inference import sampler, slots
from trainer.inference.drawing import Sampling
from trainer.inference.policies import ModelPolicy
from trainer.model.cache import LatentCache
from trainer.model.config import PRESETS
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model
from trainer.model.initialization import new_decoder
from trainer.rl.rollouts.figures import PhaseFigures
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.settings import RolloutSettings
from trainer.rl.rollouts.weights import LocalWeights

TURNS, SAMPLES = 4, 8

WORDS = "the order of the customer was sent to the store and comes back in three days. "


class SlowErrands:
    """Each step waits, and answers with a sentence or two."""

    family = "errands"

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s

    def tasks(self) -> Sequence[GymTask]:
        return [GymTask(f"errand-{n}", self.family, "train", (), {}) for n in range(1000)]

    async def begin(self, task: GymTask, seed: int) -> "SlowErrand":
        return SlowErrand(self, task, seed)

    async def close(self) -> None: ...


class SlowErrand:
    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, environment: SlowErrands, task: GymTask, seed: int) -> None:
        self._environment, self._seed, self._turns = environment, seed, 0
        self.messages: list[Message] = [
            {"role": "system", "content": WORDS * 8},
            {"role": "user", "content": f"{task.task_id}: {WORDS}"},
        ]

    async def step(self, action: Message) -> GymStep:
        self._turns += 1
        drawn = rng_of(str(self._seed), "delay", self._turns)
        await asyncio.sleep(self._environment.delay_s * 2 * drawn.random())
        self.messages.append(action)
        if self._turns == TURNS:
            return GymStep([], done=True, reward=Reward(drawn.random()))
        self.messages.append({"role": "user", "content": WORDS * drawn.randrange(1, 3)})
        return GymStep(self.messages[-1:], done=False)

    async def close(self) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds of a step, on average")
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1, help="that compute, on a CPU")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        for measurement in measurements(options, Path(folder)):
            show({**measurement, "parameters": {**vars(options), **measurement["parameters"]}})


def measurements(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    policy = policy_of(options, folder / "model")
    for deterministic in (False, True):
        for in_flight in (options.slots // 2, options.slots, 2 * options.slots, 4 * options.slots):
            settings = RolloutSettings(
                samples=SAMPLES, in_flight=in_flight, deterministic=deterministic
            )
            played = [play(policy, settings, options) for _ in range(options.repeats)]
            yield {
                "name": "rollouts",
                "parameters": {"in_flight": in_flight, "deterministic": deterministic},
                **spread([one.tokens_per_s for one in played]),
                "unit": "tokens/s",
                "steps_per_s": spread([one.env_steps_per_s for one in played]),
                "occupancy": spread([one.occupancy for one in played]),
                "waiting_share": spread([one.waiting_share for one in played]),
            }
    for least in (slots.COPIED_TOKENS, 10**9):
        read = read_by(policy, options, least)
        parameters = {"shared": least < 10**9}
        yield {"name": "rollouts_read", "parameters": parameters, "value": read, "unit": "tokens"}
    weights, state = LocalWeights(policy), import_model(folder / "model").state_dict()
    synced = [weights.take(state, n + 1).seconds * 1e3 for n in range(options.repeats)]
    yield {"name": "rollouts_weights", "parameters": {}, **spread(synced), "unit": "ms"}


def policy_of(options: argparse.Namespace, folder: Path) -> ModelPolicy:
    """Answers of some twenty tokens: a feature that all hidden states have ends them."""
    tokenizer = train_tokenizer([WORDS * 20], vocab_size=400)
    shape = PRESETS[options.preset].model_copy(update={"vocab_size": tokenizer.size})
    model = new_decoder(shape)
    with torch.no_grad():
        embedded, head = model.model.embed_tokens.weight, model.lm_head.weight
        embedded[:, 0] += 4 * float(embedded.std()) * shape.hidden_size**0.5
        head[tokenizer.special[END], 0] += 4.0 / shape.hidden_size**0.5
    export_model(model, folder)
    tokenizer.save(folder)
    sampling = Sampling(temperature=1.0, max_tokens=64)
    return ModelPolicy(folder, sampling, slots=options.slots, slot_tokens=1024)


def play(
    policy: ModelPolicy, settings: RolloutSettings, options: argparse.Namespace
) -> PhaseFigures:
    environment = SlowErrands(options.delay)
    policy.forget()
    with tempfile.TemporaryDirectory() as folder:
        rollouts = Rollouts(policy, [environment], settings, Path(folder))
        asyncio.run(rollouts.play(environment.tasks()[: options.tasks], 0))
    assert rollouts.figures is not None
    return rollouts.figures


def read_by(policy: ModelPolicy, options: argparse.Namespace, least: int) -> int:
    """Tokens that one phase feeds to the model."""
    fed, extend, before = 0, Decoder.extend, slots.COPIED_TOKENS

    def counted(
        self: Decoder, ids_NT: Tensor, counts_N: Tensor, slots_N: Tensor, cache: LatentCache
    ) -> Tensor:
        nonlocal fed
        fed += int(counts_N.sum())
        return extend(self, ids_NT, counts_N, slots_N, cache)

    Decoder.extend = counted
    sampler.COPIED_TOKENS = slots.COPIED_TOKENS = least
    try:
        quick = argparse.Namespace(**{**vars(options), "delay": 0.0})
        play(policy, RolloutSettings(samples=SAMPLES, in_flight=options.slots), quick)
    finally:
        Decoder.extend = extend
        sampler.COPIED_TOKENS = slots.COPIED_TOKENS = before
    return fed


if __name__ == "__main__":
    main()
