"""`synth rephrase --estimate` and `--pilot`: what rewriting a corpus will take."""

import asyncio
import json
import tempfile
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from flows.cli.shared.going_on import same_command_goes_on
from flows.cli.shared.output import say
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.rephrasing.estimate import (
    RephraseEstimate,
    as_offline,
    beginning_of,
    drawn,
    estimate_of,
    make_some,
)
from synth.rephrasing.rephrase import decide
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.config import RephraseConfig


def print_rephrase_estimate(config: RephraseConfig, *, command: str, json_: bool) -> None:
    """Sends no request; what the offline model writes for it is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        made = asyncio.run(_estimated(config, folder, command))
    if json_:
        print(json.dumps(made._asdict() | {"roles": [r._asdict() for r in made.roles]}))  # noqa: T201
        return
    table = Table(box=SIMPLE)
    for name in ("role", "requests", "tokens in", "tokens out", "USD"):
        table.add_column(name, justify="left" if name == "role" else "right")
    for one in made.roles:
        numbers = (one.requests, one.prompt_tokens, one.completion_tokens)
        table.add_row(one.role, *(f"{n:,.0f}" for n in numbers), f"{one.usd:,.4f}")
    Console(width=100).print(table)
    least = "at least " if made.at_least else ""
    say(
        f"{least}{made.documents:,} documents of {made.source_tokens:,.0f} tokens, each rewritten "
        f"{config.rewrites} times. No request was sent: the lengths are the offline model's, and "
        "no answer comes back faulty; --pilot N measures both on your endpoint"
    )


async def _estimated(config: RephraseConfig, folder: str, command: str) -> RephraseEstimate:
    async with open_run(as_offline(config), folder, command=command) as run:
        return await estimate_of(config, run)


def run_pilot(
    config: RephraseConfig, dataset: Path, *, documents: int, command: str, json_: bool
) -> None:
    """The pilot's rewrites are committed to `dataset` and decided about, so that the summary tells
    what is kept; the run finds them there."""
    with same_command_goes_on():
        report = asyncio.run(_piloted(config, str(dataset), documents, command))
    summary = summarise(Dataset.open(dataset))
    if json_:
        print(json.dumps(summary.as_json()))  # noqa: T201
        return
    reasons = ", ".join(f"{reason} {n}" for reason, n in report.reasons.items())
    say(f"pilot of {documents} documents: {report.summary()}{f' ({reasons})' if reasons else ''}")
    print("\n".join(lines(summary)))  # noqa: T201
    say(f"the pilot is part of the run, which goes on from it: {dataset}")


async def _piloted(
    config: RephraseConfig, dataset: str, documents: int, command: str
) -> StageReport:
    async with open_run(config, dataset, command=command) as run:
        with same_command_goes_on(begun=True):
            beginning = await asyncio.to_thread(beginning_of, RephraseStage(run))
            made = await make_some(run, beginning.windows, drawn(beginning.windows, documents))
            await decide(run, Run.run_stage)
            return made
