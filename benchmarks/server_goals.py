"""What a run makes of MCP servers that no file here was written for: goals, tasks and accepted
trajectories by server.

    python -m benchmarks.server_goals FOLDER DATASETS --endpoint URL --model NAME [--only NAME ...]

FOLDER is where `benchmarks.server_imports --install` has put the servers. Each gets a run of its
own in DATASETS, which goes on where it was stopped. The endpoint plays every role. With
`--search-only` it answers the search for goals (what to look at, what to fill an empty server with,
the goals, and reading what came of them), and the offline model whatever else is asked: the figures
of trajectories are then its own.
"""

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks.difficulty import served
from benchmarks.elsewhere import Elsewhere
from benchmarks.measured import show
from benchmarks.server_imports import LISTED, config_of, installed_at
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig, Role
from synth.judging.config import JudgingConfig
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from synth.tasks.config import TaskConfig
from synth.tasks.servers.config import ServerGoalsConfig

SEARCHING = ("start", "calls", "goals", "told")
"""Names of the forms in which the search is answered."""

WANTED = 8
"""Goals of a server after which no more are asked for."""

ROLES: tuple[Role, ...] = ("generator", "agent", "user", "judge", "simulator")


def is_anything(body: dict[str, Any]) -> bool:
    return True


def is_search(body: dict[str, Any]) -> bool:
    form = body.get("response_format") or {}
    return form.get("json_schema", {}).get("name") in SEARCHING


def every_role(url: str) -> dict[Role, RoleConfig]:
    """All roles at one endpoint, where a player by hand may take minutes for an answer."""
    role = RoleConfig(base_url=url, models=(ModelConfig(name="offline-model"),), timeout_s=3_600)
    return dict.fromkeys(ROLES, role)


def settings(definition: Path, url: str, num_tasks: int) -> RunConfig:
    return RunConfig(
        name=definition.stem,
        domains=(),
        servers=(str(definition),),
        code=(),
        num_tasks=num_tasks,
        server_goals=ServerGoalsConfig(wanted=WANTED),
        tasks=TaskConfig(personas_per_block=4),
        judging=JudgingConfig(perturbed_share=0.0),
        roles=every_role(url),
        offline=OfflineConfig(roles=()),
    )


def defined(folder: Path, listed: dict[str, Any], at: Path) -> Path:
    """The definition of a server as a user would write it, beside its run."""
    at.mkdir(parents=True, exist_ok=True)
    config = config_of(installed_at(folder, listed), listed)
    said = {"command", "env", "license", "venv", "npm_prefix", "limits"}
    chosen = config.model_dump(mode="json", include=said, exclude_defaults=True)
    fixture = {key: listed[key] for key in ("description", "setup") if listed.get(key)}
    if listed.get("about"):
        chosen["description"] = listed["about"]
    if fixture:
        chosen["fixtures"] = {"default": fixture}
    path = at / f"{listed['name']}.yaml"
    path.write_text(yaml.safe_dump(chosen, sort_keys=False))
    return path


async def made_of(definition: Path, url: str, num_tasks: int) -> dict[str, Any]:
    config = settings(definition, url, num_tasks)
    folder = definition.with_suffix("")
    async with open_run(config, str(folder), command="benchmark") as run:
        for stage in STAGES:
            await run.run_stage(stage(run))
        reasons = {name: dict(one.reasons) for name, one in run.reports.items() if one.reasons}
    return counted(Dataset.open(folder)) | {"server": definition.stem, "reasons": reasons}


def counted(dataset: Dataset) -> dict[str, Any]:
    goals = list(dataset.rows("server_goals"))
    kept = [row for row in goals if row["drop_reason"] is None]
    starts = list(dataset.rows("server_starts"))
    tried = dataset.item_statuses("tasks").values()
    return {
        "tools": sum(row["drop_reason"] is None for row in dataset.rows("tools")),
        "filled_rows": sum(row["num_rows"] for row in starts),
        "filling_calls": sum(len(row["calls"]) for row in starts),
        "not_filled": [row["drop_reason"] for row in starts if row["drop_reason"]],
        "proposed": len(goals),
        "kept": len(kept),
        "forms": dict(Counter(row["form"] for row in kept)),
        "calls": round(sum(row["num_calls"] for row in kept) / max(1, len(kept)), 1),
        "writing": sum(bool(row["writes"]) for row in kept),
        "read_from": dict(Counter(row["state_read_from"] for row in kept)),
        "not_kept": dict(Counter(row["drop_reason"] for row in goals if row["drop_reason"])),
        "tasks": sum(1 for _ in dataset.rows("tasks")),
        "tasks_dropped": dict(Counter(one.reason for one in tried if one.reason)),
        "trajectories": sum(1 for _ in dataset.rows("trajectories")),
        "accepted": sum(bool(row["accepted"]) for row in dataset.rows("curation")),
    }


async def measure(given: argparse.Namespace) -> None:
    servers = [json.loads(line) for line in LISTED.read_text().splitlines()]
    is_chosen = is_search if given.search_only else is_anything
    app = Elsewhere(given.endpoint, given.model, is_chosen)
    async with served(app) as url:
        for listed in servers:
            if given.only and listed["name"] not in given.only:
                continue
            definition = defined(given.folder, listed, given.datasets)
            show({"benchmark": "server_goals"} | await made_of(definition, url, given.tasks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    parser.add_argument("datasets", type=Path, help="where the runs' datasets are kept")
    parser.add_argument("--endpoint", required=True, help="of the model")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tasks", type=int, default=8, help="tasks of each server")
    parser.add_argument(
        "--search-only", action="store_true", help="the rest is the offline model's"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
