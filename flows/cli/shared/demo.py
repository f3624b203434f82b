"""The demo: the pipeline on the built-in domains within a time budget, then what came of it."""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.cli.shared.conversation import worth_reading
from flows.cli.shared.entry import run_flows
from flows.cli.shared.hosted_demo import HostedDemo
from flows.cli.shared.next_steps import with_more, with_your_endpoint
from flows.cli.shared.output import print_rows, say
from flows.cli.shared.program import program
from flows.runtime.settings import dataset_path
from records.reading.query import run_sql
from records.store.dataset import Dataset
from synth.episode.tools.simulator import SimulateConfig
from synth.judging.stages import warning_about
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from synth.tasks.forms.forms import ALL_PLAIN

STAGE_SECONDS = {
    "tools": 25.0,
    "agents": 5.0,
    "personas": 5.0,
    "tasks": 65.0,
    "rollouts": 75.0,
}
"""Of the stages that make something; a slower machine makes fewer items. The stages that check have
no limit, so that whatever was made is checked in full."""

DOMAINS = (BUILT_IN,)
"""A few worlds that a report can show."""

SHARD_SIZE = 15
"""Half of the default: a stage that met its seconds ends the shards that it has begun."""

CHECKING_SECONDS = 40.0
"""What grading, calibration and curation take on two cores, at most."""

PLAYED = ("add_allergy", "device_switch")
"""Tools that a model plays in the demo, so that it shows some; what they are is also programmed,
and so the report has their state accuracy."""

TEXTS = RephraseConfig(
    name="demo-texts",
    sources=(
        SourceConfig(path="cpython", max_documents=16),
        SourceConfig(path="maths", kind="maths", max_documents=12),
    ),
    shard_size=16,
    max_failed=1.0,
    stage_seconds={"rephrase": 15.0},
)
"""The small rephrasing of the demo: some of CPython's reference and some mathematics."""

PLENTY = 200
"""Accepted trajectories that the demo makes on two idle cores, and more."""

QUERY = """
select coalesce(d.name, t.server) as environment,
       count(*) as trajectories,
       count(*) filter (accepted) as accepted,
       round(avg(num_tool_calls), 1) as calls,
       round(avg(num_messages), 1) as messages
from trajectories t left join domains d using (domain_id)
group by all order by accepted desc
"""

COST = """
select coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost_usd), 0)
from llm_calls where not cache_hit
"""

WHY_SKIPPED = {
    "no_sandbox": "no sandbox can run here, and nothing runs without one (apt install bubblewrap)",
    "not_installed": "their command is not installed (npm installs filesystem and memory)",
}


def run_demo(config: RunConfig, path: Path, *, hosted: HostedDemo | None = None) -> None:
    """Make the dataset at `path`, then print what a newcomer wants to know. On an endpoint it is
    the budget that limits it and not the time, and texts are not rewritten."""
    config = as_demo(config, offline=hosted is None)
    if hosted is not None:
        say(hosted.words)
        at = f" --dataset {shlex.quote(str(path))}"
        seconds = run_flows([("pipeline", config)], path, command=f"{hosted.command}{at}")
    else:
        if not config.stage_seconds:
            config = config.model_copy(update={"stage_seconds": STAGE_SECONDS})
        texts = TEXTS.model_copy(update={"seed": config.seed, "offline": config.offline})
        _tell_budget(config.stage_seconds | texts.stage_seconds)
        at = "" if path == dataset_path(None) else f" --dataset {shlex.quote(str(path))}"
        jobs = [("pipeline", config), ("rephrase", texts)]
        seconds = run_flows(jobs, path, command="synth demo")
    dataset = Dataset.open(path)
    accepted = _tell_numbers(dataset, config, seconds)
    if hosted is not None:
        _tell_cost(dataset, accepted)
    else:
        _tell_texts(dataset, accepted)
    _show_conversation(dataset, at)
    _tell_where(path, at, with_texts=hosted is None)
    ending = with_your_endpoint()
    if hosted is not None:
        ending = with_more(config, f"{hosted.command}{at}")
    for line in ending:
        say(line)


def as_demo(config: RunConfig, *, offline: bool) -> RunConfig:
    """The settings with the demo's own where none was given: goals are plain where the offline
    model plays, which is beyond all others."""
    own: dict[str, Any] = {"shard_size": SHARD_SIZE, "domains": DOMAINS}
    left_out = own.keys() - config.model_fields_set
    config = config.model_copy(update={name: own[name] for name in left_out})
    if offline and "forms" not in config.tasks.model_fields_set:
        tasks = config.tasks.model_copy(update={"forms": ALL_PLAIN})
        config = config.model_copy(update={"tasks": tasks})
    if config.simulate == SimulateConfig() and {*DOMAINS, "all"} & {*config.domains}:
        return config.model_copy(update={"simulate": SimulateConfig(tools=PLAYED)})
    return config


def _tell_budget(limits: Mapping[str, float]) -> None:
    shown = ", ".join(f"{stage} {s:g}" for stage, s in limits.items())
    say(f"seconds a stage may take before it makes fewer items: {shown}")
    say(f"whatever is made is checked in full: some {CHECKING_SECONDS:g} s at most on two cores")


def _tell_numbers(dataset: Dataset, config: RunConfig, seconds: float) -> int:
    """How many trajectories were accepted."""
    shown = run_sql(dataset, QUERY)
    accepted = sum(row[shown.columns.index("accepted")] for row in shown.rows)
    say(f"\nTrajectories by environment ({seconds:.0f} s in all):")
    print_rows(shown.columns, shown.rows, json_=False)
    say(f"{accepted} trajectories were accepted.")
    statuses = dataset.item_statuses("tools").values()
    for reason, number in Counter(s.reason for s in statuses if s.status == "dropped").items():
        say(f"skipped    {number} MCP servers: {WHY_SKIPPED.get(reason or '', reason)}")
    if warning := warning_about(dataset, config):
        say(warning)
    return accepted


def _tell_texts(dataset: Dataset, accepted: int) -> None:
    if accepted < PLENTY:
        say(
            f"That is fewer than the {PLENTY} of two idle cores: fewer tasks were asked for, or "
            "stages met their seconds. The same command makes what is left."
        )
    say("\nTexts rewritten for pretraining:")
    for line in lines(summarise(dataset)):
        say(f"  {line}")


def _tell_cost(dataset: Dataset, accepted: int) -> None:
    [(tokens, usd)] = run_sql(dataset, COST).rows
    each = f", {tokens / accepted:,.0f} tokens for each accepted trajectory" if accepted else ""
    say(f"spent      {tokens:,.0f} tokens, {usd:.4f} USD at the prices given{each}")


def _show_conversation(dataset: Dataset, at: str) -> None:
    if (told := worth_reading(dataset)) is None:
        return
    say(f"\nAn accepted conversation of {told.environment}, with what each call changed:\n")
    for line in told.lines:
        print(line, flush=True)  # noqa: T201
    say(f"\n  {program()} view {told.trajectory_id}{at}      # with its verdicts")
    say(f"  {program()} replay {told.trajectory_id}{at}    # its actions, executed again")


def _tell_where(path: Path, at: str, *, with_texts: bool) -> None:
    say(f"\nreport     {path / 'report.html'}")
    if with_texts:
        say(f"           {path / 'rephrasing.html'} (rewritten texts beside their sources)")
    say(f"dataset    {path} (Parquet; any DuckDB reads it through {path / 'views.sql'})")
    say(f'  {program()} sql "select outcome, count(*) from trajectories group by all"{at}')
    say(f"  {program()} serve    # the runs, their logs and artifacts in Prefect's UI\n")
