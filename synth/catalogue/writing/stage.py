"""The stage `write-domains`: tools and policy of some domains, an item each, and jobs of devices.

Jobs are asked for first, since tools start what they end. All requests for tools of one domain are
asked at once; the policy is asked for when the tools that it binds are known.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.digest import digest
from records.seeds import rng_of, seed_of
from records.tables.schemas import Row
from synth.catalogue.evolution.batch import (
    EvolutionBatch,
    EvolveOperator,
    RequestGroup,
    prompt_version,
)
from synth.catalogue.evolution.cells import cell_of
from synth.catalogue.evolution.rows import rows_of
from synth.catalogue.evolution.shapes import planned
from synth.catalogue.evolution.snapshot import KnownTool
from synth.catalogue.evolution.stage import Making
from synth.catalogue.proposals.describing import PROMPT as DESCRIBED
from synth.catalogue.proposals.wire import wire_of
from synth.catalogue.writing.config import WriteConfig, files_of
from synth.catalogue.writing.jobs import JOB_KIND, jobs_values, with_jobs
from synth.catalogue.writing.parts import PartFinding, PartKind, write_parts
from synth.catalogue.writing.policy import RULE_KIND, rules_values
from synth.engine.run import Run
from synth.engine.stages import KEPT, Item, ItemResult, ShardContext, dropped
from synth.prompts.templates import version_of
from tool_specs.domains.catalogue import domain_id, domain_row, tool_rows
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.loading import file_bytes
from tool_specs.language.domain_file import ToolSpec

STAGE_VERSION = 1
"""Raised when the same answers would give other rows."""

DEVICES = frozenset(
    {
        "smart_home",
        "robot_control",
        "manufacturing_industrial_iot",
        "iphone_android",
        "desktop_systems",
    }
)
"""Categories whose domains are asked for the behaviour of devices, and for jobs."""


class WritingPlan(NamedTuple):
    """What one domain lacks."""

    item_id: str
    domain: Domain
    path: Path
    tools: int
    """To ask for."""
    policy: bool
    """Whether rules are asked for."""
    jobs: bool
    """Whether jobs are asked for: tools that are there know nothing of them."""


def plans_of(config: WriteConfig) -> list[WritingPlan]:
    """For each domain that lacks something, in order of names. An item hangs on the whole file, so
    that a file that has changed since is asked for what it lacks now."""
    found = []
    for path in files_of(config).values():
        domain = load_domain(path)
        missing = max(0, config.tools - len(domain.tools))
        policy = bool(config.policy_rules and not domain.policy)
        if missing or policy:
            jobs = config.jobs > 0 and domain.category in DEVICES
            jobs = jobs and not domain.file.jobs and not domain.tools
            content = hashlib.sha256(file_bytes(path)).hexdigest()
            item = digest(base_of(config), content)
            found.append(WritingPlan(item, domain, path, missing, policy, jobs))
    return found


def base_of(config: WriteConfig) -> str:
    prompts = [prompt_version("write"), prompt_version("write_device")]
    prompts += [
        v
        for kind in (RULE_KIND, JOB_KIND)
        for v in (version_of(kind.prompt), version_of(kind.repair))
    ]
    if config.judges_descriptions:
        prompts.append(version_of(DESCRIBED))
    return digest("write-domains", STAGE_VERSION, config.identity(), prompts)


class WriteStage:
    name = "write-domains"

    def __init__(self, run: Run[WriteConfig], plans: Sequence[WritingPlan]) -> None:
        self.run = run
        self.plans = plans

    def plan(self) -> list[Item]:
        return [Item(plan.item_id, {"plan": plan}) for plan in self.plans]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        plan: WritingPlan = item.data["plan"]
        config, executor, domain = self.run.config, self.run.executor, plan.domain
        made: dict[str, list[Row]] = {"proposals": [], "tools": []}
        jobs: list[PartFinding] = []
        if plan.jobs:
            values = jobs_values(domain, config.jobs)
            jobs = await write_parts(shard.llm, executor, item.item_id, JOB_KIND, domain, values)
            domain = with_jobs(domain, [f.part for f in jobs if not f.problems])
        batch = _batch(plan._replace(domain=domain), config)
        if batch.groups:
            making = Making(
                batch,
                shard.llm,
                executor,
                per_skeleton=config.per_skeleton,
                described_together=config.judged_together,
            )
            outcomes = await making.outcomes()
            made = rows_of(batch, outcomes, config)
            domain = _with(domain, tools=[o.finding.spec for o in outcomes if o.finding.spec])
        rules: list[PartFinding] = []
        if plan.policy and domain.tools:
            values = rules_values(domain, config.policy_rules)
            rules = await write_parts(shard.llm, executor, item.item_id, RULE_KIND, domain, values)
            domain = _with(domain, rules=[f.part for f in rules if not f.problems])
        rows = [*self._part_rows(plan, domain, JOB_KIND, jobs, len(made["proposals"]))]
        rows += self._part_rows(plan, domain, RULE_KIND, rules, len(made["proposals"]) + len(rows))
        tables = _tables(plan, domain, made, rows)
        known = {name: self.run.dataset.ids(name) for name in ("domains", "tools")}
        tables["domains"] = [r for r in tables["domains"] if r["domain_id"] not in known["domains"]]
        tables["tools"] = [r for r in tables["tools"] if r["tool_id"] not in known["tools"]]
        written = bool(made["tools"]) or domain is not plan.domain
        return ItemResult(tables, KEPT if written else dropped("nothing_kept").status)

    def _part_rows(
        self,
        plan: WritingPlan,
        domain: Domain,
        kind: PartKind,
        findings: Sequence[PartFinding],
        first: int,
    ) -> list[Row]:
        """Of the table `proposals`; `first` is the number of the first."""
        return [
            {
                "item_id": plan.item_id,
                "number": first + n,
                "operator": f"write_{kind.step}",
                "batch": 0,
                "domain_id": domain_id(domain),
                "category": domain.category,
                "model": self.run.config.roles["generator"].model_of(plan.item_id, "generator"),
                "prompt_version": digest(version_of(kind.prompt), version_of(kind.repair)),
                "name": finding.part[kind.key],
                "parents": [],
                "first_reason": f"{kind.word}_unfit" if finding.first_problems else None,
                "drop_reason": f"{kind.word}_unfit" if finding.problems else None,
                "problems": list(finding.problems),
                "repaired": bool(finding.first_problems and not finding.problems),
                "tool_id": None,
                "semantics_key": None,
                "skeleton": None,
                "split": domain.split,
            }
            for n, finding in enumerate(findings)
        ]


def _batch(plan: WritingPlan, config: WriteConfig) -> EvolutionBatch:
    """The requests for tools, as few as hold them, about equally large."""
    domain, rng = plan.domain, rng_of(plan.item_id, "shapes")
    rows = tool_rows(domain)
    known = [KnownTool(row, -1, None, None, None) for row in rows]
    wanted = planned(domain, [cell_of(domain, t.semantics) for t in known], plan.tools, rng)
    number = -(-plan.tools // config.batch_size)
    parts = [wanted[n::number] for n in range(number)]
    operator: EvolveOperator = "write_device" if domain.category in DEVICES else "write"
    groups = [
        RequestGroup(
            operator,
            len(part),
            [tool.aim for tool in part],
            [],
            [],
            seed_of(plan.item_id, f"draw:{n}") % 1_000_000,
            tuple(tool.shape for tool in part),
            tuple(tool.aim for other in parts if other is not part for tool in other),
        )
        for n, part in enumerate(parts)
    ]
    return EvolutionBatch(plan.item_id, domain, domain_id(domain), 0, known, groups)


def _with(
    domain: Domain, *, tools: Sequence[ToolSpec] = (), rules: Sequence[dict[str, str]] = ()
) -> Domain:
    """The domain with these as well."""
    if not tools and not rules:
        return domain
    data: dict[str, Any] = domain.file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    new = [tool.model_dump(mode="json", by_alias=True, exclude_defaults=True) for tool in tools]
    data["tools"] = [*data.get("tools", ()), *new]
    data["policy"] = [*data.get("policy", ()), *rules]
    return Domain.of(data, origin=domain.name)


def _tables(
    plan: WritingPlan, domain: Domain, made: dict[str, list[Row]], part_rows: list[Row]
) -> dict[str, list[Row]]:
    """Rows of the finished domain: a tool's id hangs on the domain's policy too."""
    place = domain_id(domain)
    final = {row["name"]: row for row in tool_rows(domain)}
    told = {row["name"]: row for row in made["tools"]}
    specs = {tool.name: tool for tool in domain.tools}
    of_domain = ("tool_id", "domain_id", "split")
    tools = [
        told[name]
        | {key: row[key] for key in of_domain}
        # a JSON column sorts the keys of an object; the lists of the wire form keep their order
        | {"proof": told[name]["proof"] | {"wire": wire_of(specs[name])}}
        if name in told
        else row
        for name, row in final.items()
    ]
    proposals = [
        row
        | {"domain_id": place}
        | ({"tool_id": final[row["name"]]["tool_id"]} if row["tool_id"] else {})
        for row in made["proposals"]
    ]
    return {
        "domains": [domain_row(domain)],
        "tools": tools,
        "proposals": [*proposals, *part_rows],
    }
