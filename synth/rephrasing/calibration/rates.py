"""How good the judge of rewrites is, from rows of `rephrasing_calibration` of one trial.

False accepts are changed parts that it finds faithful, false rejects are controls that it finds
unfaithful. All kinds together decide the status of the judge.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from records.tables.schemas import Row
from synth.judging.judge_rates import (
    JudgeStatus,
    MinimumQuality,
    Rates,
    judge_rates,
    judge_status_of,
)
from synth.render.intervals import wilson


def rates(rows: Iterable[Row]) -> Rates:
    """Over all kinds of changes and controls. What was not confirmed has no verdict and counts for
    nothing."""
    return judge_rates(rows)


def status_of(rows: Iterable[Row], minimum: MinimumQuality) -> JudgeStatus:
    """Whether the judge's word counts."""
    return judge_status_of(rates(rows), minimum)


def as_table(rows: Sequence[Row], minimum: MinimumQuality) -> list[Row]:
    """The rates that a run publishes: over everything, then of changes that exact checks do not
    find, by change, by control, by language and by model. Only the first line decides the
    status."""
    if not rows:
        return []
    table = [_line("all", rows) | {"judge_status": status_of(rows, minimum)}]
    unseen = [row for row in rows if not row["found_by_code"]]
    if len(unseen) < len(rows):
        table.append(_line("not found by exact checks", unseen))
    tried = [row for row in rows if row["judge_passed"] is not None]
    for what, some, of in (
        ("change", [row for row in rows if not row["expected"]], _sort_of),
        ("control", [row for row in rows if row["expected"]], _sort_of),
        ("language", tried, _language_of),
        ("model", tried, _model_of),
    ):
        names = sorted({of(row) for row in some})
        for name in names:
            table.append(_line(f"{what}: {name}", [row for row in some if of(row) == name]))
    return table


def warning_of(status: JudgeStatus, found: Rates, minimum: MinimumQuality) -> str | None:
    """What a run says loudly, if anything."""
    rejects = found.num_fine - found.true_accepts
    did = (
        f"it finds {_share(found.false_accepts, found.num_failures)} changed parts faithful and"
        f" {_share(rejects, found.num_fine)} controls unfaithful"
    )
    if status == "below_minimum":
        return (
            f"THE JUDGE OF REWRITES IS BELOW ITS MINIMUM QUALITY: {did}; at most"
            f" {minimum.max_false_accept:.0%} and {1 - minimum.min_control_accept:.0%} are allowed."
            " What it overruled is not cleared, and what it sent back may have been right."
        )
    if status == "uncertain":
        return f"The judge of rewrites is uncertain: {did}, too few to be certain."
    if status == "unmeasured":
        return (
            f"The judge of rewrites is unmeasured: it was tried on {found.num_failures} changed"
            f" parts and {found.num_fine} controls."
        )
    return None


HEAD = (
    "",
    "changed",
    "called faithful",
    "95%",
    "named",
    "controls",
    "called unfaithful",
    "95%",
    "kappa",
    "asked for",
    "out",
)


def cells(line: Row) -> tuple[str, ...]:
    """A line of `as_table` as it is shown, below `HEAD`. `named`: changed parts whose change the
    judge quotes; `out`: what no part had a place for, was not written or not confirmed."""
    changed, controls = line["num_failures"], line["num_fine"]
    kappa = line["kappa"]
    return (
        line["kind"],
        *_shown(line["false_accepts"], changed),
        str(line["num_named"]) if changed else "",
        *_shown(line["false_rejects"], controls),
        "" if kappa is None else f"{kappa:.2f}",
        str(line["num_attempts"]),
        str(line["num_out"] or ""),
    )


def trial_text(table: Sequence[Row]) -> str:
    """The trial for a terminal, from `as_table`; empty without one."""
    if not table:
        return ""
    lines = [HEAD, *map(cells, table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    status = table[0]["judge_status"].replace("_", " ")
    return "\n".join([f"The judge of rewrites on trial: {status}", *shown])


def _line(kind: str, rows: Iterable[Row]) -> Row:
    rows = list(rows)
    found = rates(rows)
    outcomes = Counter(row["outcome"] for row in rows)
    rejects = found.num_fine - found.true_accepts
    return (
        {"kind": kind, "judge_status": None}
        | found.row()
        | {
            "false_rejects": rejects,
            "false_reject_rate": rejects / found.num_fine if found.num_fine else None,
            "false_reject_interval": wilson(rejects, found.num_fine) if found.num_fine else None,
            "num_named": sum(bool(row["named"]) for row in rows),
            "num_attempts": len(rows),
            "num_no_place": outcomes["no_place"],
            "num_not_written": outcomes["not_written"],
            "num_not_confirmed": outcomes["not_confirmed"],
            "num_out": len(rows) - outcomes["tried"],
        }
    )


def _shown(hits: int, of: int) -> tuple[str, str, str]:
    if not of:
        return "", "", ""
    low, high = wilson(hits, of)
    return str(of), str(hits), f"{low:.0%} to {high:.0%}"


def _share(hits: int, of: int) -> str:
    if not of:
        return "0 of 0"
    low, high = wilson(hits, of)
    return f"{hits} of {of} (95%: {low:.0%} to {high:.0%})"


def _sort_of(row: Row) -> str:
    return row["perturbation"]


def _language_of(row: Row) -> str:
    return row["language"] or "unknown"


def _model_of(row: Row) -> str:
    return row["judge"]
