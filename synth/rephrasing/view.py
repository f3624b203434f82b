"""One rewrite printed on a terminal beside its source."""

import json
from typing import Any, NamedTuple

import duckdb
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.render.foreign_text import one_line, visible

LAYERS = (
    *("numbers", "units", "dates", "names", "quotations", "code", "tables", "headings"),
    *("maths", "conflicts", "alignment", "language", "repetition", "overlap"),
)
"""Columns of measurements, in the order in which they are shown."""

_MEASURED = f"""
SELECT {", ".join(f"found.{name}" for name in LAYERS)}
FROM rephrasing_measurements AS found JOIN rephrasings USING (rephrasing_id, measured_by)
WHERE rephrasing_id = $1 AND part = -1"""

_VERDICTS = """
SELECT part, verdict, differences
FROM rephrasing_verdicts JOIN rephrasings USING (rephrasing_id, judge_id)
WHERE rephrasing_id = $1 AND verdict = 'unfaithful' ORDER BY part"""


def beginning_with(dataset: Dataset, beginning: str) -> str | None:
    """The one rewrite whose id begins so, or None."""
    found = [i for i in dataset.ids("rephrasings") if beginning and i.startswith(beginning)]
    return found[0] if len(found) == 1 else None


class ShownRewrite(NamedTuple):
    row: Row
    """Of the view `rephrasings`."""
    layers: Row
    """What was measured, by layer; JSON texts, None where nothing was."""
    unfaithful: list[tuple[Any, ...]]
    """Part, verdict and differences of each part that the judge found unfaithful."""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Name and value: what it was made of and how, and what came of it."""
        row = self.row
        part = f", part {row['source_part'] + 1} of {row['source_parts']}"
        return (
            ("rewrite", row["rephrasing_id"]),
            ("source", row["source_name"] + (part if row["source_parts"] > 1 else "")),
            ("form", f"{row['style']}, {row['perspective']}"),
            ("written by", row["model"]),
            ("decision", _told_decision(row)),
            ("flags", ", ".join(row["flags"] or ()) or "none"),
            ("parts", _told_of(row["chunks"])),
            ("tokens", f"{row['source_tokens']} of the source, {row['text_tokens']} written"),
        )

    @property
    def found(self) -> dict[str, str]:
        """The layers that found something, and the judge by part."""
        layers = {n: v for n, v in self.layers.items() if v not in (None, "[]", "{}")}
        return layers | {
            f"judge, part {part + 1}": f"{verdict}: {differences}"
            for part, verdict, differences in self.unfaithful
        }


def read_rewrite(db: duckdb.DuckDBPyConnection, rephrasing_id: str) -> ShownRewrite | None:
    """From the views of a dataset; None where there is none with this id."""
    found = db.execute("SELECT * FROM rephrasings WHERE rephrasing_id = $1", [rephrasing_id])
    names = [column[0] for column in found.description or ()]
    rows = found.fetchall()
    if not rows:
        return None
    measured = db.execute(_MEASURED, [rephrasing_id]).fetchone() or (None,) * len(LAYERS)
    return ShownRewrite(
        dict(zip(names, rows[0], strict=True)),
        dict(zip(LAYERS, measured, strict=True)),
        db.execute(_VERDICTS, [rephrasing_id]).fetchall(),
    )


def show_rephrasing(
    dataset: Dataset, rephrasing_id: str, *, console: Console | None = None
) -> None:
    """Print the rewrite, its source at its side, and what was measured of it."""
    with dataset.connect() as db:
        shown = read_rewrite(db, rephrasing_id)
    assert shown is not None, "the id was looked up"
    (console or Console()).print(_rendered(shown))


def _rendered(shown: ShownRewrite) -> Group:
    facts = Table(box=None, show_header=False)
    for name, value in shown.facts:
        facts.add_row(Text(name, style="bright_black"), Text(one_line(value)))
    measured = Table("layer", box=None)
    measured.add_column("what was found", overflow="fold")
    for name, value in shown.found.items():
        measured.add_row(name, Text(one_line(value)))
    texts = Table(box=None, expand=True, show_header=False)
    texts.add_column(ratio=1, overflow="fold")
    texts.add_column(ratio=1, overflow="fold")
    texts.add_row(
        Panel(Text(visible(shown.row["source_text"])), title="source"),
        Panel(Text(visible(shown.row["text"])), title="rewrite"),
    )
    return Group(facts, texts, measured)


def _told_decision(row: Row) -> str:
    if row["kept"] is None:
        return "none yet"
    return "kept" if row["kept"] else f"dropped: {row['drop_reason']}"


def _told_of(chunks: Any) -> str:
    """How many parts there are, came back, and stay as the source has them."""
    parts = json.loads(chunks) if isinstance(chunks, str) else chunks
    returned = sum(bool(part.get("faults")) for part in parts)
    replaced = sum(bool(part.get("replaced")) for part in parts)
    return f"{len(parts)}, {returned} given back, {replaced} as in the source"
