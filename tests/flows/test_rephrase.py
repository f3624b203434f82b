"""A rephrasing is a run like any other: resumed to the same rows, never paid twice, budgeted."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from offline_llm.settings.settings import Misbehaviour
from records.errors import BudgetError
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.llm.settings.config import BudgetConfig
from synth.rephrasing.summary import summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import content_of
from tests.flows.rephrase_work import LENIENT, SMALL, run_rephrase
from tests.killing import PROCESSES, run, spread
from tests.trainer.configs import small
from trainer.data.sources import CorpusConfig as TrainedOn
from trainer.data.sources import samples_of
from trainer.training.loop import train
from trainer.training.settings import DataConfig, TrainConfig

PROCESSES.set_forkserver_preload(
    ["__main__", "tests.killing", "pyarrow.compute", "pandas", "tests.flows.rephrase_work"]
)
KILLS = 6
"""Points at which a run is killed, spread over it."""

SPENT = """
select count(*), count(distinct request_hash || item_id || step) from llm_calls
where not cache_hit and stage = 'rephrase' and status = 'ok'
"""


def paid(folder: Path) -> tuple[int, int]:
    """Requests, and different ones among them."""
    [row] = Dataset.open(folder).connect().execute(SPENT).fetchall()
    return row


class Whole(NamedTuple):
    folder: Path
    points: int
    """At which it can be killed."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("rephrased") / "d"
    return Whole(folder, run(run_rephrase, folder).points)


@pytest.fixture(scope="module")
def whole(undisturbed: Whole) -> Path:
    return undisturbed.folder


@pytest.mark.slow
def test_killed_between_writes_it_goes_on_to_the_same_rows(
    tmp_path: Path, undisturbed: Whole
) -> None:
    whole, points = undisturbed
    expected = content_of(whole)
    for kill_at in spread(points, KILLS, seed=5):
        folder = tmp_path / f"at-{kill_at}"
        assert run(run_rephrase, folder, kill_at=kill_at).killed
        assert not run(run_rephrase, folder).killed
        assert content_of(folder) == expected, f"killed at point {kill_at}"
        requests, different = paid(folder)
        assert requests == different == paid(whole)[0]


@pytest.mark.slow
def test_concurrency_shard_size_and_latency_change_no_byte(tmp_path: Path, whole: Path) -> None:
    other = {"concurrency": 3, "shard_size": 2, "offline": OfflineConfig(jitter_s=0.02)}
    run_rephrase(tmp_path / "d", SMALL.model_copy(update=other))
    assert content_of(tmp_path / "d") == content_of(whole)


def test_more_texts_and_rewrites_change_no_row_that_exists(tmp_path: Path, whole: Path) -> None:
    fewer = (SMALL.sources[0].model_copy(update={"max_documents": 2}), SMALL.sources[1])
    run_rephrase(tmp_path / "d", SMALL.model_copy(update={"sources": fewer, "rewrites": 1}))
    few = {row["rephrasing_id"]: row for row in Dataset.open(tmp_path / "d").rows("rephrasings")}
    many = {row["rephrasing_id"]: row for row in Dataset.open(whole).rows("rephrasings")}
    assert few.items() <= many.items()
    assert 0 < len(few) < len(many)


@pytest.mark.slow
def test_every_item_is_accounted_for_under_a_misbehaving_endpoint(tmp_path: Path) -> None:
    shares = Misbehaviour(
        rate_limit=0.1, server_error=0.05, hang=0.02, truncated=0.05, prose=0.25, hang_s=0.1
    )
    config = SMALL.model_copy(update={"offline": OfflineConfig(misbehave=shares)})
    made = run_rephrase(tmp_path / "d", config)[0]
    assert made.requested == made.kept + made.dropped + made.failed
    assert made.pending == 0
    again = run_rephrase(tmp_path / "d", SMALL, retry_failed=True)[0]
    assert again.failed <= made.failed
    rows = Dataset.open(tmp_path / "d").rows("rephrasings")
    assert any(chunk["attempts"] > 1 for row in rows for chunk in row["chunks"])


@pytest.mark.slow
def test_the_judge_is_asked_where_the_settings_say_so(tmp_path: Path, whole: Path) -> None:
    asked = SMALL.model_copy(update={"judge": "all"})
    run_rephrase(tmp_path / "d", asked)
    for folder, roles in (
        (whole, {"rewriter"}),
        (tmp_path / "d", {"rewriter", "judge"}),
    ):
        with Dataset.open(folder).connect() as db:
            found = db.execute("select distinct role from llm_calls where stage = 'rephrase'")
            assert {role for [role] in found.fetchall()} == roles
    dataset = Dataset.open(tmp_path / "d")
    rows = list(dataset.rows("rephrasings"))
    for row in rows:
        for chunk in row["chunks"]:
            stands = chunk["attempts"] and not chunk["replaced"]
            assert chunk["verdict"] == ("faithful" if stands else None)
    dropped = dataset.item_statuses("rephrase").values()
    shown = [chunk["faults"] for row in rows for chunk in row["chunks"]]
    given_up = [one.reason for one in dropped]
    assert any("unfaithful" in faults for faults in shown) or "unfaithful" in given_up


@pytest.mark.slow
def test_a_run_stopped_by_its_budget_goes_on_and_pays_nothing_twice(
    tmp_path: Path, whole: Path
) -> None:
    tokens = summarise(Dataset.open(whole)).totals
    limit = (tokens["prompt_tokens"] + tokens["completion_tokens"]) // 2
    stopped = SMALL.model_copy(update={"budget": BudgetConfig(tokens=limit), "shard_size": 2})
    with pytest.raises(BudgetError):
        run_rephrase(tmp_path / "d", stopped)
    run_rephrase(tmp_path / "d")
    assert content_of(tmp_path / "d") == content_of(whole)
    assert paid(tmp_path / "d") == paid(whole)


@pytest.mark.slow
def test_repeats_code_and_splits(tmp_path: Path) -> None:
    text = "The pump moves water to the tank. It stops when the tank is full. Then the lamp is lit."
    texts = [text, text, "    x = 1\n    y = x + 1\n", *(f"{text} Pump {n}." for n in range(60))]
    lines = [json.dumps({"text": one}) for one in texts]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    config = RephraseConfig(
        sources=(SourceConfig(path=str(tmp_path / "t.jsonl"), language="en"),),
        fidelity=LENIENT,
        max_failed=1.0,
    )
    made = run_rephrase(tmp_path / "d", config)[0]
    assert made.requested == 2 * len(texts)
    assert made.reasons["repeated_source"] == 2
    assert made.reasons["nothing_to_rewrite"] == 2
    dataset = Dataset.open(tmp_path / "d")
    own = {row["rephrasing_id"]: row for row in dataset.rows("rephrasings")}
    with dataset.connect() as db:
        seen = db.execute(
            "select rephrasing_id, kept, drop_reason, repeats from rephrasings order by 1"
        ).fetchall()
        docs = {row[0] for row in db.execute("select doc_id from pretrain").fetchall()}
    assert docs == {i for i, kept, _, _ in seen if kept}
    for _, kept, reason, repeats in seen:
        assert kept == (reason is None)
        assert (repeats in docs) == (reason == "near_duplicate")
    assert any(reason == "near_duplicate" for _, _, reason, _ in seen)
    splits = {row["source_id"]: row["split"] for row in own.values()}
    assert set(splits.values()) == {"train", "heldout_document"}


def test_the_trainer_learns_from_what_was_kept(tmp_path: Path, whole: Path) -> None:
    samples = list(samples_of(TrainedOn(path=str(whole)), "pretrain"))
    kept = summarise(Dataset.open(whole)).totals["kept"]
    assert len(samples) == kept > 4
    config = TrainConfig(
        stage="pretrain",
        out=str(tmp_path / "run"),
        data=DataConfig(
            sources=(TrainedOn(path=str(whole)),), row_tokens=256, batch_rows=2, micro_rows=1
        ),
        shape=small(vocab_size=300, max_positions=256),
        steps=3,
        device="cpu",
    )
    assert train(config).steps == 3


@pytest.mark.slow
def test_the_command_its_report_and_the_view_of_a_rewrite(
    prefect_url: str, synth: Synth, refusal: Synth, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(
        'name = "few"\nmax_failed = 1.0\n[[sources]]\npath = "cpython"\nmax_documents = 4\n'
        "[fidelity]\nmax_copied = 1.0\n"
    )
    made = synth("rephrase", "c.toml", "--dataset", "d", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["totals"]["rewrites"] == 8
    page = (tmp_path / "d" / "rephrasing.html").read_text()
    assert "Offline model" in page
    assert "Rewrites beside their sources" in page
    rows = json.loads(
        refusal("sql", "select run_id, rephrasing_id from rephrasings", "-d", "d", "--json").stdout
    )
    resumed = synth("resume", rows[0]["run_id"], "-d", "d")
    assert resumed.returncode == 0, resumed.stderr
    assert "of 8 rewrites" in resumed.stdout
    shown = refusal("view", rows[0]["rephrasing_id"], "-d", "d")
    assert "source" in shown.stdout
    assert "rewrite" in shown.stdout
    dry = synth("rephrase", "c.toml", "--dataset", "d", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert (tmp_path / "d-dry-run" / "rephrasing.html").is_file()
