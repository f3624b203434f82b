"""The report of a dataset: one HTML file that loads nothing and runs nothing, and a summary.

Everything shown comes from models, tools and users of them. In HTML every value passes `visible`
and Jinja2's escaping, and the content security policy allows the file's own style sheet and no
script at all; in markdown every value passes `markdown_text`.
"""

import base64
from pathlib import Path
from typing import Any

from records.files import write_atomic
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.coverage import coverage_of
from synth.publish import conversations
from synth.publish.decisions import FATES
from synth.publish.summary import DatasetSummary, summarise
from synth.render.figures import number, percent, ratio, usd
from synth.render.foreign_text import markdown_table, markdown_text
from synth.render.pages import page
from tool_specs.coverage.coverage import DISTANCES

ACCEPTED_SHOWN, REJECTED_SHOWN = 6, 6
"""Conversations in the report."""

CHART_COLUMNS = 24
"""Of a distribution; larger values share the last one."""

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def write_report(dataset: Dataset, out: Path | None = None, *, seed: int = 0) -> Path:
    """Write the report, to `report.html` in the dataset unless told otherwise; returns its path.

    `seed` draws the conversations that are shown.
    """
    path = out if out is not None else dataset.root / "report.html"
    write_atomic(path, report_html(dataset, seed=seed).encode())
    return path


def report_html(dataset: Dataset, *, seed: int = 0) -> str:
    summary = summarise(dataset)
    ids = conversations.pick(dataset, accepted=ACCEPTED_SHOWN, rejected=REJECTED_SHOWN, seed=seed)
    coverage = coverage_of(dataset, seed=seed)
    return page(
        _TEMPLATE,
        summary=summary,
        tiles=_tiles(summary),
        charts={name: _columns(rows) for name, rows in summary.distributions.items()},
        conversations=conversations.read(dataset, ids),
        parties=FATES,
        seed=seed,
        coverage=coverage,
        distances=DISTANCES,
        map_data=_as_data(coverage.svg),
    )


def _as_data(svg: str | None) -> str | None:
    """The picture as an address that holds it: an image runs nothing, whatever stands in it."""
    if svg is None:
        return None
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def summary_markdown(dataset: Dataset) -> str:
    """The summary as markdown for a Prefect artifact; names from data can be no markup in it."""
    summary = summarise(dataset)
    parts = [f"# {markdown_text(summary.dataset)}"]
    if summary.label:
        parts.append(
            "Text was written by the **offline model**: no figure of quality says how a real model "
            "would do."
        )
    tiles = [(tile["title"], tile["value"], tile["note"]) for tile in _tiles(summary)]
    parts.append(markdown_table(("", "", ""), tiles))
    parts.append("## Yield of each stage")
    head = ("stage", "requested", "kept", "dropped", "failed", "pending", "reasons", "example")
    rows = [
        (
            *(row[name] for name in head[:-2]),
            ", ".join(f"{r} {n}" for r, n in row["reasons"]),
            row["example"],
        )
        for row in summary.yields
    ]
    parts.append(markdown_table(head, rows))
    if summary.cluster:
        parts += ["## Sandboxes on the cluster", markdown_table(("", "", ""), summary.cluster)]
    outcomes = [(row["name"], row["n"]) for row in summary.outcomes]
    parts += ["## Outcomes", markdown_table(("", "trajectories"), outcomes)]
    parts += _decisions_markdown(summary)
    parts.append("## Pass rates, the hardest first")
    head = ("dimension", "value", "tasks", "attempts", "passed")
    passed = [
        (*(row[name] for name in head), *(ratio(row[name]) for name in ("share", "low", "high")))
        for row in summary.pass_rates
    ]
    parts.append(markdown_table((*head, "share", "from", "to"), passed))
    parts.append("## Domains and servers")
    environments = [(r["name"], r["split"], r["n"], r["accepted"]) for r in summary.environments]
    parts.append(markdown_table(("name", "split", "trajectories", "accepted"), environments))
    parts.append("## Trajectories that recovered")
    recovery = [
        (r["kind"], r["met"], r["recovered"], ratio(r["share"]), ratio(r["low"]), ratio(r["high"]))
        for r in summary.recovery
    ]
    parts.append(markdown_table(("kind", "met", "recovered", "share", "from", "to"), recovery))
    parts.append("## Injected outcomes, of the calls that could have them")
    head = ("outcome", "could", "injected")
    injected = [
        (*(row[name] for name in head), *(f"{row[name]:.2%}" for name in ("share", "low", "high")))
        for row in summary.injected
    ]
    parts.append(markdown_table((*head, "share", "from", "to"), injected))
    parts.append("## Faults of the simulated user, and doubts")
    head = ("kind", "faults", "doubts", "trajectories", "share", "ended")
    faults = [tuple(row[name] for name in head[:-2]) for row in summary.user_faults]
    more = [(ratio(row["share"]), row["ended"]) for row in summary.user_faults]
    parts.append(markdown_table(head, [a + b for a, b in zip(faults, more, strict=True)]))
    parts.append("## The judge against the checks")
    agreement = [
        (r["kind"], ratio(r["tpr"]), ratio(r["tnr"]), ratio(r["kappa"]), r["n"])
        for r in summary.agreement
    ]
    parts.append(markdown_table(("kind", "TPR", "TNR", "kappa", "n"), agreement))
    parts.append("## The judge on perturbed negatives")
    if summary.judge.warning:
        parts.append(f"**{markdown_text(summary.judge.warning)}**")
    if summary.judge.words:
        parts.append(markdown_text(summary.judge.words))
    trial = [
        (
            *(r[name] for name in ("who", "kind", "num_failures", "false_accepts")),
            *(ratio(r[name]) for name in ("fpr", "tpr", "kappa")),
            r["judge_status"] or "",
        )
        for r in summary.judge.table
    ]
    head = ("who", "kind", "failures", "passed", "FPR", "TPR", "kappa", "judge status")
    parts.append(markdown_table(head, trial))
    if summary.judge.panel:
        parts.append("## How far the judges of the panel agree")
        pairs = [
            (r["criterion_id"], *r["models"], r["num"], ratio(r["share"]), ratio(r["kappa"]))
            for r in summary.judge.panel
        ]
        head = ("criterion", "judge", "other judge", "trajectories", "agree", "kappa")
        parts.append(markdown_table(head, pairs))
    if summary.simulated:
        parts.append(f"## State accuracy of model-simulated tools {summary.label}".rstrip())
        head = ("fields", "n", "state", "observation", "repaired", "failed")
        played = [tuple(row[name] for name in head) for row in summary.simulated]
        parts.append(markdown_table(head, played))
    parts += _spending_markdown(summary)
    return "\n\n".join(parts) + "\n"


def _decisions_markdown(summary: DatasetSummary) -> list[str]:
    how, again = summary.decisions, summary.regrading
    head = ("reason", "criterion", "n", *FATES)
    decided = [(row["name"], row["n"], row["accepted"]) for row in how.decided_by]
    parts = [
        "## How it was decided",
        f"Accepted from a score of {markdown_text(how.threshold_words)}, trajectories in brackets. "
        f"{markdown_text(how.self_judged_words)}",
        markdown_table(("decided by", "trajectories", "accepted"), decided),
        "Rejected, by reason, criterion and whose failure it is:",
        markdown_table(head, [tuple(row[name] for name in head) for row in how.rejected]),
    ]
    if again:
        head = ("before", "after", "n", "criterion", "evidence")
        parts += [
            "## Graded again",
            f"{again.earlier['n']} trajectories in both gradings: {again.earlier['accepted']} "
            f"accepted before, {again.later['accepted']} after.",
            markdown_table(head, [tuple(row[name] for name in head) for row in again.changes]),
        ]
    return parts


def _spending_markdown(summary: DatasetSummary) -> list[str]:
    spent = summary.spending
    tokens = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    head = ("role", "model", "requests", "reused", *tokens)
    costs = [
        (*(row[name] for name in head), usd(row["cost_usd"]), usd(row["cost_per_accepted"]))
        for row in spent.roles
    ]
    total = usd(summary.totals["cost_per_accepted"])
    parts = [
        "## Tokens and cost by role",
        f"{markdown_text(usd(spent.cost_usd))} in all, {markdown_text(total)} for each accepted "
        "trajectory. Cached tokens are among those of the prompt, reasoning among those of the "
        "completion.",
        markdown_table((*head, "USD", "USD per accepted"), costs),
    ]
    if spent.failures:
        failed = [(r["role"], r["status"], r["n"], r["example"]) for r in spent.failures]
        head = ("role", "status", "requests", "for example")
        parts += ["## Requests that failed", markdown_table(head, failed)]
    if spent.fallbacks:
        changed = [
            (r["model"], r["fallback"], r["n"], f"{r['first_at']:%Y-%m-%d %H:%M:%S}")
            for r in spent.fallbacks
        ]
        head = ("model", "from then on", "times", "first at")
        parts += ["## What servers wanted otherwise", markdown_table(head, changed)]
    return parts


def _tiles(summary: DatasetSummary) -> list[Row]:
    """Headline numbers: title, value and what it is measured on."""
    t, label = summary.totals, summary.label
    accepted, curated = t["accepted"], t["curated"]
    share = percent(accepted, curated)
    tiles = [
        ("Accepted", number(accepted), f"of {number(t['trajectories'])} trajectories"),
        ("Acceptance", share, label or f"of {number(curated)} curated"),
        ("Domains and servers", number(t["worlds"]), "with accepted trajectories"),
        ("On real MCP servers", number(t["on_servers"]), "accepted trajectories"),
        ("Median messages", number(t["median_messages"]), "in an accepted trajectory"),
        ("Median calls", number(t["median_calls"]), "in an accepted trajectory"),
        ("Two and more user turns", percent(t["several_turns"], accepted), "of the accepted"),
        ("Several calls", percent(t["several_calls"], t["calling_turns"]), "of turns with calls"),
        ("Error and recovery", percent(t["recovered"], accepted), label or "of the accepted"),
        ("Held out", number(t["held_out"]), "accepted, not for training"),
        ("Tokens", number(t["tokens"]), label or "prompt and completion"),
        ("Cost", usd(t["cost_usd"]), f"{usd(t['cost_per_accepted'])} an accepted trajectory"),
        ("Accepted per hour", number(_rounded(t["accepted_per_hour"])), label or "of wall clock"),
    ]
    return [{"title": title, "value": value, "note": note} for title, value, note in tiles]


def _columns(rows: list[Row]) -> list[dict[str, Any]]:
    """Columns of a chart 300 wide and 90 high, one a value from 0, the last for all larger ones."""
    counts = {int(row["value"]): row["n"] for row in rows if row["value"] is not None}
    if not counts:
        return []
    last = min(max(counts), CHART_COLUMNS - 1)
    heights = [counts.get(value, 0) for value in range(last)]
    heights.append(sum(n for value, n in counts.items() if value >= last))
    step, most = 300 / len(heights), max(heights)
    every = -(-len(heights) // 12)
    return [
        {
            "x": round(value * step + 0.6, 2),
            "width": round(step - 1.2, 2),
            "height": round(86 * n / most, 2),
            "y": round(90 - 86 * n / most, 2),
            "middle": round((value + 0.5) * step, 2),
            "label": f"{value}+" if value == last < max(counts) else str(value),
            "show": value == last or (value % every == 0 and value + every <= last),
            "n": n,
        }
        for value, n in enumerate(heights)
    ]


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
