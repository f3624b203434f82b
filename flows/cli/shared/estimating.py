"""`synth run CONFIG --estimate`: a pilot of the run, and what the whole of it will cost."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from flows.cli.shared.going_on import same_command_goes_on
from flows.cli.shared.output import say
from flows.runtime.open_run import open_run
from synth.pipeline.config import RunConfig
from synth.pipeline.estimate import Estimate, EstimateLine, estimate, make_pilot

_COUNTS = ("requests", "prompt_tokens", "completion_tokens")


def print_estimate(
    config: RunConfig, dataset: Path, *, pilot: int, command: str, json_: bool
) -> None:
    """The pilot's items are committed to `dataset`, where the run finds them."""
    with same_command_goes_on():
        made = asyncio.run(_estimated(config, str(dataset), pilot, command))
    if json_:
        print(json.dumps(_plain(made)))  # noqa: T201
        return
    table = Table(box=SIMPLE)
    for name in ("stage", "role", "requests", "tokens in", "tokens out", "USD", "+-", "spent"):
        table.add_column(name, justify="left" if name in ("stage", "role") else "right")
    for line in (*made.lines, made.total):
        table.add_row(*_row(line), end_section=line is made.lines[-1])
    Console(width=100).print(table)
    low, high = made.total.low, made.total.high
    if made.rounds is not None:
        least, expected, most = (
            f"{used.usd:,.4f}" for used in (made.rounds.low, made.rounds.expected, made.rounds.high)
        )
        say(
            f"{expected} USD of it, between {least} and {most}, are for tasks that rounds make"
            " harder or easier: as many as the pilot's pass rates call for, none, or one a task"
            " and round"
        )
    say(
        f"the whole run of {made.num_tasks} tasks, {made.num_known} of them made; 19 times of 20"
        f" between {low.requests:,.0f} and {high.requests:,.0f} requests,"
        f" {low.tokens:,.0f} and {high.tokens:,.0f} tokens,"
        f" {low.usd:,.4f} and {high.usd:,.4f} USD\n"
        f"the pilot is part of the run, which goes on from it: {dataset}"
    )


async def _estimated(config: RunConfig, dataset: str, pilot: int, command: str) -> Estimate:
    async with open_run(config, dataset, command=command) as run:
        with same_command_goes_on(begun=True):
            made = await make_pilot(run, pilot)
            return await asyncio.to_thread(estimate, run, made)


def _row(line: EstimateLine) -> list[str]:
    expected = line.expected
    numbers = [f"{getattr(expected, column):,.0f}" for column in _COUNTS]
    half = max(expected.usd - line.low.usd, line.high.usd - expected.usd)
    dollars = [f"{usd:,.4f}" for usd in (expected.usd, half, line.spent.usd)]
    return [line.stage, line.role, *numbers, *dollars]


def _plain(made: Estimate) -> dict[str, object]:
    """As JSON: numbers by name, so that a program needs no order."""
    lines = [
        {"stage": line.stage, "role": line.role}
        | {name: getattr(line, name)._asdict() for name in ("spent", "expected", "low", "high")}
        for line in (*made.lines, made.total)
    ]
    head = {k: v for k, v in asdict(made).items() if k not in ("lines", "total", "rounds")}
    rounds = made.rounds and {
        name: getattr(made.rounds, name)._asdict() for name in ("expected", "low", "high")
    }
    return head | {"lines": lines[:-1], "total": lines[-1], "rounds": rounds}
