"""What Prefect's UI shows of a training run: its curves, its tables, what it came to.

All of it is read from the folder of the run, so that a run that went on shows its whole length.
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from trainer.training.account import account_of, as_lines
from trainer.training.curves import FILE as CURVES
from trainer.training.curves import PLOTS, Plot, marked, pictures
from trainer.training.ending import Trained
from trainer.training.metrics import MetricsLine, read_metrics
from trainer.training.run_folder import MODEL

log = logging.getLogger("synth.flows")

SHOWN = 20
"""Lines of metrics in their table, at most."""

COLUMNS = {
    "step": "step",
    "loss": "loss",
    "validation_loss": "newest validation loss",
    "grad_norm": "gradient norm",
    "lr": "learning rate",
    "max_logit": "largest logit",
    "clipped_heads": "heads clipped",
    "tokens": "tokens of documents",
    "tokens_per_s": "tokens/s",
    "padding": "padding",
    "skipped": "skipped",
}
"""Metric -> how the table calls it."""


async def tried(showing: Awaitable[object]) -> None:
    """A failure of showing is no reason to lose the training."""
    (failed,) = await asyncio.gather(showing, return_exceptions=True)
    if isinstance(failed, Exception):
        log.warning("the UI does not show all of this run: %s", failed)


PlotsOf = Callable[[Sequence[MetricsLine]], Sequence[Plot]]
"""Which pictures are drawn of a run's metrics."""


class Curves:
    """The curves of a run as one artifact, which is changed as the run goes on."""

    def __init__(self, folder: Path, plots: PlotsOf = lambda lines: PLOTS, axis: str = "step"):
        self._folder, self._plots, self._axis = folder, plots, axis
        self._artifact: UUID | None = None

    async def draw(self) -> None:
        markdown = await asyncio.to_thread(self._drawn)
        if self._artifact is None:
            made = await acreate_markdown_artifact(
                key="curves", markdown=markdown, description="Drawn anew as the run goes on"
            )
            assert isinstance(made, UUID)
            self._artifact = made
        else:
            async with get_client() as client:
                await client.update_artifact(self._artifact, ArtifactUpdate(data=markdown))

    def _drawn(self) -> str:
        """Markdown of pictures that carry themselves: the UI's server has no way to our files."""
        lines = read_metrics(self._folder)
        images = (
            f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
            for title, svg in pictures(lines, self._plots(lines), axis=self._axis)
        )
        return "\n\n".join(filter(None, (marked(lines), "\n".join(images))))


async def show_tables(folder: Path) -> None:
    """Metrics, thinned, and what was learnt from and passed over."""
    await acreate_table_artifact(
        key="metrics",
        table=_thinned(read_metrics(folder)),
        description="Lines of the run's metrics, evenly thinned",
    )
    counts = [
        {"of": c.what, "count": c.number, "became": c.became, "why": c.reason, "meaning": c.meaning}
        for c in account_of(folder)
    ]
    await acreate_table_artifact(
        key="rows-and-steps",
        table=counts,
        description="Rows learnt from and left out, steps taken and skipped, by reason",
    )


def summary(done: Trained) -> str:
    """A finished run in a few lines of markdown."""
    begun = f"; the first {done.begun:,} steps were taken before" if done.begun else ""
    items = [
        *as_lines(account_of(done.folder)),
        f"model for transformers: `{(done.folder / MODEL).resolve()}`",
        f"curves: `{(done.folder / CURVES).resolve()}`",
    ]
    listed = "\n".join(f"- {item}" for item in items)
    return f"**{done.words}{begun}.**\n\n{listed}\n"


def _thinned(lines: list[MetricsLine]) -> list[dict[str, Any]]:
    """The last line, and others at even distances before it, each with the newest validation."""
    every = max(1, -(-len(lines) // SHOWN))
    rows: list[dict[str, Any]] = []
    newest = None
    for line in lines:
        newest = newest if line["validation_loss"] is None else line["validation_loss"]
        told = line | {"validation_loss": newest}
        rows.append({words: _rounded(told[name]) for name, words in COLUMNS.items()})
    return rows[::-1][::every][::-1]


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
