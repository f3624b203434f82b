"""Tasks whose tools training has and whose values it has not, from the draw to the score."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.tasks.config import GrowthShares, TaskConfig
from tests.trainer.evaluation.test_evaluation import Silent, of
from tests.trainer.played_dataset import make_dataset
from tool_specs.domains.domain import load_domains
from tool_specs.growth.grown_seed import grown_seed_of
from trainer.evaluation.playing import evaluate


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = TaskConfig(
        heldout_values_share=0.5,
        heldout_share=0.0,
        simple=1.0,
        complex=0.0,
        growth=GrowthShares(shares={"300": 1.0}),
    )
    return make_dataset(tmp_path_factory.mktemp("values") / "data", num_tasks=24, tasks=tasks)


def told(task: Row) -> set[str]:
    """Names that the user knows. Codes, days and words of a list are no split's own."""
    values = [str(fact["value"]) for fact in task["user_brief"]["facts"]]
    return {value for value in values if " " in value and value.replace(" ", "").isalpha()}


def test_values_are_new_and_combinations_are_not(dataset: Path) -> None:
    tasks = Dataset.open(dataset).rows("tasks")
    trained = [task for task in tasks if task["split"] == "train"]
    held = [task for task in tasks if task["split"] == "heldout_values"]
    assert len(trained) > 4
    assert len(held) > 4
    for task in (*trained, *held):
        grown = grown_seed_of(task["initial_state"])
        assert grown is not None
        assert grown.split == task["split"]
    (domain,) = load_domains(["parcel_depot"])
    of_seed = {str(v) for rows in domain.seed.values() for row in rows for v in row.values()}
    names = {value for task in held for value in told(task)} - of_seed
    assert names
    assert not names & {value for task in trained for value in told(task)}
    tools = [
        {frozenset(c["tool"] for c in t["reference_plan"]) for t in ts} for ts in (held, trained)
    ]
    assert tools[0] & tools[1]


def test_no_such_row_is_learnt_from_and_each_is_scored_by_its_name(
    dataset: Path, tmp_path: Path
) -> None:
    with Dataset.open(dataset).connect() as db:
        [(rows,)] = db.execute("SELECT count(*) FROM sft WHERE split = 'heldout_values'").fetchall()
    assert rows  # in the view, with its split, which training leaves out
    done = evaluate(
        Silent(), of(dataset, splits=("heldout_values",), tasks=3), journal=tmp_path / "j"
    )
    assert {one.split for one in done.played} == {"heldout_values"}
    assert {one.cluster for one in done.played} == {
        task["domain_id"] for task in Dataset.open(dataset).rows("tasks")
    }
