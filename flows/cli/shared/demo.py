"""The demo: the pipeline on its defaults within a time budget, then a query and where all is."""

import time
from collections import Counter
from pathlib import Path

from flows.cli.shared.entry import run_flows
from flows.cli.shared.output import print_rows, say
from records.reading.query import run_sql
from records.store.dataset import Dataset
from synth.episode.tools.simulator import SimulateConfig
from synth.judging.stages import warning_about
from synth.pipeline.config import RunConfig
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

STAGE_SECONDS = {
    "tools": 45.0,
    "agents": 20.0,
    "personas": 15.0,
    "tasks": 110.0,
    "rollouts": 150.0,
    "grading": 40.0,
    "calibration": 20.0,
    "curation": 10.0,
}
"""Six and a half minutes in all on two cores; a slower machine makes fewer items."""

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
    stage_seconds={"rephrase": 30.0, "selection": 10.0},
)
"""The small rephrasing of the demo: some of CPython's reference and some mathematics."""

QUERY = """
select coalesce(d.name, t.server) as world,
       count(*) as trajectories,
       count(*) filter (accepted) as accepted,
       round(avg(num_tool_calls), 1) as calls,
       round(avg(num_messages), 1) as messages
from trajectories t left join domains d using (domain_id)
group by all order by accepted desc
"""


WHY_SKIPPED = {
    "no_sandbox": "no sandbox can run here, and nothing runs without one (apt install bubblewrap)",
    "not_installed": "their command is not installed (npm installs filesystem and memory)",
}


def run_demo(config: RunConfig, path: Path) -> None:
    """Make the dataset at `path`, then print what a newcomer wants to know."""
    begun = time.monotonic()
    if not config.stage_seconds:
        config = config.model_copy(update={"stage_seconds": STAGE_SECONDS})
    if config.simulate == SimulateConfig() and "all" in config.domains:
        config = config.model_copy(update={"simulate": SimulateConfig(tools=PLAYED)})
    limits = ", ".join(f"{stage} {s:g}" for stage, s in config.stage_seconds.items())
    say(f"seconds a stage may take before it makes fewer items: {limits}")
    texts = TEXTS.model_copy(update={"seed": config.seed, "offline": config.offline})
    run_flows([("pipeline", config), ("rephrase", texts)], path, command="synth demo")
    dataset = Dataset.open(path)
    say(f"\nAccepted trajectories by world ({time.monotonic() - begun:.0f} s in all):")
    shown = run_sql(dataset, QUERY)
    print_rows(shown.columns, shown.rows, json_=False)
    statuses = dataset.item_statuses("tools").values()
    for reason, number in Counter(s.reason for s in statuses if s.status == "dropped").items():
        say(f"skipped    {number} MCP servers: {WHY_SKIPPED.get(reason or '', reason)}")
    if warning := warning_about(dataset, config):
        say(warning)
    say("\nTexts rewritten for pretraining:")
    for line in lines(summarise(dataset)):
        say(f"  {line}")
    say("")
    at = "" if str(path) == "data/demo" else f" --dataset {path}"
    example = run_sql(
        dataset, "select trajectory_id from trajectories where accepted order by 1 limit 1"
    ).rows
    say(f"report     {path / 'report.html'}")
    say(f"           {path / 'rephrasing.html'} (rewritten texts beside their sources)")
    say(f"dataset    {path} (Parquet; any DuckDB reads it through {path / 'views.sql'})")
    say("\nWhat to try next:")
    say(f'  .venv/bin/synth sql "select termination_reason, count(*) from trajectories '
         f'group by all"{at}')  # fmt: skip
    if example:
        say(f"  .venv/bin/synth view {example[0][0]}{at}")
        say(f"  .venv/bin/synth replay {example[0][0]}{at}")
    say(f"  .venv/bin/synth export {path} --out data/export")
    say("  make serve     # the runs, their logs and artifacts in Prefect's UI")
