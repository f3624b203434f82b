"""What is new in a held-out task, values or a tool, from the draw to the score."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.tasks.agents.agents import AgentConfig
from synth.tasks.config import GrowthShares, TaskConfig
from tests.trainer.evaluation.test_evaluation import Silent, of
from tests.trainer.played_dataset import make_dataset
from tool_specs.domains.domain import load_domains
from tool_specs.growth.grown_seed import grown_seed_of
from trainer.data.sources import CorpusConfig, is_learnt_from, samples_of
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


def test_where_no_state_grows_no_values_are_held_out(tmp_path: Path) -> None:
    """Its rows would be those that training has."""
    tasks = TaskConfig(heldout_values_share=1.0, heldout_share=0.0)
    dataset = make_dataset(tmp_path / "data", num_tasks=4, tasks=tasks)
    assert {task["split"] for task in Dataset.open(dataset).rows("tasks")} == {"train"}


def test_no_such_row_is_learnt_from_and_each_is_scored_by_its_name(
    dataset: Path, tmp_path: Path
) -> None:
    source = CorpusConfig(path=str(dataset))
    seen = list(samples_of(source, "sft"))
    held = [sample for sample in seen if sample.split == "heldout_values"]
    assert held  # in the view, with its split, which training leaves out
    assert not any(is_learnt_from(sample, source) for sample in held)
    assert any(is_learnt_from(sample, source) for sample in seen)
    done = evaluate(
        Silent(), of(dataset, splits=("heldout_values",), tasks=3), journal=tmp_path / "j"
    )
    assert {one.split for one in done.played} == {"heldout_values"}
    assert {one.cluster for one in done.played} == {
        task["domain_id"] for task in Dataset.open(dataset).rows("tasks")
    }


def test_of_tasks_with_new_tools_those_are_played_whose_plan_takes_one(tmp_path: Path) -> None:
    agents = AgentConfig(heldout_share=1.0, max_distractors=0)
    made = make_dataset(tmp_path / "data", num_tasks=16, domains=("web_shop",), agents=agents)
    store = Dataset.open(made)
    new = {t["name"]: t["tool_id"] for t in store.rows("tools") if t["split"] == "heldout_tool"}
    tasks = {t["task_id"]: t for t in store.rows("tasks") if t["split"] == "heldout_tool"}
    taken = {
        task_id: [new[c["tool"]] for c in task["reference_plan"] if c["tool"] in new]
        for task_id, task in tasks.items()
    }
    assert 0 < sum(map(bool, taken.values())) < len(tasks)
    config = of(made, splits=("heldout_tool",), tasks=100)
    done = evaluate(Silent(), config, journal=tmp_path / "j")
    assert {one.task_id: one.cluster for one in done.played} == {
        task_id: tools[0] for task_id, tools in taken.items() if tools
    }
    assert not any(one.known_tools for one in done.played)
    assert done.left_out == {"new_tool_not_needed": sum(not tools for tools in taken.values())}
