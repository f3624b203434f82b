"""What a dataset publishes of the judges of its rewrites: in the report, as markdown, at the
terminal, and as a warning."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.judging.judge_rates import JudgeStatus, Rates, rates_of
from synth.render.foreign_text import markdown_table, markdown_text
from synth.rephrasing.calibration.rates import (
    HEAD,
    as_table,
    cells,
    rates,
    status_of,
    trial_text,
    warning_of,
)
from synth.rephrasing.calibration.stage import trial_id_of, was_asked
from synth.rephrasing.calibration.trial import TABLE
from synth.rephrasing.writing.config import RephraseConfig, RewriteMinimumQuality


@dataclass(frozen=True, slots=True)
class RephrasingTrialReport:
    """Of one trial: a judge with its prompt."""

    judge: str
    """Models that play it; empty where none was tried."""
    status: JudgeStatus
    found: Rates
    table: list[Row]
    warning: str | None

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """The lines of the table, below `HEAD`."""
        return list(map(cells, self.table))

    @property
    def text(self) -> str:
        """For a terminal."""
        return "\n".join(filter(None, (self.warning, trial_text(self.table))))

    @property
    def markdown(self) -> str:
        """Names from data can be no markup in it."""
        parts = [markdown_text(f"{self.judge or 'no trial'}: {self.status.replace('_', ' ')}")]
        if self.warning:
            parts.append(f"**{markdown_text(self.warning)}**")
        if self.table:
            parts.append(markdown_table(HEAD, self.shown))
        return "\n\n".join(parts)


def trial_reports(dataset: Dataset) -> list[RephrasingTrialReport]:
    """One for each trial; one without a table where a judge was asked and none was tried; none
    where no judge was asked."""
    trials: dict[str, list[Row]] = {}
    for row in chain.from_iterable(dataset.in_commits(TABLE, _COLUMNS)):
        trials.setdefault(row["trial_id"], []).append(row)
    minimum = _minimum_quality(dataset)
    if trials:
        return [_report(rows, minimum) for rows in trials.values()]
    return [_report([], minimum)] if was_asked(dataset) else []


def warning_about(dataset: Dataset, config: RephraseConfig) -> str | None:
    """What a run says loudly of its own judge; None where no judge was asked, too."""
    if not config.asks_judge or not was_asked(dataset):
        return None
    own, minimum = _tried(dataset, config), config.calibration.minimum_quality
    warning = warning_of(status_of(own, minimum), rates(own), minimum)
    if warning and config.calibration.share and config.roles["generator"].is_offline:
        warning += (
            " roles.generator has no endpoint, and the offline model writes no changes of meaning:"
            " give it a base_url."
        )
    return warning


def status_in(dataset: Dataset, config: RephraseConfig) -> JudgeStatus:
    """Of the judge of the settings, by all its trials in the dataset."""
    return status_of(_tried(dataset, config), config.calibration.minimum_quality)


def _tried(dataset: Dataset, config: RephraseConfig) -> list[Row]:
    trial_id = trial_id_of(config)
    rows = chain.from_iterable(dataset.in_commits(TABLE, _COLUMNS))
    return [row for row in rows if row["trial_id"] == trial_id]


def _report(rows: list[Row], minimum: RewriteMinimumQuality) -> RephrasingTrialReport:
    found = rates(rows) if rows else rates_of(())
    status = status_of(rows, minimum)
    judges = sorted({row["judge"] for row in rows if row["judge"]})
    return RephrasingTrialReport(
        ", ".join(judges),
        status,
        found,
        as_table(rows, minimum),
        warning_of(status, found, minimum),
    )


def _minimum_quality(dataset: Dataset) -> RewriteMinimumQuality:
    """Of the newest run that rewrote."""
    rows = dataset.rows("runs", ["happened_at", "config"])
    said: list[dict[str, Any]] = [
        row["config"]["calibration"]["minimum_quality"]
        for row in sorted(rows, key=lambda row: str(row["happened_at"]))
        if "calibration" in (row["config"] or {})
    ]
    return RewriteMinimumQuality.model_validate(said[-1]) if said else RewriteMinimumQuality()


_COLUMNS = (
    "trial_id",
    "perturbation",
    "expected",
    "outcome",
    "judge_passed",
    "named",
    "found_by_code",
    "judge",
    "language",
)
