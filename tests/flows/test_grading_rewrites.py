"""Rewrites are decided about again from what is stored: nothing is written anew, or paid twice."""

import asyncio
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.cli.commands.data import export
from flows.cli.commands.grade import grade
from flows.runtime.open_run import open_run
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.engine.job_config import OfflineConfig
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.exports.texts import export_texts
from synth.rephrasing.decisions.deciding import NOT_GATED, DecisionStage
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.rephrase import decide
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from tests.flows.rephrase_work import SMALL, run_rephrase
from tests.records.kept import copy_of_schema_1

UNJUDGED = SMALL.model_copy(update={"judge": "none"})
JUDGED = SMALL.model_copy(update={"judge": "all", "offline": OfflineConfig(roles=("judge",))})

ASKED = "select stage, count(*) from llm_calls where not cache_hit group by all"
WORD = "select rephrasing_id, kept, drop_reason, repeats, flags, split from rephrasings order by 1"


def decided(folder: Path, config: RephraseConfig) -> list[StageReport]:
    async def run() -> list[StageReport]:
        async with open_run(config, str(folder), command="synth grade") as opened:
            return await decide(opened, Run.run_stage)

    return asyncio.run(run())


def asked(folder: Path) -> dict[str, int]:
    """Requests by stage."""
    return dict(Dataset.open(folder).connect().execute(ASKED).fetchall())


def word(folder: Path) -> list[tuple]:
    return Dataset.open(folder).connect().execute(WORD).fetchall()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rewrites") / "d"
    run_rephrase(folder, UNJUDGED)
    return folder


def texts(folder: Path) -> list[Row]:
    return Dataset.open(folder).rows("rephrasings")


def test_other_thresholds_cost_nothing_and_the_newest_decision_counts(written: Path) -> None:
    before, paid, first = texts(written), asked(written), word(written)
    assert any(kept for _, kept, *_ in first)
    strict = UNJUDGED.model_copy(update={"fidelity": FidelityConfig(max_copied=0.0)})
    decided(written, strict)
    assert "copied" in {reason for _, _, reason, *_ in word(written)}
    kept = {i for i, kept, *_ in word(written) if kept}
    assert kept < {i for i, kept, *_ in first if kept}
    with Dataset.open(written).connect() as db:
        assert {i for (i,) in db.execute("select doc_id from pretrain").fetchall()} == kept
    held_out = UNJUDGED.model_copy(update={"heldout_share": 1.0})
    decided(written, held_out)
    assert {split for *_, split in word(written)} == {"heldout_document"}
    decided(written, UNJUDGED)
    assert word(written) == first
    assert texts(written) == before
    assert asked(written) == paid


def test_a_run_with_other_thresholds_writes_nothing_anew(written: Path) -> None:
    before, paid = texts(written), asked(written)
    settings = {"fidelity": FidelityConfig(min_numbers=1.0), "gates": (), "heldout_share": 0.5}
    reports = run_rephrase(written, UNJUDGED.model_copy(update=settings))
    assert reports[0].reused == reports[0].requested
    assert texts(written) == before
    assert asked(written) == paid


def test_a_judge_is_asked_once_about_stored_parts_and_its_word_decides(written: Path) -> None:
    paid = asked(written)
    decided(written, JUDGED)
    once = asked(written)
    assert once["rephrasing-verdicts"] > 0
    assert {stage: n for stage, n in once.items() if stage != "rephrasing-verdicts"} == paid
    decided(written, JUDGED)
    assert asked(written) == once
    rows = Dataset.open(written).rows("rephrasing_verdicts")
    parts = {
        (row["rephrasing_id"], part)
        for row in texts(written)
        for part, chunk in enumerate(row["chunks"])
        if chunk["attempts"] and not chunk["replaced"]
    }
    assert {(row["rephrasing_id"], row["part"]) for row in rows} == parts
    unfaithful = {row["rephrasing_id"] for row in rows if row["verdict"] == "unfaithful"}
    assert unfaithful, "the offline judge finds something in what nobody judged"
    for rephrasing_id, kept, reason, _, flags, _ in word(written):
        if rephrasing_id in unfaithful:
            assert not kept
            assert "unfaithful" in (reason, *flags)
        else:
            assert flags == []
            assert reason != "unfaithful"
    shown = SMALL.fidelity.model_copy(update={"drop_for": ("wrong_language",)})
    decided(written, JUDGED.model_copy(update={"fidelity": shown}))
    flagged = {i for i, _, _, _, flags, _ in word(written) if "unfaithful" in flags}
    assert flagged == unfaithful


def test_the_summary_counts_the_parts_that_the_rows_tell_of(written: Path) -> None:
    summary = summarise(Dataset.open(written))
    chunks = [chunk for row in texts(written) for chunk in row["chunks"]]
    assert summary.parts == {
        "written": sum(chunk["attempts"] > 0 for chunk in chunks),
        "given_back": sum(len(chunk["faults"]) for chunk in chunks),
        "replaced": sum(chunk["replaced"] for chunk in chunks),
    }
    assert sum(row["n"] for row in summary.faults) == summary.parts["given_back"]
    assert f"parts: {summary.parts['written']} written" in "\n".join(lines(summary))


def test_an_export_leaves_out_what_is_flagged_unless_told(written: Path, tmp_path: Path) -> None:
    decided(written, UNJUDGED)
    store = Dataset.open(written)
    every = export_texts(store, tmp_path / "all", include_flagged=True, include_heldout=True)
    kept = {i: flags for i, kept, _, _, flags, _ in word(written) if kept}
    assert any(kept.values())
    files = sorted((tmp_path / "all" / "data").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert {row["doc_id"]: row["flags"] for row in rows} == kept
    own = {row["rephrasing_id"]: row["text"] for row in texts(written)}
    assert all(own[row["doc_id"]] == row["text"] for row in rows)
    assert sum(every.rows.values()) + sum(every.left_out.values()) == len(own)
    cleared = [i for i, flags in kept.items() if not flags]
    if not cleared:
        with pytest.raises(ConfigError, match="--include-flagged"):
            export_texts(store, tmp_path / "few", include_heldout=True)
    else:
        few = export_texts(store, tmp_path / "few", include_heldout=True)
        assert sum(few.rows.values()) == len(cleared)


def test_rewrites_of_before_decisions_are_read_and_decided_about(tmp_path: Path) -> None:
    folder = copy_of_schema_1(tmp_path)
    own = {row["rephrasing_id"]: row for row in texts(folder)}
    assert own
    for rephrasing_id, kept, reason, *_ in word(folder):
        assert (kept, reason) == (own[rephrasing_id]["kept"], own[rephrasing_id]["drop_reason"])
    decided(folder, RephraseConfig(sources=(SourceConfig(path="cpython"),)))
    assert all(flags is not None for *_, flags, _ in word(folder))
    assert texts(folder) == list(own.values())


def test_gates_count_in_their_order_and_what_none_has_looked_through_is_not_kept(
    tmp_path: Path,
) -> None:
    hooks = tmp_path / "hooks.py"
    hooks.write_text("def first(text):\n    return 'a'\n\ndef second(text):\n    return 'b'\n")
    few = SourceConfig(path="cpython", max_documents=1)
    plain = UNJUDGED.model_copy(update={"sources": (few,), "gates": ()})
    run_rephrase(tmp_path / "d", plain)
    kept = {i for i, kept, *_ in word(tmp_path / "d") if kept}
    assert kept

    def reasons(*names: str, stages: bool) -> set[str]:
        gates = [f"{hooks}:{name}" for name in names]
        values = plain.model_dump(mode="json") | {"gates": gates}
        config = RephraseConfig.model_validate(values)

        async def decision_alone() -> None:
            async with open_run(config, str(tmp_path / "d"), command="synth grade") as opened:
                await opened.run_stage(DecisionStage(opened))

        if stages:
            decided(tmp_path / "d", config)
        else:
            asyncio.run(decision_alone())
        return {reason for i, _, reason, *_ in word(tmp_path / "d") if i in kept}

    assert reasons("first", "second", stages=False) == {NOT_GATED}
    assert reasons("first", "second", stages=True) == {"first"}
    assert reasons("second", "first", stages=True) == {"second"}
    assert reasons("first", "second", stages=True) == {"first"}


def test_a_judge_that_nobody_would_ask_is_refused(written: Path) -> None:
    with pytest.raises(ConfigError, match=r"--judge-model good.*roles\.judge\.base_url"):
        grade(str(written), judge_model="good")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"format_": "texts", "include_code_alone": True}, "--include-code-alone"),
        ({"format_": "texts", "reasoning": "think"}, "--reasoning"),
        ({"format_": "hf", "include_flagged": True}, "--include-flagged"),
    ],
)
def test_an_export_takes_no_option_that_it_does_not_read(
    written: Path, tmp_path: Path, options: dict, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        export(str(written), out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_large_export_is_cut_into_files_that_hold_each_text_once(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(written, UNJUDGED)
    store = Dataset.open(written)
    allowed = {"include_flagged": True, "include_heldout": True}
    whole = export_texts(store, tmp_path / "one", **allowed)
    monkeypatch.setattr("synth.exports.texts.FILE_ROWS", 2)
    assert export_texts(store, tmp_path / "cut", **allowed).rows == whole.rows

    def exported(folder: Path) -> dict[str, list[Row]]:
        files = sorted((folder / "data").glob("*.parquet"))
        found: dict[str, list[Row]] = {}
        for file in files:
            found.setdefault(file.name.split("-")[0], []).extend(pq.read_table(file).to_pylist())
        return found

    assert len(list((tmp_path / "cut" / "data").iterdir())) > len(whole.rows)
    assert exported(tmp_path / "cut") == exported(tmp_path / "one")
