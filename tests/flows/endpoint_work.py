"""A run whose endpoint fails some requests: what tests of pending items and outages share."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flows.runtime.open_run import open_run
from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings
from records.errors import PendingError
from records.store.dataset import Dataset
from synth.engine.plans import StageReport
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from tests.flows.pipeline_work import SMALL
from tests.synth.llm.server import Body, Fault, Server

WORDS = "the model is \x1b[31mloading\u202e"
"""What the server says, with what a terminal would obey."""

CONFIG = SMALL.model_copy(update={"num_tasks": 8, "max_failed": 1.0})

Broken = Callable[[Body], bool]

MARKER = {
    "agents": "You write system prompts",
    "personas": "You invent the people",
    "tasks": "You put tasks for an assistant into the words",
    "grading": "You judge how an assistant served a user.",
}
"""Words that the requests of a stage have."""


class Endpoint:
    """The offline model over HTTP, which fails requests of which `broken` is true."""

    def __init__(self) -> None:
        self.broken: Broken = lambda body: False
        self.fault = Fault(status=500, body=json.dumps({"error": {"message": WORDS}}).encode())
        self.answered: list[Body] = []

    def script(self, _: int, body: Body) -> Body | Fault:
        if self.broken(body):
            return self.fault
        self.answered.append(body)
        request = parse_chat(body)
        answer = completion(request, answer_of(request, settings=OfflineSettings()))
        return json.loads(json.dumps(answer))

    def bodies(self, stage: str) -> list[Body]:
        """The first request of each item of the stage, in no fixed order."""
        if stage == "rollouts":
            return [b for b in self.answered if b.get("tools") and len(b["messages"]) == 2]
        return [b for b in self.answered if MARKER[stage] in json.dumps(b["messages"])]


def about(body: Body) -> Broken:
    """The requests that begin as this one does."""
    words = body["messages"]
    return lambda other: other["messages"][: len(words)] == words


def first_of(stage: str) -> Broken:
    """The requests about whichever item of the stage is the first to ask: a single one, since
    several in a row would be an outage, in which a run waits."""
    found: list[Broken] = []

    def broken(body: Body) -> bool:
        if not found and MARKER[stage] in json.dumps(body["messages"]):
            found.append(about(body))
        return any(is_meant(body) for is_meant in found)

    return broken


def at(server: Server, **changes: object) -> RunConfig:
    model = ModelConfig(name="m")
    role = RoleConfig(base_url=server.url, models=(model,), retries=0, backoff_s=0.01)
    return CONFIG.model_copy(update={"roles": dict.fromkeys(CONFIG.roles, role), **changes})


async def run(folder: Path, config: RunConfig, *, retry_failed: bool = False) -> list[StageReport]:
    """Every stage as far as it goes, without a flow; the reports."""
    reports: list[StageReport] = []
    with suppress(PendingError):
        async with open_run(
            config, str(folder), command="test", retry_failed=retry_failed
        ) as opened:
            for make_stage in STAGES:
                reports.append(await opened.run_stage(make_stage(opened)))
    for report in reports:
        counted = report.kept + report.dropped + report.failed + report.pending
        assert counted == report.requested, report.stage
    return reports


def newest_end(folder: Path) -> tuple[str, str]:
    """Status and detail of the newest end of a run."""
    rows = Dataset.open(folder).rows("runs")
    ended = max((r for r in rows if r["event"] == "ended"), key=lambda r: r["happened_at"])
    return ended["status"], ended["detail"]


def paid(folder: Path) -> Counter[tuple[str, ...]]:
    """How often each place was answered by the endpoint."""
    rows = Dataset.open(folder).rows("llm_calls")
    places = ("stage", "item_id", "role", "step", "request_hash")
    return Counter(
        tuple(row[name] for name in places)
        for row in rows
        if row["status"] == "ok" and not row["cache_hit"] and row["stage"] != "probe"
    )
