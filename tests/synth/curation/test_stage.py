"""The stage of curation over a dataset: leaks, duplicates, loss flags, and what readers see."""

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offline_llm.app import create_app
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.curation.comparison import compare_curations
from synth.curation.report import (
    MOST_SHOWN,
    decontamination_html,
    pieces,
    write_decontamination_report,
)
from synth.curation.stages import CurationStage
from synth.engine.stages import Item, ShardContext
from synth.judging.config import GradeConfig
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from tests.synth.curation.test_deciding import RUBRIC
from tests.synth.small_dataset import conversation, trajectory, write_dataset

LEAK = (
    "Please rent me a boat that is called Heron for the whole of the afternoon, unless it costs "
    "more than forty euros an hour, in which case any boat with a sail will do for my family."
)
OTHER = (
    "My grandmother would like a quiet rowing boat on Tuesday after breakfast; tell me what has to "
    "be signed and who may steer when she is tired."
)
HOSTILE = "<script>alert(1)</script><mark>"

Made = tuple[Dataset, list[Row]]


def names(number: int) -> str:
    return f"trajectory-{number}"


def made(root: Path, many: list[tuple[str, str | None]], *, seed: int | None = None) -> Dataset:
    """One trajectory for each (what the user says, reason against it), of the same task; with a
    seed they are written in another order."""
    rows = [
        (trajectory(names(n), conversation(said), attempt=n, executed_by=["state_machine"]), reason)
        for n, (said, reason) in enumerate(many)
    ]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    return write_dataset(root, rows)


def evaluation(folder: Path, *texts: str) -> str:
    path = folder / "bench.jsonl"
    path.write_text("".join(json.dumps({"instruction": text}) + "\n" for text in texts))
    return str(path)


def curate(dataset: Dataset, number: int = 2, **settings: Any) -> dict[str, Row]:
    """Decide, commit as the newest curation, and return its rows by trajectory."""
    roles = settings.pop("offline_roles", [])
    config = GradeConfig.model_validate(
        {"code": [], "curation": settings, "offline": {"roles": roles}}
    )
    run: Any = SimpleNamespace(config=config, dataset=dataset)
    stage = CurationStage(run)
    stage.grading_id = "grading-1"
    stage.verdicts = verdicts_by_trajectory(dataset)
    tasks = {row["task_id"]: row | {"rubric": RUBRIC} for row in dataset.rows("tasks")}
    stage.recorded = replace(stage.recorded, tasks=tasks)
    [item] = stage.plan()
    journal = dataset.root / f"journal-{number}.sqlite"
    tables = asyncio.run(_make(stage, item, journal))
    dataset.commit(run_id=f"run-{number}", stage="curation", shard=0, tables=tables)
    return {row["trajectory_id"]: row for row in tables["curation"]}


async def _make(stage: CurationStage, item: Item, path: Path) -> Any:
    app = create_app()
    async with Gateway(stage.run.config.roles, offline_app=lambda: app) as gateway:
        with ShardJournal(path) as journal:
            llm = LLM(gateway, journal, stage="curation", invocation_id="test")
            made = await stage.make(item, ShardContext(llm, journal))
            return dict(made.tables) | {"llm_calls": llm.rows()}


def verdicts_by_trajectory(dataset: Dataset) -> Any:
    """Those of the dataset, with the version of who gave them."""
    rows = [row | {"checker_version": "checker@1"} for row in dataset.rows("verdicts")]
    return {i: [r for r in rows if r["trajectory_id"] == i] for i in dataset.ids("trajectories")}


def reasons(rows: dict[str, Row]) -> list[str | None]:
    return [rows[names(n)]["drop_reason"] for n in range(len(rows))]


SAID: list[tuple[str, str | None]] = [
    (LEAK, None),
    (OTHER, None),
    (f"Hello. {LEAK}", "failed_state"),
]


def test_what_is_in_an_evaluation_goes_whatever_else_speaks_against_it(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d", SAID)
    rows = curate(dataset, decontamination={"files": [evaluation(tmp_path, LEAK)]})
    assert reasons(rows) == ["in_evaluation", None, "in_evaluation"]
    with dataset.connect() as db:
        found = db.execute(
            "SELECT trajectory_id, method, part, file, item FROM contaminations ORDER BY ALL"
        ).fetchall()
        assert db.execute("SELECT count(*) FROM preferences").fetchall() == [(0,)]
        assert db.execute("SELECT count(*) FROM rl").fetchall() == [(0,)], "the task leaks"
        assert db.execute("SELECT trajectory_id FROM sft").fetchall() == [(names(1),)]
    expected = [
        (names(n), method, "user", "bench.jsonl", 0)
        for n in (0, 2)
        for method in ("minhash", "ngrams")
    ]
    assert found == sorted(expected, key=lambda row: (row[0], row[1]))


def test_a_duplicate_is_rejected_by_nobody_and_pairs_are_of_the_agents_failures(
    tmp_path: Path,
) -> None:
    dataset = made(
        tmp_path / "d", [(LEAK, None), (f"{LEAK} Thanks.", None), (OTHER, "failed_state")]
    )
    rows = curate(dataset, near=0.6)
    assert sorted(map(str, reasons(rows))) == ["None", "failed_state", "near_duplicate"]
    (twice,) = (row for row in rows.values() if row["drop_reason"] == "near_duplicate")
    assert twice["attributed_to"] is None
    assert rows[twice["repeats"]]["accepted"]
    with dataset.connect() as db:
        pairs = db.execute("SELECT chosen_id, rejected_id FROM preferences").fetchall()
    assert [rejected for _, rejected in pairs] in ([], [names(2)])
    assert not {twice["trajectory_id"]} & {one for pair in pairs for one in pair}


@pytest.mark.parametrize("settings", [{"near": 0.6}, {"quotas": {"domain": {"*": 0.5}}}, {}])
def test_the_order_in_which_rows_were_written_changes_nothing(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    file = evaluation(tmp_path, OTHER, LEAK)
    said = [*SAID, (f"{LEAK} Thanks.", None), ("What do you rent out on Sundays?", None)]
    found = []
    for seed in (None, 1):
        dataset = made(tmp_path / f"d{seed}", said, seed=seed)
        rows = curate(dataset, decontamination={"files": [file]}, **settings)
        found.append((rows, dataset.rows("contaminations")))
    assert found[0] == found[1]


def test_what_the_agent_thinks_and_writes_into_calls_is_looked_through(tmp_path: Path) -> None:
    thinks, writes = conversation("Rent me a boat."), conversation("Rent me another boat.")
    thinks[2]["reasoning_content"] = f"The user says: {LEAK}"
    arguments = json.dumps({"name": LEAK.replace(", ", ",\n")})
    writes[2]["tool_calls"][0]["function"]["arguments"] = arguments
    rows = [(trajectory(names(n), m, attempt=n), None) for n, m in enumerate((thinks, writes))]
    dataset = write_dataset(tmp_path / "d", rows)
    found = curate(dataset, decontamination={"files": [evaluation(tmp_path, LEAK)]})
    assert reasons(found) == ["in_evaluation"] * 2
    parts = {row["part"]: row["score"] for row in dataset.rows("contaminations")}
    assert parts == {"thought": len(LEAK.split()), "call": len(LEAK.split())}


def test_another_curation_is_compared_by_reason_and_row(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d", SAID)
    first = curate(dataset)
    second = curate(dataset, 3, decontamination={"files": [evaluation(tmp_path, LEAK)]})
    a, b = (next(iter(rows.values()))["curation_id"] for rows in (first, second))
    found = compare_curations(dataset, a[:12], b)
    assert (found.first, found.second) == (a, b)
    counted = {one.reason: (one.first, one.second) for one in found.reasons}
    assert counted["in_evaluation"] == (0, 2)
    assert sum(n for n, _ in counted.values()) == sum(n for _, n in counted.values()) == 3
    assert {row.trajectory_id for row in found.changed} == {names(0), names(2)}
    assert all(row.second == "in_evaluation" != row.first for row in found.changed)
    assert compare_curations(dataset, a, a).changed == []
    with pytest.raises(ConfigError, match=r"'zzz' is no curation of .*it has, the newest last"):
        compare_curations(dataset, a, "zzz")


def test_the_embedder_is_asked_through_the_client_and_never_twice(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d", [(f"Good morning to you all. {LEAK}", None), (OTHER, None)])
    files = [evaluation(tmp_path, LEAK)]
    settings: dict[str, Any] = {"offline_roles": ["embedder"]}
    first = curate(dataset, decontamination={"files": files, "cosine": 0.5}, **settings)
    asked = dataset.rows("llm_calls", ["role", "stage", "prompt_tokens"])
    asked = [row for row in asked if row["role"] == "embedder"]
    assert asked
    assert all(row["prompt_tokens"] > 0 for row in asked)
    known = dataset.rows("embedded_passages")
    second = curate(dataset, 3, decontamination={"files": files, "cosine": 1.0}, **settings)
    again = [row for row in dataset.rows("llm_calls", ["role"]) if row["role"] == "embedder"]
    assert len(again) == len(asked), "what is known of a passage is paid for again"
    assert dataset.rows("embedded_passages") == known
    assert methods_of(dataset, first) == {"ngrams", "minhash", "embedder"}
    assert methods_of(dataset, second) == {"ngrams", "minhash"}


def methods_of(dataset: Dataset, curation: dict[str, Row]) -> set[str]:
    """Which found something for a curation."""
    curation_id = curation[names(0)]["curation_id"]
    rows = dataset.rows("contaminations")
    return {row["method"] for row in rows if row["curation_id"] == curation_id}


def test_the_report_escapes_what_it_shows_and_marks_what_is_shared(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d", [(f"{HOSTILE} {LEAK}", None)])
    curate(dataset, decontamination={"files": [evaluation(tmp_path, f"{LEAK} {HOSTILE}")]})
    html = decontamination_html(dataset)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert f"<mark>{LEAK.rstrip('.')}" in html
    assert write_decontamination_report(dataset).read_text() == html


def test_the_report_shows_each_method_and_what_many_share_once(tmp_path: Path) -> None:
    many: list[tuple[str, str | None]] = [(LEAK, None)] * 5
    many += [(f"{OTHER} {n} or so.", None) for n in range(MOST_SHOWN)]
    dataset = made(tmp_path / "d", many)
    curate(dataset, decontamination={"files": [evaluation(tmp_path, LEAK, OTHER)]})
    html = decontamination_html(dataset)
    assert f"{MOST_SHOWN + 5} of {MOST_SHOWN + 5} trajectories are dropped" in html
    assert ", and 4 more</p>" in html
    shown = html.split("Side by side")[1]
    assert abs(shown.count("<h3>ngrams") - shown.count("<h3>minhash")) <= 1


def test_a_text_that_is_cut_at_its_spans_is_whole() -> None:
    text = "abcdefgh"
    for spans in ([], [(2, 4)], [(0, 8)], [(1, 3), (2, 5)], [(5, 6), (0, 1)]):
        assert "".join(piece.text for piece in pieces(text, spans)) == text
    assert [p.text for p in pieces(text, [(2, 4), (6, 8)]) if p.is_shared] == ["cd", "gh"]
