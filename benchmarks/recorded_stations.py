"""The stations between recorded conversations and rows to learn from, each with its account.

What comes to a station stays or leaves it for a reason. Counts that do not add up are an error.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from flows.runtime.open_run import open_run
from records.errors import SynthError
from records.store.dataset import Dataset
from synth.curation.stages import CurationStage
from synth.exports.export import Exported, export_dataset
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, GradingStage

CODE_ALONE = GradeConfig.model_validate(
    {"name": "recorded", "workers": 1, "code": [], "judging": {"perturbed_share": 0.0}}
)
"""The offline model judges, and has no say on another model's words, so it is not tried either."""


@dataclass(frozen=True)
class Station:
    name: str
    came: int
    """Conversations."""
    stayed: int
    left: Mapping[str, int]
    """By reason."""

    def check(self) -> "Station":
        """Itself. SynthError where conversations are lost, or counted twice."""
        gone = sum(self.left.values())
        if self.came != self.stayed + gone:
            raise SynthError(
                f"{self.name}: {self.came} conversations come, {self.stayed} stay and {gone} go "
                f"({dict(self.left)}); the sums differ"
            )
        return self


def account_for(stations: Sequence[Station]) -> list[str]:
    """The stations as a table. SynthError where the sums differ, or two do not join."""
    for earlier, later in pairwise(stations):
        if earlier.stayed != later.came:
            raise SynthError(
                f"{earlier.stayed} conversations stay after {earlier.name}, and {later.came} come "
                f"to {later.name}"
            )
    lines = ["| station | come | stay | go, by reason |", "|---|---|---|---|"]
    for station in map(Station.check, stations):
        gone = ", ".join(f"{n} `{why}`" for why, n in sorted(station.left.items())) or "none"
        lines.append(f"| {station.name} | {station.came} | {station.stayed} | {gone} |")
    return lines


async def grade(folder: Path) -> None:
    """What `synth grade` does, in this process and without Prefect."""
    async with open_run(CODE_ALONE, str(folder), command="benchmark") as run:
        for kind in (GradingStage, CalibrationStage, CurationStage):
            await run.run_stage(kind(run))
        run.require_all()


def export(dataset: Dataset, out: Path) -> Exported:
    """Held-out conversations, too: they are what the validation loss is of."""
    return export_dataset(
        dataset,
        out,
        include_heldout=True,
        include_unknown_license=True,
        include_code_alone=True,
        reasoning="field",
    )


def stations_of(dataset: Dataset, exported: Exported) -> list[Station]:
    """From the dataset's rows to the rows of its export."""
    rows = dataset.rows("trajectories", ["trajectory_id", "episode_id"])
    graded = {row["trajectory_id"] for row in dataset.rows("verdicts", ["trajectory_id"])}
    curated = {row["trajectory_id"]: row for row in dataset.rows("curation")}
    judged = [row for row in rows if row["episode_id"] in graded]
    reasons = reasons_in(curated.values())
    left_out = Counter(exported.left_out)
    left_out.pop("not_accepted", None)
    return [
        Station("grading", len(rows), len(judged), _some("no_verdict", len(rows) - len(judged))),
        Station("curation", len(judged), len(curated) - reasons.total(), reasons),
        Station("export", len(curated) - reasons.total(), sum(exported.rows.values()), left_out),
    ]


def _some(reason: str, count: int) -> dict[str, int]:
    return {reason: count} if count else {}


def reasons_in(curated: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Why conversations were not accepted."""
    return Counter(row["drop_reason"] for row in curated if not row["accepted"])


def in_view(dataset: Dataset) -> int:
    """Conversations of the view `sft`, which has none that code alone accepted."""
    with dataset.connect() as db:
        [(shown,)] = db.execute("SELECT count(*) FROM sft").fetchall()
    return shown
