"""What a dataset publishes of the judge that graded it: in report, card and the row of the run."""

from dataclasses import dataclass, field
from typing import Any

from records.settings import renamed_settings
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.judging.calibration import JudgingConfig
from synth.judging.judge_rates import (
    CALIBRATED_AT,
    JudgeStatus,
    MinimumQuality,
    as_table,
    judge_rates,
    status_on_judged,
    warning_of,
)
from synth.judging.labels import Shared, calibrated_kinds, label_rates, shared_labels
from synth.judging.panel import panel_agreement
from synth.judging.stages import trials
from synth.rubrics.criteria import JUDGED


@dataclass(frozen=True, slots=True)
class JudgeReport:
    grading_id: str | None
    """The grading that counts for most trajectories; None where nothing was graded."""
    table: list[Row]
    """Rates by checker and kind, with intervals."""
    status: JudgeStatus | None
    num_labels: int
    """Criteria of the kind that only the judge decides, labelled by people."""
    shared: Shared
    """Those that several people labelled, and how often they agreed."""
    calibrated: bool
    warning: str | None
    panel: list[Row] = field(default_factory=list)
    """How often the members of a panel agree (`panel_agreement`); empty where one judge decides."""

    @property
    def words(self) -> str:
        """In one line."""
        if self.grading_id is None:
            return ""
        own = next((r for r in self.table if (r["who"], r["kind"]) == ("judge", JUDGED)), None)
        rates = ""
        if own is not None and own["fpr"] is not None:
            low, high = own["fpr_interval"]
            rates = (
                f", false accepts {own['false_accepts']} of {own['num_failures']} "
                f"({own['fpr']:.2f}, 95%: {low:.2f} to {high:.2f})"
            )
        mark = "calibrated" if self.calibrated else "not calibrated"
        status = (self.status or "unmeasured").replace("_", " ")
        shared = ""
        if self.shared.num:
            shared = f", labellers agreed on {self.shared.agreed} of {self.shared.num}"
        return f"judge on {JUDGED}: {status}, {mark} ({self.num_labels} labels{shared}){rates}"


def judge_report(dataset: Dataset, grading_id: str | None = None) -> JudgeReport:
    """Of a grading, or of the one that counts for most trajectories."""
    if grading_id is None:
        with dataset.connect() as db:
            found = db.execute(_GRADING).fetchone()
        grading_id = found[0] if found else None
    if grading_id is None:
        return JudgeReport(None, [], None, 0, Shared(), calibrated=False, warning=None)
    rows, minimum = trials(dataset, grading_id), _minimum_quality(dataset)
    table, labels = as_table(rows, minimum), label_rates(dataset, grading_id)
    for kind, rates in labels.items():
        line = {"who": "judge, by people's labels", "kind": kind, "judge_status": None}
        table.append(line | rates.row())
    own = labels.get(JUDGED)
    status = status_on_judged(rows, minimum)
    return JudgeReport(
        grading_id,
        table,
        status,
        own.num_fine + own.num_failures if own else 0,
        shared_labels(dataset).get(JUDGED, Shared()),
        calibrated=JUDGED in calibrated_kinds(labels, CALIBRATED_AT),
        warning=warning_of(status, judge_rates(rows)),
        panel=panel_agreement(dataset, grading_id),
    )


def calibrated_gradings(dataset: Dataset) -> list[str]:
    """Gradings whose judge may be called calibrated."""
    with dataset.connect() as db:
        ids = [i for (i,) in db.execute(_GRADINGS).fetchall()]
    return [i for i in ids if JUDGED in calibrated_kinds(label_rates(dataset, i), CALIBRATED_AT)]


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


_GRADING = """
SELECT grading_id FROM trajectories WHERE grading_id IS NOT NULL
GROUP BY ALL ORDER BY count(*) DESC, 1 LIMIT 1"""

_GRADINGS = "SELECT DISTINCT grading_id FROM trajectories WHERE grading_id IS NOT NULL ORDER BY 1"
