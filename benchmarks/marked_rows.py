"""Rows of a dataset written again under other ids, without a row becoming a Python value."""

import hashlib
import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from records.files import write_atomic
from records.store.commits import Commit, ItemStatus, Part
from records.store.dataset import Dataset, StagedCommit
from records.tables.schemas import SCHEMA_VERSION

IDS = ("trajectory_id", "task_id", "episode_id")


def marked(stored: pa.Table, mark: str) -> pa.Table:
    """The rows under other ids."""
    for name in IDS:
        if name in stored.column_names:
            place, ids = stored.column_names.index(name), stored[name]
            own = pc.call_function("binary_join_element_wise", [pa.scalar(mark), ids, "-"])
            stored = stored.set_column(place, stored.schema.field(name), own)
    return stored


def commit(
    target: Dataset,
    stage: str,
    shard: int,
    tables: Mapping[str, pa.Table],
    items: Mapping[str, ItemStatus],
) -> None:
    """As `Dataset.commit`, of tables that are encoded already."""
    parts = []
    for table, stored in tables.items():
        buffer = io.BytesIO()
        pq.write_table(stored, buffer, compression="zstd")
        name, data = f"{stage}-{shard:05d}.parquet", buffer.getvalue()
        write_atomic(target.root / "tables" / table / name, data)
        part = Part(
            table=table,
            name=name,
            rows=stored.num_rows,
            sha256=hashlib.sha256(data).hexdigest(),
            columns=tuple(stored.column_names),
            schema_version=SCHEMA_VERSION,
        )
        parts.append(part)
    made = Commit(
        number=0,
        run_id="many",
        stage=stage,
        shard=shard,
        supersedes=False,
        parts=tuple(parts),
        items=dict(items),
    )
    target.append(StagedCommit(made, {}))
