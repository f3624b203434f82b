"""The decontamination report: what trajectories share with evaluations, side by side.

As every report it loads nothing and runs nothing; texts come from models, tools and the files of
evaluations, and each is made visible and escaped. Code cuts them at what is shared, so no text can
bring a mark of its own.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.files import write_atomic
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.render.pages import page

FILE = "decontamination.html"

MOST_SHOWN = 200
"""Pairs of texts in the report; SQL has all."""

_TEMPLATE = Path(__file__).with_name("decontamination.html.j2")


class SharedPiece(NamedTuple):
    text: str
    is_shared: bool


def write_decontamination_report(dataset: Dataset, out: Path | None = None) -> Path:
    """Of the newest curation, to `decontamination.html` in the dataset unless told otherwise."""
    path = out if out is not None else dataset.root / FILE
    write_atomic(path, decontamination_html(dataset).encode())
    return path


def decontamination_html(dataset: Dataset) -> str:
    """The strongest pairs of each method first."""
    with dataset.connect() as db:
        newest = db.execute(_NEWEST).fetchone()
        found = db.execute(_PAIRS, [newest[0] if newest else None])
        names = [column[0] for column in found.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    return page(
        _TEMPLATE,
        dataset=dataset.root.name,
        curation_id=newest[0] if newest else "none",
        looked_at=newest[1] if newest else 0,
        leaking=len({row["trajectory_id"] for row in rows}),
        counts={name: _counted(rows, name) for name in ("method", "file", "part")},
        num_pairs=len(rows),
        pairs=[_pair(row) for row in rows[:MOST_SHOWN]],
    )


def pieces(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[SharedPiece]:
    """The text cut at what is shared; put together it is the text."""
    at = 0
    for start, end in sorted(spans):
        start = max(at, start)
        if at < start:
            yield SharedPiece(text[at:start], False)
        if start < end:
            yield SharedPiece(text[start:end], True)
        at = max(at, end)
    if at < len(text):
        yield SharedPiece(text[at:], False)


def _counted(rows: Sequence[Row], column: str) -> list[tuple[str, int]]:
    return Counter(row[column] for row in rows).most_common()


def _pair(row: Row) -> dict[str, Any]:
    ours = list(pieces(row["text"], json.loads(row["spans"])))
    theirs = list(pieces(row["evaluation_text"], json.loads(row["evaluation_spans"])))
    return row | {"ours": ours, "theirs": theirs}


_NEWEST = """
SELECT curation_id, count(*) FROM trajectories WHERE curation_id IS NOT NULL
GROUP BY ALL ORDER BY count(*) DESC, curation_id LIMIT 1"""
"""The newest decision on most trajectories."""

_PAIRS = """
SELECT * FROM contaminations WHERE curation_id = $1
ORDER BY method, score DESC, trajectory_id"""
