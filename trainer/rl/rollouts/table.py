"""Samples as rows of a Parquet file, for reading afterwards with SQL or pandas.

Nothing is read back from it by the run: `trainer.rl.rollouts.store` is what a run goes on from.
"""

import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from records.digest import ordered_json
from records.files import write_atomic
from records.tables.schemas import BOOL, FLOAT, INT, JSON, STR, STRS, Row
from trainer.rl.rollouts.samples import Group, RolloutSample

SAMPLE_SCHEMA = pa.schema(
    [
        ("iteration", INT),
        ("begun", INT),
        ("task_id", STR),
        ("family", STR),
        ("split", STR),
        ("tags", STRS),
        ("sample", INT),
        ("seed", INT),
        ("reward", FLOAT),
        ("reward_parts", JSON),
        ("outcome", STR),
        ("detail", STR),
        ("truncated", BOOL),
        ("turns", INT),
        ("drawn_tokens", INT),
        ("all_tokens", INT),
        ("tokens_by_version", JSON),
        ("messages", JSON),
        ("tools", JSON),
    ]
)
"""`iteration`: in which the sample ended; `begun`: for which it was asked. `reward` is null where
nothing is learnt from it. `tokens_by_version`: version of the weights -> tokens that they drew."""


def rows_of_samples(groups: Iterable[Group]) -> list[Row]:
    """A row a sample, JSON columns as text, in the groups' order."""
    return [_row(sample) for group in groups for sample in group.samples]


def write_samples(path: Path, groups: Iterable[Group]) -> None:
    """All at once, in place of a file that is there."""
    into = io.BytesIO()
    made = pa.Table.from_pylist(rows_of_samples(groups), schema=SAMPLE_SCHEMA)
    pq.write_table(made, into, compression="zstd")
    write_atomic(path, into.getvalue())


def _row(sample: RolloutSample) -> Row:
    sequences = [one for own in sample.tokens for one in (*own.earlier, own)]
    versions = Counter(v for own in sequences for v in own.versions if v is not None)
    reward = sample.reward
    return {
        "iteration": sample.ended,
        "begun": sample.begun,
        "task_id": sample.task.task_id,
        "family": sample.task.family,
        "split": sample.task.split,
        "tags": list(sample.task.tags),
        "sample": sample.number,
        "seed": sample.seed,
        "reward": None if reward is None else float(reward.value),
        "reward_parts": None if reward is None else ordered_json(dict(reward.parts)),
        "outcome": sample.outcome,
        "detail": sample.detail,
        "truncated": sample.truncated,
        "turns": sample.turns,
        "drawn_tokens": sample.drawn,
        "all_tokens": sum(len(own.ids) for own in sequences),
        "tokens_by_version": ordered_json({str(v): n for v, n in sorted(versions.items())}),
        "messages": ordered_json(sample.messages),
        "tools": ordered_json(sample.tools),
    }
