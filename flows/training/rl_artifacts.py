"""What Prefect's UI shows of a run of reinforcement learning, read from the run's folder."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from trainer.rl.loop import samples_account
from trainer.rl.run import SAMPLES, Reinforced
from trainer.rl.testing import scores_table
from trainer.training.account import as_lines
from trainer.training.curves import FILE as CURVES
from trainer.training.metrics import MetricsLine, read_metrics
from trainer.training.run_folder import MODEL

SHOWN_LINES = 20
"""Iterations in the table, at most, the last ones."""

SHOWN_SAMPLES = 3
"""Conversations that are shown of an iteration: of the best reward, of the least, of the middle."""

SHOWN_CHARS = 600
"""Of one message."""

COLUMNS = {
    "step": "iteration",
    "reward": "reward",
    "validation_reward": "validation",
    "drawn": "tokens a sample",
    "truncated": "cut",
    "left_out": "without reward",
    "kl_k3": "KL",
    "entropy": "entropy",
    "temperature": "temperature",
    "grad_norm": "gradient norm",
    "play_s": "s playing",
    "learn_s": "s learning",
    "skipped": "skipped",
}
"""Metric -> how the table calls it."""

OF_CRITIC = {"critic_agreement": "critic agrees", "critic_on": "critic on"}
"""The same of a run with a critic."""


async def show_iterations(folder: Path) -> None:
    """The last lines of metrics, and the samples by how they ended."""
    lines = read_metrics(folder)
    columns = COLUMNS | (OF_CRITIC if any("critic_on" in line for line in lines) else {})
    await acreate_table_artifact(
        key="iterations",
        table=[
            {words: _rounded(line.get(name)) for name, words in columns.items()}
            for line in lines[-SHOWN_LINES:]
        ],
        description="The last iterations, one a line",
    )
    await acreate_table_artifact(
        key="outcomes",
        table=[
            {"outcome": one.reason, "samples": one.number}
            for one in samples_account(lines)
            if one.reason
        ],
        description="Samples of the whole run by how they ended",
    )


async def show_samples(folder: Path, iteration: int) -> None:
    """A few conversations of an iteration, with their rewards."""
    path = folder / SAMPLES / f"iteration-{iteration:06d}.parquet"
    columns = ["task_id", "family", "reward", "reward_parts", "outcome", "messages"]
    rows = pq.read_table(path, columns=columns).to_pylist()
    rewarded = sorted(
        (row for row in rows if row["reward"] is not None), key=lambda row: row["reward"]
    )
    places = {0, len(rewarded) // 2, len(rewarded) - 1} if rewarded else set()
    shown = [rewarded[place] for place in sorted(places, reverse=True)][:SHOWN_SAMPLES]
    await acreate_markdown_artifact(
        key="samples",
        markdown="\n\n".join(_conversation(row) for row in shown) or "No sample has a reward.",
        description=f"Conversations of iteration {iteration + 1}: best, middle and least reward",
    )


def summary_of(done: Reinforced) -> str:
    """A finished run in a few lines of markdown."""
    begun = f"; the first {done.begun:,} were done before" if done.begun else ""
    lines = as_lines(samples_account(read_metrics(done.folder)))
    items = [
        *lines,
        f"model for transformers: `{(done.folder / MODEL).resolve()}`",
        f"curves: `{(done.folder / CURVES).resolve()}`",
    ]
    listed = "\n".join(f"- {item}" for item in items)
    scores = f"{scores_table(done.before, done.after)}\n\n" if done.after else ""
    return f"**{done.words}{begun}.**\n\n{scores}{listed}\n"


def _conversation(row: MetricsLine) -> str:
    """Fenced, so that nothing that a model wrote is markup of the page."""
    told = [f"{m.get('role')}: {_words(m)}" for m in json.loads(row["messages"])]
    text = "\n".join(told).replace("```", "'''")
    parts = json.dumps(json.loads(row["reward_parts"]))
    return (
        f"**{row['family']}**, reward {row['reward']:.3f}, {row['outcome']}, parts `{parts}`\n\n"
        f"```\n{text}\n```"
    )


def _words(message: dict[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    said = [message.get("content") or "", *(f"{c['name']}({c['arguments']})" for c in calls)]
    text = " ".join(filter(None, said))
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
