"""A user's own servers beside all domains, one of them played by a language model in every role.

    python -m benchmarks.servers_beside FOLDER DATASET --endpoint URL --model NAME \\
        --played NAME --other NAME [--tasks 60]

FOLDER is where `benchmarks.server_imports --install` has put the servers. What concerns the
played server is asked of the endpoint: each request that names one of the tools that it alone has,
and each that holds a text that the endpoint wrote before. Whatever else is asked, the offline model
answers.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from benchmarks.difficulty import served
from benchmarks.elsewhere import Elsewhere
from benchmarks.measured import show
from benchmarks.server_goals import defined, every_role
from benchmarks.server_imports import LISTED
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import load_server
from synth.engine.job_config import OfflineConfig
from synth.judging.config import JudgingConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from synth.tasks.servers.config import ServerGoalsConfig
from tool_specs.domains.taxonomy import load_taxonomy

OWN_TEXT = 40
"""Characters from which a text that the endpoint wrote tells its requests from others."""


class About:
    """Whether a request is about the played server."""

    def __init__(self, tools: set[str]) -> None:
        self._names = tools
        self._marks = {form.format(name) for name in tools for form in ('"{}"', "`{}`", "{}(")}
        self._read = 0
        self.app: Elsewhere | None = None

    def __call__(self, asked: dict[str, Any]) -> bool:
        self._learn()
        strings = list(_strings(asked))
        text = "\n".join(strings)
        return bool(self._names & set(strings)) or any(mark in text for mark in self._marks)

    def _learn(self) -> None:
        """Takes what was answered since the last request for marks."""
        answers = self.app.answers if self.app else []
        for answer in answers[self._read :]:
            self._marks |= {s for s in _strings(json.loads(answer)) if len(s) >= OWN_TEXT}
        self._read = len(answers)


def _strings(value: Any) -> list[str]:
    """The texts in a JSON value, those of JSON in strings among them."""
    if isinstance(value, dict):
        return [s for one in value.values() for s in _strings(one)]
    if isinstance(value, list):
        return [s for one in value for s in _strings(one)]
    if not isinstance(value, str):
        return []
    try:
        inner = json.loads(value)
    except ValueError:
        return [value]
    return [value, *_strings(inner)] if isinstance(inner, dict | list) else [value]


def settings(definitions: list[Path], url: str, num_tasks: int) -> RunConfig:
    return RunConfig(
        name="beside",
        domains=("all",),
        servers=tuple(str(path) for path in definitions),
        code=(),
        num_tasks=num_tasks,
        server_goals=ServerGoalsConfig(wanted=6, rounds=1),
        judging=JudgingConfig(perturbed_share=0.0),
        roles=every_role(url),
        offline=OfflineConfig(roles=()),
    )


def counted(dataset: Dataset) -> dict[str, Any]:
    """Tasks, trajectories and accepted ones by where their tools come from."""
    query = """
        select coalesce(t.server, 'domains') as origin, count(distinct t.task_id) as tasks,
            count(x.trajectory_id) as played, count(*) filter (where c.accepted) as accepted
        from tasks t left join trajectories x using (task_id) left join curation c
            using (trajectory_id)
        group by all order by all
    """
    found = dataset.connect().sql(query).fetchall()
    return {origin: {"tasks": t, "played": p, "accepted": a} for origin, t, p, a in found}


async def measure(given: argparse.Namespace) -> None:
    listed = {one["name"]: one for one in map(json.loads, LISTED.read_text().splitlines())}
    given.dataset.mkdir(parents=True, exist_ok=True)
    played, other = (
        defined(given.folder, listed[name], given.dataset.parent)
        for name in (given.played, given.other)
    )
    others = {tool.name for domain in load_taxonomy() for tool in domain.file.tools}
    others |= {row["name"] for row in await import_server(load_server(other))}
    own = {row["name"] for row in await import_server(load_server(played))} - others
    if not own:
        raise SystemExit(f"{given.played} has no tool that no domain and not {given.other} has")
    about = About(own)
    app = about.app = Elsewhere(given.endpoint, given.model, about)
    async with served(app) as url:
        config = settings([played, other], url, given.tasks)
        async with open_run(config, str(given.dataset), command="benchmark") as run:
            for stage in STAGES:
                await run.run_stage(stage(run))
            reasons = {name: dict(one.reasons) for name, one in run.reports.items() if one.reasons}
    show({"benchmark": "servers_beside", "asked_elsewhere": len(app.answers), "reasons": reasons})
    show(counted(Dataset.open(given.dataset)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--endpoint", required=True, help="of the model that plays")
    parser.add_argument("--model", required=True)
    parser.add_argument("--played", required=True, help="the server that the endpoint plays")
    parser.add_argument("--other", required=True, help="a second server, for the offline model")
    parser.add_argument("--tasks", type=int, default=60)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
