"""A whole run of `synth domain write`: asks, commits, and adds what was kept to the files."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError
from records.files import write_atomic
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.proposals.wire import ProposalWire, spec_of
from synth.catalogue.writing.config import WriteConfig
from synth.catalogue.writing.jobs import added_fields
from synth.catalogue.writing.stage import WriteStage, WritingPlan
from synth.engine.plans import ShardReport
from synth.engine.run import Run
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.rewriting import with_additions
from tool_specs.language.domain_file import PolicyRule, ToolSpec


class WrittenDomain(NamedTuple):
    """What one domain got."""

    domain: str
    file: str
    tools: int
    rules: int
    jobs: int
    left_out: dict[str, str]
    """Name of a tool, rule or job -> why it is not there."""


async def write_domains(
    run: Run[WriteConfig],
    plans: Sequence[WritingPlan],
    place_of: Callable[[WritingPlan], Path],
    *,
    on_written: Callable[[WrittenDomain], None],
) -> None:
    """Ask for what the domains lack, all at once, and write each file when its domain is committed.

    What an earlier invocation committed is not asked for again, and is written first. Raises what
    stopped the run when the requests in flight have ended.
    """
    stage = WriteStage(run, plans)
    plan = await asyncio.to_thread(run.plan, stage)
    by_item = {one.item_id: one for one in plans}

    def write(items: Sequence[str]) -> None:
        known = [by_item[item] for item in items if item in by_item]
        for written in add_written(run.dataset, known, place_of):
            on_written(written)

    write(list(plan.done))
    limit_s = run.config.stage_seconds.get(stage.name, math.inf)
    begun = time.monotonic()
    reports: list[ShardReport] = []

    async def one(index: int) -> None:
        async with run.turn(stage, plan, [index]):
            if run.stop_reason is not None or time.monotonic() - begun > limit_s:
                return
            async with aclosing(run.run_shards(stage, plan, [index])) as made:
                async for report in made:
                    reports.append(report)
                    write(list(report.statuses))

    outcomes = await asyncio.gather(*map(one, plan.open_shards), return_exceptions=True)
    report = run.stage_report(stage, plan, reports)
    if run.stop_reason is not None:
        raise run.stop_reason
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    report.check(run.config.max_failed)


def add_written(
    dataset: Dataset, plans: Sequence[WritingPlan], place_of: Callable[[WritingPlan], Path]
) -> list[WrittenDomain]:
    """Add what the dataset holds for these plans to files. `place_of` says where the file goes.

    A domain of which nothing is committed is left as it is.
    """
    items = {plan.item_id for plan in plans}
    by_item: dict[str, list[Row]] = {}
    for row in dataset.rows("proposals"):
        if row["item_id"] in items:
            by_item.setdefault(row["item_id"], []).append(row)
    domains = {row["domain_id"]: row for row in dataset.rows("domains")}
    wires: dict[str, dict[str, ProposalWire]] = {}
    for row in dataset.rows("tools", ["domain_id", "name", "proof"]):
        if wire := (row["proof"] or {}).get("wire"):
            wires.setdefault(row["domain_id"], {})[row["name"]] = wire
    found = []
    for plan in plans:
        if rows := sorted(by_item.get(plan.item_id, ()), key=lambda row: row["number"]):
            place = rows[0]["domain_id"]
            tools = [spec_of(wires[place][row["name"]]) for row in rows if row["tool_id"]]
            found.append(_added(plan, tools, domains[place], rows, place_of(plan)))
    return found


def _added(
    plan: WritingPlan,
    tools: Sequence[ToolSpec],
    finished: Row,
    proposals: Sequence[Row],
    place: Path,
) -> WrittenDomain:
    """`finished`: the domain's row, with all that was kept but its tools."""
    known = {rule.id for rule in plan.domain.policy}
    policy = [PolicyRule.model_validate(rule) for rule in finished["policy"]]
    rules = [rule for rule in policy if rule.id not in known]
    domain = domain_of_rows(finished)
    jobs = domain.file.jobs[len(plan.domain.file.jobs) :]
    if tools or rules or jobs:
        text = with_additions(
            plan.path.read_text(),
            policy=rules,
            tools=tools,
            jobs=jobs,
            fields=added_fields(plan.domain, domain),
            origin=str(plan.path),
        )
        write_atomic(place, text.encode())
    left_out = dict(_left_out(row) for row in proposals if row["drop_reason"])
    return WrittenDomain(plan.domain.name, str(place), len(tools), len(rules), len(jobs), left_out)


def _left_out(row: Row) -> tuple[str, str]:
    words = "; ".join(row["problems"])
    reason = f"{row['drop_reason']}: {words}" if words else row["drop_reason"]
    return row["name"] or f"number {row['number'] + 1}", reason


def place_for(out: Path | None, plans: int) -> Callable[[WritingPlan], Path]:
    """Where files go: where they are, else to `out`, a file of one domain or a folder."""
    if out is None:
        return lambda plan: plan.path
    if out.suffix in (".yaml", ".yml"):
        if plans > 1:
            raise ConfigError(f"--out {out}: {plans} domains need a folder")
        return lambda _: out
    return lambda plan: out / plan.path.name
