"""An estimate is paid once, is part of the run, and is right within what it says."""

import asyncio
import json
import random
import shutil
import statistics
from pathlib import Path

import pytest

from flows.cli import main as cli
from flows.runtime.open_run import open_run
from offline_llm.server.misbehaviour import Misbehaviour
from records.errors import BudgetError
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.estimate import (
    Estimate,
    Pilot,
    _known_tasks,
    _paid,
    estimate,
    make_pilot,
    pilot_tasks,
)
from synth.pipeline.estimated_usage import EstimatedUsage, Units
from synth.pipeline.stages import GradingStage, RolloutStage
from synth.tasks.difficulty import DifficultyConfig
from tests.flows.pipeline_work import SMALL, content_of, run_pipeline
from tests.flows.rounds_work import run_in_rounds

PRICED = RoleConfig(usd_per_million_prompt=0.6, usd_per_million_completion=2.5)
CONFIG = SMALL.model_copy(
    update={
        "num_tasks": 16,
        "shard_size": 8,
        "roles": dict.fromkeys(SMALL.roles, PRICED),
    }
)


def piloted(folder: Path, config: RunConfig = CONFIG, size: int = 8) -> Estimate:
    async def run() -> Estimate:
        async with open_run(config, str(folder), command="test") as opened:
            pilot = await make_pilot(opened, size)
            return estimate(opened, pilot)

    return asyncio.run(run())


def paid(folder: Path) -> EstimatedUsage:
    """The ledger without probes, which every start sends again."""
    query = (
        "select count(*), sum(prompt_tokens), sum(completion_tokens), sum(cost_usd) from llm_calls"
        " where not cache_hit and stage != 'probe'"
    )
    [row] = Dataset.open(folder).connect().execute(query).fetchall()
    return EstimatedUsage(*map(float, row))


def without_probes(made: Estimate) -> EstimatedUsage:
    [probe] = [line for line in made.lines if line.stage == "probe"]
    return made.total.expected.minus(probe.expected)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "d"
    run_pipeline(folder, CONFIG)
    return folder


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Estimate]:
    """A dataset that holds a pilot of half the tasks, and what it said."""
    folder = tmp_path_factory.mktemp("pilot") / "d"
    return folder, piloted(folder)


@pytest.mark.slow
def test_the_run_goes_on_from_its_pilot_and_pays_for_none_of_it(
    tmp_path: Path, whole: Path, pilot: tuple[Path, Estimate]
) -> None:
    assert pilot[1].num_known == 8
    shutil.copytree(pilot[0], tmp_path / "d")
    assert 0 < paid(tmp_path / "d").requests < paid(whole).requests
    run_pipeline(tmp_path / "d", CONFIG)
    assert content_of(tmp_path / "d") == content_of(whole)
    assert paid(tmp_path / "d").requests == paid(whole).requests


def test_pilots_of_half_the_run_are_right_as_often_as_they_say(whole: Path) -> None:
    """Any half of the tasks might have been the pilot: what each would have said of the whole."""

    async def known() -> dict[str, dict[tuple[str, str], EstimatedUsage]]:
        async with open_run(CONFIG, str(whole), command="test") as opened:
            rollouts, grading = RolloutStage(opened), GradingStage(opened)
            made = Pilot(opened.plan(rollouts), opened.plan(grading))
            return _known_tasks(opened, made, _paid(opened)[0])

    tasks = asyncio.run(known())
    assert len(tasks) == CONFIG.num_tasks
    real, _ = Units(len(tasks), tasks).total(None)
    rng, held, off = random.Random(1), 0, []
    for _ in range(300):
        pilot = {i: tasks[i] for i in rng.sample(sorted(tasks), len(tasks) // 2)}
        said, half = Units(len(tasks), pilot).total(None)
        held += sum(abs(a - b) <= h for a, b, h in zip(said, real, half, strict=True))
        off.append(max(abs(a / b - 1) for a, b in zip(said, real, strict=True)))
    assert held / (300 * len(real)) >= 0.9
    assert statistics.median(off) < 0.2


def test_what_a_pilot_has_spent_is_part_of_what_it_says(
    whole: Path, pilot: tuple[Path, Estimate]
) -> None:
    folder, made = pilot
    spent = paid(folder)
    for was, low, said, high in zip(
        spent, made.total.low, made.total.expected, made.total.high, strict=True
    ):
        assert 0 < was <= low <= said <= high
    assert without_probes(made).requests == pytest.approx(paid(whole).requests, rel=0.35)


@pytest.mark.slow
def test_an_endpoint_that_writes_more_is_noticed(
    tmp_path: Path, whole: Path, pilot: tuple[Path, Estimate]
) -> None:
    """By as much as it writes more: which tasks the pilot has drawn is the same for both."""
    usual = without_probes(pilot[1])
    offline = OfflineConfig(misbehave=Misbehaviour(verbosity=3.0))
    verbose = CONFIG.model_copy(update={"offline": offline})
    said = without_probes(piloted(tmp_path / "d", verbose))
    run_pipeline(tmp_path / "d", verbose)
    real = paid(tmp_path / "d")
    assert real.completion_tokens > 2.5 * paid(whole).completion_tokens
    for mine, theirs, now, before in zip(said, usual, real, paid(whole), strict=True):
        assert mine / theirs == pytest.approx(now / before, rel=0.2)


def test_a_run_that_is_done_costs_what_it_cost(whole: Path) -> None:
    """At the prices that it was paid at, whatever the prices are now."""
    dearer = PRICED.model_copy(update={"usd_per_million_prompt": 6.0})
    made = piloted(whole, CONFIG.model_copy(update={"roles": dict.fromkeys(SMALL.roles, dearer)}))
    assert made.num_known == CONFIG.num_tasks
    assert without_probes(made) == pytest.approx(paid(whole))
    assert made.total.low == pytest.approx(made.total.high)


@pytest.mark.slow
def test_what_the_run_has_made_before_is_known(tmp_path: Path) -> None:
    run_pipeline(tmp_path / "d", CONFIG.model_copy(update={"num_tasks": 3}))
    before = paid(tmp_path / "d")
    made = piloted(tmp_path / "d", size=4)
    both = {*range(3), *pilot_tasks(CONFIG, 4)}
    assert made.num_known == len(both)
    [spent] = {line.spent.requests for line in (made.total,)}
    assert spent > before.requests


@pytest.mark.slow
def test_a_pilot_keeps_to_the_budget_and_goes_on_after_it(
    tmp_path: Path, pilot: tuple[Path, Estimate]
) -> None:
    short = CONFIG.model_copy(update={"budget": BudgetConfig(tokens=60_000)})
    with pytest.raises(BudgetError, match="budget of the run"):
        piloted(tmp_path / "d", short)
    assert paid(tmp_path / "d").tokens <= 60_000
    piloted(tmp_path / "d")
    assert paid(tmp_path / "d").requests == paid(pilot[0]).requests


def test_a_larger_pilot_holds_the_smaller() -> None:
    assert set(pilot_tasks(CONFIG, 5)) < set(pilot_tasks(CONFIG, 9))
    assert pilot_tasks(CONFIG, 99) == list(range(16))


def test_the_interval_holds_as_often_as_it_says() -> None:
    """19 times of 20, for sums of draws that are as skewed as episodes are."""
    rng = random.Random(3)
    held = 0
    for _ in range(400):
        drawn = [EstimatedUsage(requests=rng.lognormvariate(1.0, 0.4)) for _ in range(200)]
        known = {str(i): {("rollouts", "agent"): usage} for i, usage in enumerate(drawn[:40])}
        expected, half = Units(200, known).total(("rollouts", "agent"))
        held += abs(sum(u.requests for u in drawn) - expected.requests) <= half.requests
    assert 0.91 <= held / 400 <= 0.985


def test_the_command_prints_json_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(
        'num_tasks = 6\ndomains = ["clinic_desk"]\nservers = []\ncode = []\n'
    )
    command = ("run", "run.toml", "--estimate", "--pilot", "3", "--dataset", "d")
    assert cli.run((*command, "--json")) == 0
    printed = json.loads(capfd.readouterr().out)
    assert (printed["num_tasks"], printed["num_known"]) == (6, 3)
    assert printed["total"]["expected"]["requests"] > printed["total"]["spent"]["requests"] > 0
    assert {line["stage"] for line in printed["lines"]} >= {"probe", "tasks", "rollouts"}
    assert cli.run(command) == 0
    assert "19 times of 20" in capfd.readouterr().err
    assert cli.run((*command, "--dry-run")) == 2
    assert not (tmp_path / "d" / "report.html").exists()


@pytest.mark.slow
def test_rounds_are_part_of_what_a_pilot_says(tmp_path: Path) -> None:
    rounds = CONFIG.model_copy(
        update={
            "num_tasks": 16,
            "rollouts": CONFIG.rollouts.model_copy(update={"attempts": 2}),
            "difficulty": DifficultyConfig(rounds=2),
        }
    )
    said = piloted(tmp_path / "d", rounds, size=8)
    assert said.rounds is not None
    assert said.rounds.expected.requests > 0
    run_in_rounds(tmp_path / "d", rounds)
    real = paid(tmp_path / "d")
    [probe] = [line for line in said.lines if line.stage == "probe"]
    for low, now, high in zip(
        said.total.low.minus(probe.low), real, said.total.high.minus(probe.low), strict=True
    ):
        assert low <= now <= high
    assert without_probes(said).requests == pytest.approx(real.requests, rel=0.5)
    query = "select count(*) from tasks where parent_task_id is not null"
    [(derived,)] = Dataset.open(tmp_path / "d").connect().execute(query).fetchall()
    assert derived > 0
    done = piloted(tmp_path / "d", rounds)
    assert done.rounds is not None
    assert done.rounds.low == done.rounds.high
    assert without_probes(done) == pytest.approx(real)


def test_without_rounds_nothing_is_said_of_them(whole: Path) -> None:
    assert piloted(whole).rounds is None
