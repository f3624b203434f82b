"""Kept rewrites for other trainers: Parquet files as `datasets.load_dataset` expects them."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq

from records.errors import ConfigError
from records.new_folder import new_folder
from records.store.dataset import Dataset
from synth.exports.files import FILE_ROWS, GROUP_ROWS
from synth.exports.selection import nothing_left

COLUMNS = (
    *("doc_id", "text", "style", "perspective", "kind", "source_name", "source_language"),
    *("license", "model", "flags", "source_tokens", "text_tokens"),
)


class ExportedTexts(NamedTuple):
    out: str
    rows: dict[str, int]
    """By split."""
    left_out: dict[str, int]
    """Rewrites of the dataset that were not exported, by reason."""


def export_texts(
    dataset: Dataset,
    out: Path,
    *,
    include_heldout: bool = False,
    include_unknown_license: bool = False,
    include_flagged: bool = False,
) -> ExportedTexts:
    """Write the folder `out`, which must not exist: the texts that the newest decision keeps, a
    list of the reasons for which others are left out, and the numbers.

    A text is flagged where a check finds a hint that no judge has cleared. ConfigError when nothing
    is left to export; nothing is written then.
    """
    with dataset.connect() as db:
        allowed = [include_flagged, include_heldout, include_unknown_license]
        db.execute(f"CREATE TEMP TABLE chosen AS {_CHOSEN}", allowed)
        counts = db.execute("SELECT reason, count(*) FROM chosen GROUP BY 1 ORDER BY 1").fetchall()
        left_out = {reason: number for reason, number in counts if reason is not None}
        splits = db.execute(_SPLITS).fetchall()
        if not splits:
            raise ConfigError(nothing_left("rewrite", dataset, left_out))
        with new_folder(out) as folder:
            (folder / "data").mkdir()
            for split, number in splits:
                _write(db, folder / "data", split, number)
            exported = ExportedTexts(str(out), dict(splits), left_out)
            path = folder / "export.json"
            with path.open("w", encoding="utf-8") as handle:
                handle.write(json.dumps(exported._asdict(), indent=1) + "\n")
                handle.flush()
                os.fsync(handle.fileno())
    return exported


def _write(db: duckdb.DuckDBPyConnection, folder: Path, split: str, number: int) -> None:
    files = -(-number // FILE_ROWS)
    for index in range(files):
        path = folder / f"{split}-{index:05d}-of-{files:05d}.parquet"
        start = index * FILE_ROWS
        # a relation, because rows of `execute` are copied once more on their way to Arrow
        rows = db.sql(_ROWS, params=[split, start, start + FILE_ROWS]).to_arrow_reader(GROUP_ROWS)
        with path.open("wb") as handle:
            with pq.ParquetWriter(handle, rows.schema, compression="zstd") as parquet:
                for batch in rows:
                    parquet.write_batch(batch)
            handle.flush()
            os.fsync(handle.fileno())


_CHOSEN = """
SELECT *, row_number() OVER (PARTITION BY split, reason ORDER BY rephrasing_id) - 1 AS place
FROM (
  SELECT rephrasing_id, split, CASE
      WHEN kept IS NULL THEN 'undecided' WHEN NOT kept THEN 'not_kept'
      WHEN len(flags) > 0 AND NOT $1 THEN 'flagged'
      WHEN split != 'train' AND NOT $2 THEN 'held_out'
      WHEN license = 'unknown' AND NOT $3 THEN 'unknown_license' END AS reason
  FROM rephrasings
)"""

_SPLITS = """
SELECT split, count(*) FROM chosen WHERE reason IS NULL GROUP BY 1 ORDER BY split != 'train', 1"""

_ROWS = f"""
SELECT rephrasing_id AS doc_id, {", ".join(f"own.{name}" for name in COLUMNS[1:])}
FROM rephrasings AS own JOIN chosen USING (rephrasing_id)
WHERE chosen.reason IS NULL AND chosen.split = $1 AND place >= $2 AND place < $3
ORDER BY place"""
