"""Rollouts: tokens and environment steps a second against episodes in flight, and weights' way.

    python benchmarks/bench_rollouts.py [--preset tiny] [--slots 8] [--in-flight 1 2 4 8 16 32]
                                        [--delay 0.25] [--repeats 3] [--threads 2]

A random model plays episodes of three turns, whose environment takes `--delay` seconds a step on
average, as a tool or a sandbox does. Of each number of episodes in flight two waves are played, and
the samples of a task at least, so that the last ones are alone for a like share of the time. Prints
one JSON line per measurement: tokens and steps a second, the share of the slots that a pass drew
for, the share of the time in which the model waited for environments, and the share of episodes
that came to their end; the same in the deterministic mode with as many episodes as slots; the
tokens that are read where the samples of a task share what they begin with, and where they do not;
and the milliseconds until new weights draw, the sender's checksum included.
"""

import argparse
import asyncio
import sys
import tempfile
import time
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
from trainer.inference.weights import checksum_of
from trainer.model.cache import LatentCache
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model
from trainer.model.initialization import new_decoder
from trainer.rl.rollouts.figures import PhaseFigures
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.settings import RolloutSettings
from trainer.rl.rollouts.weights import LocalWeights

TURNS, SAMPLES, WAVES = 3, 4, 2

LONGEST = 128
"""Tokens of an answer: hardly one in ten thousand is as long."""

SLOT_TOKENS = 768
"""Those of the longest episode."""

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
    for measurement in measured():
        show(measurement)


def measured(arguments: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """By arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--slots", type=int, default=8, help="answers that are drawn together")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--delay", type=float, default=0.25, help="seconds of a step, on average")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="that compute, on a CPU")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        for measurement in measurements(options, Path(folder)):
            yield {**measurement, "parameters": {**vars(options), **measurement["parameters"]}}


def measurements(
    options: argparse.Namespace, folder: Path, *, shape: TransformerConfig | None = None
) -> Iterator[dict[str, Any]]:
    """`shape`: instead of the preset's."""
    policy = policy_of(shape or PRESETS[options.preset], options.slots, folder / "model")
    cases = [*((number, False) for number in options.in_flight), (options.slots, True)]
    play(policy, settings_of(*cases[0]), 0.0)  # a warm-up
    for in_flight, deterministic in cases:
        settings = settings_of(in_flight, deterministic)
        played = [play(policy, settings, options.delay) for _ in range(options.repeats)]
        ended = [one.account.outcomes.get("completed", 0) / one.account.begun for one in played]
        yield {
            "name": "rollouts",
            "parameters": {"in_flight": in_flight, "deterministic": deterministic},
            **spread([one.tokens_per_s for one in played], 1),
            "unit": "tokens/s",
            "steps_per_s": spread([one.env_steps_per_s for one in played]),
            "occupancy": spread([one.occupancy for one in played]),
            "waiting_share": spread([one.waiting_share for one in played]),
            "tokens_a_step": round(played[0].tokens / played[0].env_steps, 1),
            "episodes": played[0].account.begun,
            "completed_share": min(ended),
        }
    for least in (slots.COPIED_TOKENS, 10**9):
        read = read_by(policy, options.slots, least)
        parameters = {"shared": least < 10**9}
        yield {"name": "rollouts_read", "parameters": parameters, "value": read, "unit": "tokens"}
    yield of_weights(policy, folder, options.repeats)


def settings_of(in_flight: int, deterministic: bool) -> RolloutSettings:
    """Nothing but the environment ends an episode: answers may be empty, and say the same."""
    return RolloutSettings(
        samples=SAMPLES,
        in_flight=in_flight,
        deterministic=deterministic,
        token_budget=TURNS * LONGEST,
        silent_answers=TURNS + 1,
        repeats=None,
    )


def of_weights(policy: ModelPolicy, folder: Path, repeats: int) -> dict[str, Any]:
    """Of a model of this process to the sampler, as an iteration ends."""
    weights, model = LocalWeights(policy), import_model(folder / "model")
    taken: list[float] = []
    for number in range(repeats + 1):
        began = time.perf_counter()
        state = model.state_dict()
        weights.take(state, number + 1, checksum=checksum_of(state.items()))
        taken.append(1e3 * (time.perf_counter() - began))
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    return {
        "name": "rollouts_weights",
        "parameters": {"mib": round(size / 2**20, 1)},
        **spread(taken[1:]),
        "unit": "ms",
    }


def policy_of(shape: TransformerConfig, slots: int, folder: Path) -> ModelPolicy:
    """Answers of some twelve tokens: a feature that all hidden states have ends them."""
    tokenizer = train_tokenizer([WORDS * 20], vocab_size=400)
    shape = shape.model_copy(update={"vocab_size": tokenizer.size})
    model = new_decoder(shape)
    with torch.no_grad():
        embedded, head = model.model.embed_tokens.weight, model.lm_head.weight
        embedded[:, 0] += 4 * float(embedded.std()) * shape.hidden_size**0.5
        head[tokenizer.special[END], 0] += 4.9 / shape.hidden_size**0.5
    export_model(model, folder)
    tokenizer.save(folder)
    sampling = Sampling(temperature=1.0, max_tokens=LONGEST)
    return ModelPolicy(
        folder, sampling, slots=slots, slot_tokens=SLOT_TOKENS, device="cpu", routes=True
    )


def play(policy: ModelPolicy, settings: RolloutSettings, delay_s: float) -> PhaseFigures:
    """Two waves of what is in flight, or one task's samples."""
    environment = SlowErrands(delay_s)
    tasks = environment.tasks()[: max(1, WAVES * settings.in_flight // SAMPLES)]
    policy.forget()
    with tempfile.TemporaryDirectory() as folder:
        rollouts = Rollouts(policy, [environment], settings, Path(folder))
        asyncio.run(rollouts.play(tasks, 0))
    assert rollouts.figures is not None
    return rollouts.figures


def read_by(policy: ModelPolicy, in_flight: int, least: int) -> int:
    """Tokens that one phase feeds to the model, if beginnings of `least` tokens are copied."""
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
        play(policy, settings_of(in_flight, True), 0.0)
    finally:
        Decoder.extend = extend
        sampler.COPIED_TOKENS = slots.COPIED_TOKENS = before
    return fed


if __name__ == "__main__":
    main()
