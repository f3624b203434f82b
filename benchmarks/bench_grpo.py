"""GRPO as our trainer runs it, beside TRL's: seconds an iteration, tokens a second, reward.

    python benchmarks/bench_grpo.py [--iterations 16] [--prompts 6] [--samples 8] [--tokens 32]
                                    [--lr 1e-3] [--steps 200] [--repeats 3] [--threads 2]

A tiny model is fine-tuned on sums that are added up step by step, in which some steps are wrong
(`grpo_sums.py`). From these weights each way takes as many iterations of GRPO, in a process of its
own, one after the other, on the same prompts in the same order with as many samples and the same
limit of tokens: clipped ratios, the mean over the tokens of each sample, advantages that are not
divided by their deviation, no reference model, one step an iteration, a constant learning rate.
- `ours`: `python -m trainer rl` with MuonClip, which is its optimiser;
- `ours, AdamW`: the same with AdamW for matrices too, as TRL has it;
- `TRL`: `GRPOTrainer` on transformers' DeepSeek-V3 and its `generate`, AdamW.

The draws of the ways are their own, so rewards of an iteration are of other samples. Ours leaves
out samples without a signal, sends tokens to the experts that they were drawn by, and keeps what
was played; TRL does none of these. Prints a JSON line for each way: seconds of an iteration (median
of a run's, but for the first one; then over the repeats, each with a seed of its own), the share in
which it drew and scored, drawn tokens a second of all its time and of that in which it drew, mean
reward of the first and last quarter of the iterations, and the curve (median over the repeats); and
a line for each ratio of times, of the same repeat.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.grpo_ways import GrpoCourse, GrpoPlan, fine_tuned, ours, with_trl
from benchmarks.measured import show, spread
from records.processes import end_with_parent
from trainer.model.config import PRESETS, TransformerConfig

Way = Callable[[Path, Path, GrpoPlan, int], GrpoCourse]

WAYS: Mapping[str, Way] = {
    "ours": partial(ours, muon=True),
    "ours, AdamW": partial(ours, muon=False),
    "TRL": with_trl,
}

MISTAKES = 0.25
"""Share of wrong steps in what the model is fine-tuned on."""

SHAPE = TransformerConfig.model_validate(
    PRESETS["tiny"].model_dump()
    | {"vocab_size": 320, "num_layers": 3, "num_experts": 8, "routed_scale": 0.0}
)
"""1.4M parameters, of which a minute of two cores makes something."""


def main() -> None:
    for measurement in measured():
        show(measurement)


def measured(arguments: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """By arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--iterations", type=int, default=16, help="two at least")
    parser.add_argument("--prompts", type=int, default=6, help="of an iteration")
    parser.add_argument("--samples", type=int, default=8, help="of a prompt")
    parser.add_argument("--tokens", type=int, default=32, help="of an answer at most")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=200, help="of fine-tuning before")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for measurement in measurements(options, Path(folder)):
            yield {**measurement, "parameters": vars(options)}


def measurements(
    options: argparse.Namespace,
    folder: Path,
    *,
    ways: Sequence[str] = tuple(WAYS),
    shape: TransformerConfig = SHAPE,
) -> Iterator[dict[str, Any]]:
    """`folder` is left with the fine-tuned model in `start/model` and a folder for each run."""
    plan = GrpoPlan(
        options.iterations, options.prompts, options.samples, options.tokens, options.lr
    )
    start = alone(
        options.threads, partial(fine_tuned, folder, shape, options.steps, mistakes=MISTAKES)
    )
    found: dict[str, list[GrpoCourse]] = {name: [] for name in ways}
    for repeat in range(options.repeats):
        for number, name in enumerate(ways):
            out = folder / f"run-{number}-{repeat}"
            found[name].append(
                alone(options.threads, partial(WAYS[name], start, out, plan, repeat))
            )
    for name, courses in found.items():
        yield {"name": "grpo", "way": name, **figures(courses)}
    base = found.pop(ways[0])
    for name, courses in found.items():
        pairs = zip(base, courses, strict=True)
        ratios = [_seconds(other) / _seconds(own) for own, other in pairs]
        yield {"name": "grpo_ratio", "way": name, **spread(ratios), "unit": f"x {ways[0]}"}


def alone(threads: int, work: Callable[[], Any]) -> Any:
    """What the work comes to, in a process that does nothing else and then ends."""
    context = get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=_begin, initargs=(threads,)
    ) as pool:
        return pool.submit(work).result()


def _begin(threads: int) -> None:
    torch.set_num_threads(threads)
    end_with_parent()


def figures(courses: Sequence[GrpoCourse]) -> dict[str, Any]:
    quarter = max(1, len(courses[0].rewards) // 4)

    def share(one: GrpoCourse) -> float:
        return sum(one.play_s[1:]) / sum(one.iteration_s[1:])

    def per_second(one: GrpoCourse, seconds: Sequence[float]) -> float:
        return sum(one.drawn[1:]) / sum(seconds[1:])

    return {
        **spread([_seconds(one) for one in courses], 3),
        "unit": "s/iteration",
        "playing_share": spread([share(one) for one in courses]),
        "tokens_per_s": spread([per_second(one, one.iteration_s) for one in courses], 0),
        "playing_tokens_per_s": spread([per_second(one, one.play_s) for one in courses], 0),
        "drawn": spread([fmean(one.drawn) for one in courses], 0),
        "reward_first": spread([fmean(one.rewards[:quarter]) for one in courses], 3),
        "reward_last": spread([fmean(one.rewards[-quarter:]) for one in courses], 3),
        "curve": [
            round(median(at), 3) for at in zip(*(one.rewards for one in courses), strict=True)
        ],
    }


def _seconds(course: GrpoCourse) -> float:
    """Of an iteration, but for the first one, in which memory is taken and much is made."""
    return median(course.iteration_s[1:])


if __name__ == "__main__":
    main()
