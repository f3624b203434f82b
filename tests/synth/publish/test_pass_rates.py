"""Pass rates by what tasks are like: what counts as a pass, what does not count, the order."""

from pathlib import Path

from records.store.dataset import Dataset
from synth.publish.pass_rates import pass_rates
from synth.publish.report import report_html, summary_markdown
from tests.records.rows import row
from tests.synth.publish.judged import decision
from tests.synth.small_dataset import trajectory

FATES = {
    "easy": [None, None, "near_duplicate", "outside_band", "sequence_quota"],
    "hard": ["failed_state", "failed_call", "low_score", None, "failed_state"],
    "broken": ["faulty_task"] * 3,
}
"""Task -> what became of each attempt; None is accepted."""

TRAITS = {
    "easy": {"variant": "normal", "num_steps": 1, "proof": {"forms": ["plain", "plain"]}},
    "hard": {"variant": "missing_tool", "num_steps": 9, "operator": "longer", "proof": {}},
    "broken": {"variant": "no_tool", "num_steps": 0, "proof": {"forms": ["chosen", "plain"]}},
}


def dataset_at(root: Path) -> Dataset:
    dataset = Dataset.create_or_open(root)
    tables: dict[str, list] = {
        "tasks": [row("tasks", task_id=name, **own) for name, own in TRAITS.items()],
        "trajectories": [],
        "curation": [],
    }
    for task, fates in FATES.items():
        for number, reason in enumerate(fates):
            name = f"{task}-{number}"
            tables["trajectories"].append(trajectory(name, task_id=task))
            tables["curation"].append(decision(name, reason))
    spoiled = trajectory("hard-9", task_id="hard", termination_reason="infra_error")
    tables["trajectories"].append(spoiled)
    tables["curation"].append(decision("hard-9", "infra_error"))
    dataset.append(dataset.prepare(run_id="r", stage="s", shard=0, tables=tables, items={}))
    return dataset


def test_a_pass_is_what_grading_accepts_and_what_is_hard_stands_first(tmp_path: Path) -> None:
    with dataset_at(tmp_path / "d").connect() as db:
        rates = pass_rates(db)
    of = {(r["dimension"], r["value"]): (r["attempts"], r["passed"]) for r in rates}
    assert of["variant", "normal"] == (5, 5)
    assert of["variant", "missing_tool"] == (5, 1)
    assert of["calls of the plan", "9 and more"] == (5, 1)
    assert of["operator", "none"] == (5, 5)
    assert of["operator", "longer"] == (5, 1)
    assert ("variant", "no_tool") not in of  # its task is faulty
    assert [key for key in of if key[0] == "form"] == []  # what is left has one form
    assert [r["high"] for r in rates] == sorted(r["high"] for r in rates)
    assert rates[0]["passed"] == 1
    assert all(r["low"] <= r["share"] <= r["high"] for r in rates)


def test_the_report_shows_them(tmp_path: Path) -> None:
    dataset = dataset_at(tmp_path / "d")
    for text in (report_html(dataset), summary_markdown(dataset)):
        assert "Pass rates, the hardest first" in text
        assert "9 and more" in text
