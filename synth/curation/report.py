"""The decontamination report: what trajectories share with evaluations, side by side.

As every report it loads nothing and runs nothing; texts come from models, tools and the files of
evaluations, and each is made visible and escaped. Code cuts them at what is shared, so no text can
bring a mark of its own.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.files import write_atomic
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.deciding import IN_EVALUATION
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
    """What is found, counted, and the strongest pairs of each method by turns."""
    with dataset.connect() as db:
        newest, looked_at, dropped = db.execute(_NEWEST).fetchone() or (None, 0, 0)
        counts = {
            name: db.execute(_COUNTED.format(name), [newest]).fetchall()
            for name in ("method", "file", "part")
        }
        found = db.execute(_PAIRS, [newest])
        names = [column[0] for column in found.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    return page(
        _TEMPLATE,
        dataset=dataset.root.name,
        curation_id=newest or "none",
        looked_at=looked_at,
        dropped=dropped,
        counts=counts,
        num_pairs=rows[0]["num_pairs"] if rows else 0,
        pairs=list(map(_pair, rows)),
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


def _pair(row: Row) -> dict[str, Any]:
    ours = list(pieces(row["text"], json.loads(row["spans"])))
    theirs = list(pieces(row["evaluation_text"], json.loads(row["evaluation_spans"])))
    return row | {"ours": ours, "theirs": theirs}


_NEWEST = f"""
SELECT curation_id, count(*), count_if(drop_reason = '{IN_EVALUATION}')
FROM trajectories WHERE curation_id IS NOT NULL
GROUP BY curation_id ORDER BY count(*) DESC, curation_id LIMIT 1"""
"""The newest decision on most trajectories."""

_COUNTED = """
SELECT {0}, count(DISTINCT trajectory_id) FROM contaminations WHERE curation_id = $1
GROUP BY {0} ORDER BY 2 DESC, 1"""

_PAIRS = f"""
SELECT method, score, part, file, item, text, spans, evaluation_text, evaluation_spans,
  min(trajectory_id) AS trajectory_id, arg_min(place, trajectory_id) AS place,
  count(*) AS num_trajectories, count(*) OVER () AS num_pairs
FROM contaminations WHERE curation_id = $1
GROUP BY method, score, part, file, item, text, spans, evaluation_text, evaluation_spans
ORDER BY row_number() OVER (PARTITION BY method ORDER BY score DESC, min(trajectory_id)), method
LIMIT {MOST_SHOWN}"""
"""Each once: a prompt is that of many trajectories."""
