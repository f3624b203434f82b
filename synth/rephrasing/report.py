"""The report of a dataset's rewrites: `rephrasing.html`, which loads nothing and runs nothing."""

from pathlib import Path

from records.files import write_atomic
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.render.figures import number, percent, ratio, usd
from synth.render.foreign_text import markdown_table, markdown_text
from synth.render.pages import page
from synth.rephrasing.calibration.rates import HEAD
from synth.rephrasing.summary import RephrasingSummary, summarise

FILE = "rephrasing.html"
_TEMPLATE = Path(__file__).with_name("rephrasing.html.j2")

KEPT_SHOWN, DROPPED_SHOWN = 8, 8
"""Rewrites beside their sources; of the dropped ones as many different reasons as there are."""


def write_report(dataset: Dataset) -> Path:
    """Write the report into the dataset's folder; returns its path."""
    path = dataset.root / FILE
    write_atomic(path, report_html(dataset).encode())
    return path


def report_html(dataset: Dataset) -> str:
    summary = summarise(dataset)
    return page(_TEMPLATE, summary=summary, tiles=tiles(summary), shown=_shown(dataset), head=HEAD)


def summary_markdown(dataset: Dataset) -> str:
    """The numbers as markdown for a Prefect artifact; names from data can be no markup in it."""
    summary = summarise(dataset)
    parts = [f"# {markdown_text(summary.dataset)}"]
    if summary.label:
        parts.append(
            "Rewrites were written by the **offline model**: no figure of quality says how a real "
            "model would do."
        )
    cells = [(tile["title"], tile["value"], tile["note"]) for tile in tiles(summary)]
    parts.append(markdown_table(("", "", ""), cells))
    drops = [(row["name"], row["n"]) for row in summary.drops]
    parts += ["## Dropped because", markdown_table(("reason", "rewrites"), drops)]
    for title, rows in (("Styles", summary.styles), ("Perspectives", summary.perspectives)):
        cells = [(row["name"], row["n"], row["kept"], ratio(row["length"])) for row in rows]
        table = markdown_table(("name", "rewrites", "kept", "length by source"), cells)
        parts += [f"## {title}", table]
    cells = [
        (
            row["role"],
            row["requests"],
            row["prompt_tokens"],
            row["cached_tokens"],
            ratio(row["by_written"]),
            ratio(row["by_source"]),
        )
        for row in summary.roles
    ]
    head = ("role", "requests", "prompt tokens", "of these cached", "by written", "by source")
    parts += ["## Requests", markdown_table(head, cells)]
    if summary.trials:
        parts += ["## The judge on trial", *(trial.markdown for trial in summary.trials)]
    return "\n\n".join(parts) + "\n"


def tiles(summary: RephrasingSummary) -> list[Row]:
    """Headline numbers: title, value and what it is measured on."""
    t, label = summary.totals, summary.label
    rows = [
        ("Rewrites kept", number(t["kept"]), f"of {number(t['rewrites'])} written"),
        ("Kept share", percent(t["kept"], t["rewrites"]), label or "of the rewrites"),
        ("Documents", number(t["documents"]), f"{number(t['source_tokens'])} tokens of sources"),
        ("Tokens kept", number(t["kept_tokens"]), f"of {number(t['text_tokens'])} written"),
        ("Tokens in", number(t["prompt_tokens"]), f"in {number(t['requests'])} requests"),
        ("Tokens out", number(t["completion_tokens"]), "that models answered with"),
        ("Cost", usd(t["cost_usd"]), "of all requests"),
        ("A million kept tokens", usd(t["usd_per_million_kept"]), "costs so much"),
        ("Held out", number(t["held_out"]), "kept, not for training"),
        ("Flagged", number(t["flagged"]), "kept, with a hint that no judge has cleared"),
    ]
    return [{"title": title, "value": value, "note": note} for title, value, note in rows]


def _shown(dataset: Dataset) -> list[Row]:
    with dataset.connect() as db:
        found = db.execute(_SHOWN, [KEPT_SHOWN, DROPPED_SHOWN])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


_SHOWN = """
WITH numbered AS (
  SELECT rephrasing_id, style, perspective, kept, drop_reason, source_name, source_text, text,
         text_tokens / source_tokens AS length_ratio, repeats,
         row_number() OVER (PARTITION BY kept, coalesce(drop_reason, style)
                            ORDER BY rephrasing_id) AS turn
  FROM rephrasings
)
SELECT * FROM (SELECT * FROM numbered WHERE kept ORDER BY turn, rephrasing_id LIMIT $1)
UNION ALL
SELECT * FROM (SELECT * FROM numbered WHERE NOT kept ORDER BY turn, rephrasing_id LIMIT $2)
"""
