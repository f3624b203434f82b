"""What a run's report says of sandboxes on a cluster."""

from pathlib import Path

from records.store.dataset import Dataset
from synth.engine.shard_maker import CLUSTER
from synth.publish.report import report_html, summary_markdown
from synth.publish.summary import summarise
from synth.render.clusters import CLAIMS, FAILURES, WAITS, figures_of

COUNTS = {
    "asked": 40,
    "claimed": 39,
    "waited_ms": 20_000,
    "waited_unschedulable": 3,
    "no_room_quota": 1,
    "failed_image": 2,
    "over_node_lost": 4,
    "over_program": 5,
    "watch_pods_resumed": 6,
}


def test_figures_are_told_in_three_groups_and_the_programs_acts_are_no_failures() -> None:
    found = {(row.group, row.name): row.value for row in figures_of(COUNTS)}
    assert found == {
        (CLAIMS, "sandboxes asked for"): "40",
        (CLAIMS, "claimed, or made as a Pod"): "39",
        (CLAIMS, "ended by the program inside, and scored"): "5",
        (WAITS, "claims that waited for a node"): "3",
        (WAITS, "no room in time: quota"): "1",
        (WAITS, "mean time until a sandbox answered"): "0.50 s (20 s in all)",
        (FAILURES, "did not start: image"): "2",
        (FAILURES, "lost while in use: node lost"): "4",
    }
    assert [row.group for row in figures_of({"asked": 1})] == [CLAIMS, WAITS, FAILURES]
    assert figures_of({}) == []


def test_report_and_artifact_show_them_and_are_silent_without(tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path / "d")
    assert summarise(dataset).cluster == []
    assert "on the cluster" not in report_html(dataset) + summary_markdown(dataset)
    place = {"invocation_id": "i", "stage": "rollouts", "seconds": 0.0}
    for shard in range(2):  # of two processes, say: what they counted adds up
        rows = [
            place | {"shard": shard, "name": CLUSTER + what, "count": n}
            for what, n in COUNTS.items()
        ]
        dataset.commit(run_id="r", stage="rollouts", shard=shard, tables={"timings": rows})
    for text in (report_html(dataset), summary_markdown(dataset)):
        assert "Sandboxes on the cluster" in text
        assert "node lost" in text
        assert "80" in text
    assert not summarise(dataset).notes
