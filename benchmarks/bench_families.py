"""Environment steps a second of each family of the gym, without a model: recorded answers.

    python benchmarks/bench_families.py [--seconds 1] [--at-once 1 16] [--repeats 3] [--tasks 16]

A family's tasks are answered in turns, by their right answers where the environment has them, for
`--seconds`, so many episodes beside each other; an episode of these families is one step, with its
beginning and its end. Tool-use tasks are played by `bench_gym.py` on a dataset of `--tasks` that
the offline model makes first. Prints a JSON line for each: steps a second of wall clock, the median
milliseconds of a step, and the share of steps with the whole reward, which says that answers are
looked at and not only refused; the share without any reward, where an environment could not tell.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import bench_gym
from benchmarks.measured import show, spread
from records.seeds import rng_of
from sandboxes.lending.leases import available
from synth.episode.tools.code_environments import code_environments
from synth.gym.core.environment import GymEnvironment, GymTask
from synth.gym.programs.answers import TAGS
from synth.gym.registry import Gym, GymConfig

PROSE = (
    "The harbour wakes before the town does. Boats come in with the tide, and somebody counts the "
    "crates twice. By noon the market smells of salt and oranges.\n\n"
    "Nobody hurries in the afternoon. The nets are mended, the cats are fed, and the evening ferry "
    "is late as it always is."
)
"""An answer to any writing request: it keeps some constraints and breaks others."""

TOOL_USE = "tool_use"


class RecordedFamily(NamedTuple):
    settings: Callable[[Path], Mapping[str, Any]]
    """Of the family, given a folder to put files in."""
    answers: Callable[[Sequence[GymTask]], list[str]]


class PlayedSteps(NamedTuple):
    seconds: float
    """From the first to the end of the last."""
    step_s: list[float]
    """Of each step."""
    whole: int
    """Steps with the whole reward."""
    outside: int
    """Steps that told no reward, for a reason that is outside the answer."""


def boxed(tasks: Sequence[GymTask]) -> list[str]:
    return [f"<answer>{task.body['answer']}</answer>" for task in tasks]


def programs(tasks: Sequence[GymTask]) -> list[str]:
    environments = code_environments(("all",)).values()
    known = {one.problem.name: one.problem for one in environments if one.problem is not None}
    problems = [known[task.body["problem"]] for task in tasks]
    return [f"```{TAGS[one.language][0]}\n{one.reference}\n```" for one in problems]


def slashed(tasks: Sequence[GymTask]) -> list[str]:
    """Quotients in another form than the right one: what has to be compared as mathematics."""
    found = []
    for task in tasks:
        above, below = task.body["answer"].removeprefix("\\frac{").removesuffix("}").split("}{")
        found.append(f"<answer>{above}/{below}</answer>")
    return found


def quotients(folder: Path) -> Mapping[str, Any]:
    """A file of questions for the family `maths`, which has none of its own."""
    path = folder / "quotients.jsonl"
    with path.open("w") as file:
        for index in range(400):
            rng = rng_of("bench-families", "quotient", index)
            a, b, c, d = (rng.randint(2, 19) for _ in range(4))
            total = Fraction(a, b) + Fraction(c, d)
            right = f"\\frac{{{total.numerator}}}{{{total.denominator}}}"
            question = f"What is \\frac{{{a}}}{{{b}}} + \\frac{{{c}}}{{{d}}}?"
            file.write(json.dumps({"question": question, "answer": right}) + "\n")
    return {"files": [{"path": str(path)}]}


FAMILIES: Mapping[str, RecordedFamily] = {
    "instructions": RecordedFamily(lambda _: {}, lambda tasks: [PROSE] * len(tasks)),
    "maths": RecordedFamily(quotients, slashed),
    "programs": RecordedFamily(lambda _: {}, programs),
    "puzzles": RecordedFamily(lambda _: {}, boxed),
    "reasoning": RecordedFamily(lambda _: {}, boxed),
}
"""Those whose answers are known without a model; a family is added with one line."""


def main() -> None:
    for measurement in measured():
        show(measurement)


def measured(arguments: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """By arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    everything = [*FAMILIES, TOOL_USE]
    parser.add_argument("--families", nargs="+", choices=everything, default=everything)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each repeat")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=16, help="of tool use")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.families:
            if name == "programs" and (why := available()) is not None:
                print(f"bench_families: programs are left out: {why}", file=sys.stderr)
            elif name == TOOL_USE:
                yield from of_tool_use(options, Path(folder))
            else:
                yield from measurements(name, options, Path(folder))


def of_tool_use(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    made = bench_gym.made(folder / "dataset", options.tasks)
    yield from bench_gym.measurements(made, folder, options)


def measurements(name: str, options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    family = FAMILIES[name]
    gym = Gym.of(GymConfig(families={name: family.settings(folder)}))
    tasks = gym.tasks()
    pairs = list(zip(tasks, family.answers(tasks), strict=True))
    for at_once in options.at_once:
        played = asyncio.run(repeated(gym.environments[name], pairs, at_once, options))
        rates = [len(one.step_s) / one.seconds for one in played]
        steps = sum(len(one.step_s) for one in played)
        yield {
            "name": "gym_family",
            "parameters": {"family": name, "at_once": at_once, "tasks": len(tasks)},
            **spread(rates, 1),
            "unit": "steps/s",
            "step_ms": round(1e3 * median(s for one in played for s in one.step_s), 2),
            "steps": steps,
            "whole_share": round(sum(one.whole for one in played) / steps, 3),
            "outside_share": round(sum(one.outside for one in played) / steps, 3),
        }


async def repeated(
    environment: GymEnvironment,
    pairs: Sequence[tuple[GymTask, str]],
    at_once: int,
    options: argparse.Namespace,
) -> list[PlayedSteps]:
    """The first one warms up, and is left out."""
    try:
        return [
            await played(environment, pairs, at_once, options.seconds)
            for _ in range(options.repeats + 1)
        ][1:]
    finally:
        await environment.close()


async def played(
    environment: GymEnvironment,
    pairs: Sequence[tuple[GymTask, str]],
    at_once: int,
    seconds: float,
) -> PlayedSteps:
    """At least one step, and what was begun is ended."""
    numbers, began = count(), time.perf_counter()
    step_s: list[float] = []
    whole = outside = 0

    async def work() -> None:
        nonlocal whole, outside
        while not step_s or time.perf_counter() - began < seconds:
            task, answer = pairs[next(numbers) % len(pairs)]
            episode = await environment.begin(task, 0)
            asked = time.perf_counter()
            step = await episode.step({"role": "assistant", "content": answer})
            step_s.append(time.perf_counter() - asked)
            await episode.close()
            whole += step.reward is not None and step.reward.value >= 1
            outside += step.outside is not None

    await asyncio.gather(*(work() for _ in range(at_once)))
    return PlayedSteps(time.perf_counter() - began, step_s, whole, outside)


if __name__ == "__main__":
    main()
