"""What a dataset publishes of the judge that graded it: in report, card and the row of the run."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb

from records.settings import renamed_settings
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.judging.calibration import JudgingConfig
from synth.judging.judge_rates import (
    JudgeStatus,
    MinimumQuality,
    Rates,
    as_table,
    judge_rates,
    judge_status_of,
    rates_of,
    warning_of,
)
from synth.judging.labels import Shared, label_rates, labels_in_view, shared_labels
from synth.judging.panel import panel_agreement
from synth.judging.stages import trials
from synth.render.intervals import wilson
from synth.rubrics.criteria import JUDGED
from synth.rubrics.standing import TRUTH


class JudgeCosts(NamedTuple):
    """In USD, as the ledger has them."""

    rollouts: float
    """Of the runs whose trajectories were judged."""
    grading: float
    """The judge's verdicts on them."""
    trial: float
    """Trying the judge: writing and confirming perturbed negatives, and judging them."""

    @property
    def words(self) -> str:
        """Empty where nothing has a price."""
        if not self.rollouts:
            return ""
        judge, trial = self.grading / self.rollouts, self.trial / self.rollouts
        return f", judging cost {judge:.1%} of the rollouts, the judge's trial {trial:.1%}"


@dataclass(frozen=True, slots=True)
class JudgeReport:
    grading_id: str | None
    """The grading that counts for most trajectories; None where nothing was graded."""
    table: list[Row]
    """Rates by fault, language and model, with intervals."""
    rates: Rates
    """Over all faults together; they decide the status."""
    status: JudgeStatus | None
    num_labels: int
    """Criteria of the kind that only the judge decides, labelled by people."""
    shared: Shared
    """Those that several people labelled, and how often they agreed."""
    calibrated: bool
    costs: JudgeCosts
    warning: str | None
    panel: list[Row] = field(default_factory=list)
    """How often the members of a panel agree (`panel_agreement`); empty where one judge decides."""
    num_in_view: int = 0
    """Labels of people who all had the verdict before their eyes, and may have followed it."""
    findings: dict[str, int] = field(default_factory=dict)
    """The judge's findings on statements that code left open -> how many."""

    @property
    def words(self) -> str:
        """In one line."""
        if self.grading_id is None:
            return ""
        rates = ""
        if self.rates.fpr is not None:
            low, high = wilson(self.rates.false_accepts, self.rates.num_failures)
            rates = (
                f", false accepts {self.rates.false_accepts} of {self.rates.num_failures} "
                f"({self.rates.fpr:.2f}, 95%: {low:.2f} to {high:.2f})"
            )
        mark = "calibrated" if self.calibrated else "not calibrated"
        status = (self.status or "unmeasured").replace("_", " ")
        shared = ""
        if self.shared.num:
            shared = f", labellers agreed on {self.shared.agreed} of {self.shared.num}"
        in_view = f", {self.num_in_view} with the verdict in view" if self.num_in_view else ""
        return (
            f"judge: {status}, {mark} ({self.num_labels} labels{in_view}{shared}){rates}"
            f"{self.unquoted_words}{self.costs.words}"
        )

    @property
    def unquoted_words(self) -> str:
        """How many open statements pass by the judge's reasoning, without words that show them."""
        if not (num := sum(self.findings.values())):
            return ""
        no_claim, follows = (self.findings.get(name, 0) / num for name in ("no_claim", "follows"))
        return f", of {num} open statements {no_claim:.0%} claim nothing and {follows:.0%} follow"


def judge_report(
    dataset: Dataset,
    grading_id: str | None = None,
    *,
    connected: duckdb.DuckDBPyConnection | None = None,
) -> JudgeReport:
    """Of a grading, or of the one that counts for most trajectories. `connected`: to the dataset,
    where somebody is, since views take time."""
    with nullcontext(connected) if connected else dataset.connect(_READ) as db:
        if grading_id is None:
            found = db.execute(_GRADING).fetchone()
            grading_id = found[0] if found else None
        if grading_id is None:
            nothing = JudgeCosts(0.0, 0.0, 0.0)
            return JudgeReport(None, [], rates_of(()), None, 0, Shared(), False, nothing, None)
        labels, in_view = label_rates(db, grading_id), labels_in_view(db, grading_id)
        shared = shared_labels(db).get(JUDGED, Shared())
        costs, panel = judge_costs(db, grading_id), panel_agreement(db, grading_id)
        findings = findings_of(db, grading_id)
    rows, minimum = trials(dataset, grading_id), _minimum_quality(dataset)
    table = as_table(rows, minimum)
    for kind, rates in labels.items():
        line = {"who": "judge, by people's labels", "kind": kind, "judge_status": None}
        table.append(line | rates.row())
    by_people, rates = labels.get(JUDGED, rates_of(())), judge_rates(rows)
    status = judge_status_of(rates, minimum)
    return JudgeReport(
        grading_id,
        table,
        rates,
        status,
        by_people.num_fine + by_people.num_failures,
        shared,
        by_people.is_calibrated,
        costs,
        warning_of(status, rates),
        panel=panel,
        num_in_view=in_view[JUDGED],
        findings=findings,
    )


def findings_of(db: duckdb.DuckDBPyConnection, grading_id: str) -> dict[str, int]:
    """The judge's findings on the statements that it was asked about, counted."""
    return dict(db.execute(_FINDINGS, [grading_id, TRUTH]).fetchall())


def trial_text(table: Sequence[Row]) -> str:
    """The trial as a reader takes it in within a minute, from `as_table`; empty without one."""
    if not table:
        return ""
    whole = table[0]
    asked = (
        "asked for {num_attempts}: confirmed {num_by_code} by code and {num_by_second_reading} by a"
        " second reading; counted out {num_no_place} no place, {num_not_written} not written,"
        " {num_not_confirmed} not confirmed"
    )
    head = ("", "failures", "passed", "95%", "named", "controls", "passed", "95%", "asked", "out")
    lines = [head, *map(_cells, table)]
    names = max(len(line[0]) for line in lines)
    lines = [(line[0].ljust(names), *line[1:]) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(map(str.rjust, line, widths)) for line in lines]
    status = (whole["judge_status"] or "unmeasured").replace("_", " ")
    return "\n".join([f"The judge on trial: {status}", asked.format_map(whole), *shown])


def _cells(row: Row) -> tuple[str, ...]:
    out = sum(row.get(name, 0) for name in _COUNTED_OUT)
    what = row["who"].removeprefix("judge, ")
    return (
        what if row["kind"] == "all" else f"{what}: {row['kind']}",
        *_of(row["num_failures"], row["false_accepts"], row["fpr_interval"]),
        str(row.get("num_named", 0)) if row["num_failures"] else "",
        *_of(row["num_fine"], row["true_accepts"], row["tpr_interval"]),
        str(row.get("num_attempts", "")),
        str(out) if out else "",
    )


def _of(num: int, passed: int, interval: tuple[float, float] | None) -> tuple[str, str, str]:
    if interval is None:
        return "", "", ""
    return str(num), str(passed), f"{interval[0]:.0%} to {interval[1]:.0%}"


_COUNTED_OUT = ("num_no_place", "num_not_written", "num_not_confirmed")


def judge_costs(db: duckdb.DuckDBPyConnection, grading_id: str) -> JudgeCosts:
    """What a grading's judge cost, its trial apart, and the rollouts that it judged."""
    [found] = db.execute(_COSTS, [grading_id]).fetchall()
    return JudgeCosts(*found)


def calibrated_gradings(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Gradings whose judge may be called calibrated."""
    rates = {i: label_rates(db, i) for (i,) in db.execute(_GRADINGS).fetchall()}
    return [i for i, own in rates.items() if own.get(JUDGED, rates_of(())).is_calibrated]


JUDGE_MARK = """CASE WHEN t.judge_status != 'measured' THEN t.judge_status
  WHEN t.judge_status IS NULL THEN NULL
  WHEN list_contains($4, t.grading_id) THEN 'calibrated' ELSE 'not_calibrated' END"""
"""SQL over the view `trajectories` AS t; $4: the calibrated gradings."""


def _minimum_quality(dataset: Dataset) -> MinimumQuality:
    """Of the newest run that judged."""
    rows = dataset.rows("runs", ["event", "happened_at", "config"])
    configs: list[Any] = [
        row["config"]
        for row in sorted(rows, key=lambda row: str(row["happened_at"]))
        if "judging" in (row["config"] or {})
    ]
    judging = renamed_settings(JudgingConfig, configs[-1]["judging"]) if configs else {}
    return JudgingConfig.model_validate(judging).minimum_quality


_READ = ("trajectories", "verdicts", "labels", "calibration", "llm_calls")

_GRADING = """
SELECT grading_id FROM trajectories WHERE grading_id IS NOT NULL
GROUP BY ALL ORDER BY count(*) DESC, 1 LIMIT 1"""

_GRADINGS = "SELECT DISTINCT grading_id FROM trajectories WHERE grading_id IS NOT NULL ORDER BY 1"

_FINDINGS = """
SELECT finding, count(*) FROM (
  SELECT unnest(json_extract_string(details, '$[*].finding')) AS finding FROM verdicts
  WHERE grading_id = $1 AND criterion_id = $2 AND checked_by = 'judge')
GROUP BY ALL ORDER BY ALL"""

_COSTS = """
SELECT coalesce(sum(cost_usd) FILTER (stage = 'rollouts' AND run_id IN (
    SELECT t.run_id FROM trajectories AS t JOIN verdicts AS v USING (trajectory_id)
    WHERE v.grading_id = $1)), 0),
  coalesce(sum(cost_usd) FILTER (stage = 'grading' AND run_id IN (
    SELECT run_id FROM verdicts WHERE grading_id = $1)), 0),
  coalesce(sum(cost_usd) FILTER (stage = 'calibration' AND run_id IN (
    SELECT run_id FROM calibration WHERE grading_id = $1)), 0)
FROM llm_calls"""
