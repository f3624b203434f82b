"""The stages `evolve-<k>`: batch k of some domains, an item each.

A stage is a barrier: batch k of a domain sees what earlier batches committed, and nothing else.
"""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from records.errors import ItemError
from records.tables.schemas import Row
from synth.catalogue.evolution.asking import RequestTalk, ask, ask_to_mend, view_of
from synth.catalogue.evolution.batch import EvolutionBatch, RequestGroup, groups_of, item_id_of
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.rows import ToolOutcome, rows_of
from synth.catalogue.evolution.snapshot import CatalogueSnapshot
from synth.catalogue.proposals.describing import AcceptedTool, judged
from synth.catalogue.proposals.examining import (
    ExaminationJob,
    KnownSpec,
    ProposalDraft,
    ProposalFinding,
    examine,
    packed,
    with_judged,
)
from synth.catalogue.proposals.quotas import CatalogueCounts, QuotaScreen, counts_of
from synth.catalogue.proposals.screening import ToolFingerprint
from synth.catalogue.proposals.wire import ProposalWire
from synth.engine.executor import ShardExecutor
from synth.engine.run import Run
from synth.engine.stages import KEPT, Item, ItemResult, ShardContext, dropped
from synth.llm.client import LLM
from tool_specs.domains.catalogue import domain_id, domain_row, tool_rows
from tool_specs.domains.domain import Domain

T = TypeVar("T")


class EvolveStage:
    """Batch `batch` of the domains picked for it in one round."""

    def __init__(
        self,
        run: Run[EvolveConfig],
        batch: int,
        domains: Sequence[Domain],
        *,
        base: str,
        snapshot: CatalogueSnapshot,
    ) -> None:
        """`base` is what item ids hang on, `snapshot` what earlier rounds have committed."""
        self.name = f"evolve-{batch}"
        self.run = run
        self.batch = batch
        self.domains = domains
        self.base = base
        self.snapshot = snapshot
        self.counted = [tool for _, tool in snapshot.counted()]

    def plan(self) -> list[Item]:
        return [
            Item(item_id_of(self.base, domain_id(domain), self.batch), {"domain": domain})
            for domain in self.domains
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        domain: Domain = item.data["domain"]
        place = domain_id(domain)
        known = self.snapshot.tools[place]
        config, counts = self.run.config, self._counts(place)
        groups = groups_of(item.item_id, domain, self.batch, known, config, counts)
        batch = EvolutionBatch(item.item_id, domain, place, self.batch, known, groups)
        making = Making(
            batch,
            shard.llm,
            self.run.executor,
            per_skeleton=config.per_skeleton,
            described_together=config.judged_together,
            repair_rounds=config.repair_rounds,
            quotas=QuotaScreen(config.quotas, counts) if counts else None,
        )
        made = rows_of(batch, await making.outcomes(), config)
        came = self._rows_of_domain(domain)
        tables = made | {"domains": came["domains"], "tools": [*came["tools"], *made["tools"]]}
        status = KEPT if made["tools"] else dropped("nothing_kept").status
        return ItemResult(tables, status)

    def _counts(self, place: str) -> CatalogueCounts | None:
        quotas = self.run.config.quotas
        if not quotas.on:
            return None
        return counts_of(
            place,
            self.snapshot.masked[place],
            self.counted,
            domains=self.snapshot.num_domains,
            config=quotas,
        )

    def _rows_of_domain(self, domain: Domain) -> dict[str, list[Row]]:
        """Of the domain itself, and of the tools that came with it, where they are missing."""
        dataset = self.run.dataset
        domains, tools = dataset.ids("domains"), dataset.ids("tools")
        return {
            "domains": [row for row in [domain_row(domain)] if row["domain_id"] not in domains],
            "tools": [row for row in tool_rows(domain) if row["tool_id"] not in tools],
        }


class Making:
    """One batch on its way through the generator and validation, with its rounds of repair."""

    def __init__(
        self,
        batch: EvolutionBatch,
        llm: LLM,
        executor: ShardExecutor,
        *,
        per_skeleton: int,
        described_together: int,
        repair_rounds: int,
        quotas: QuotaScreen | None = None,
    ) -> None:
        """`described_together`: tools of one request to the judge; 0 asks it nothing."""
        self.batch = batch
        self.repair_rounds = repair_rounds
        self.per_skeleton = per_skeleton
        self.described_together = described_together
        self.llm = llm
        self.executor = executor
        self.domain = packed(batch.domain)
        self.quotas = quotas

    async def outcomes(self) -> list[ToolOutcome]:
        """Of every tool that was asked for, in the order of the requests.

        Raises ItemError where no request was answered with anything of use.
        """
        batch = self.batch
        view = view_of(batch.domain, [tool.row for tool in batch.known])
        asked = await asyncio.gather(
            *(ask(self.llm, batch.item_id, group, view) for group in batch.groups),
            return_exceptions=True,
        )
        talks = {n: talk for n, answer in enumerate(asked) if (talk := _useful(answer))}
        if not talks:
            raise next(answer for answer in asked if isinstance(answer, ItemError))
        outcomes = await self._examined(talks)
        unanswered = _unanswered(batch.groups, talks)
        for number in range(1, self.repair_rounds + 1):
            outcomes = await self._repaired(_with_latest(talks, outcomes), outcomes, number)
        return [*outcomes, *unanswered]

    async def _examined(self, talks: dict[int, RequestTalk]) -> list[ToolOutcome]:
        answered = [
            (number, place, tool)
            for number, talk in talks.items()
            for place, tool in enumerate(talk.tools[: talk.group.size])
        ]
        drafts = [
            ProposalDraft(i, tool, _parent_names(talks[number].group))
            for i, (number, _, tool) in enumerate(answered)
        ]
        findings = await self.executor.compute(examine, self._job(drafts))
        findings = await self._described(findings, "describe")
        return [
            ToolOutcome(number, place, tool, finding.reason, finding)
            for (number, place, tool), finding in zip(answered, findings, strict=True)
        ]

    async def _repaired(
        self, talks: dict[int, RequestTalk], outcomes: list[ToolOutcome], round_number: int
    ) -> list[ToolOutcome]:
        """The faulty tools of each request go back, with what is wrong with them."""
        faulty: dict[int, dict[int, tuple[str, ...]]] = {}
        for outcome in outcomes:
            if outcome.finding.problems:
                faulty.setdefault(outcome.group, {})[outcome.place] = outcome.finding.problems
        answers = await asyncio.gather(
            *(
                ask_to_mend(self.llm, self.batch.item_id, talks[number], problems, round_number)
                for number, problems in faulty.items()
            ),
            return_exceptions=True,
        )
        mended: dict[tuple[int, int], ProposalWire] = {}
        for number, answer in zip(faulty, answers, strict=True):
            if (tools := _useful(answer)) is not None:  # else the first findings stand
                mended |= {(number, place): tool for place, tool in tools.items()}
        found = await self._examined_again(talks, mended, outcomes, round_number)
        return [
            o._replace(tool=mended[o.group, o.place], finding=found[o.group, o.place])
            if (o.group, o.place) in found
            else o
            for o in outcomes
        ]

    async def _examined_again(
        self,
        talks: dict[int, RequestTalk],
        mended: dict[tuple[int, int], ProposalWire],
        outcomes: list[ToolOutcome],
        round_number: int,
    ) -> dict[tuple[int, int], ProposalFinding]:
        if not mended:
            return {}
        places = sorted(mended)
        drafts = [
            ProposalDraft(i, mended[where], _parent_names(talks[where[0]].group))
            for i, where in enumerate(places)
        ]
        job = self._job(drafts, [outcome.finding for outcome in outcomes])
        findings = await self.executor.compute(examine, job)
        step = "describe_again" if round_number == 1 else f"describe_again_{round_number}"
        return dict(zip(places, await self._described(findings, step), strict=True))

    async def _described(
        self, findings: Sequence[ProposalFinding], step: str
    ) -> list[ProposalFinding]:
        """The findings, accepted tools refused whose descriptions promise what is not done."""
        tools = [
            AcceptedTool(finding.spec, finding.row["proof"])
            for finding in findings
            if finding.spec is not None and finding.row is not None
        ]
        size, file = self.described_together, self.batch.domain.file
        if not tools or not size:
            return list(findings)
        answers = await asyncio.gather(
            *(
                judged(
                    self.llm, self.batch.item_id, f"{step}-{i // size}", tools[i : i + size], file
                )
                for i in range(0, len(tools), size)
            )
        )
        found = {name: own for answer in answers for name, own in answer.items()}
        return [
            finding if finding.spec is None else with_judged(finding, found[finding.spec.name])
            for finding in findings
        ]

    def _job(
        self, drafts: Sequence[ProposalDraft], earlier: Sequence[ProposalFinding] = ()
    ) -> ExaminationJob:
        known = [
            ToolFingerprint(tool.name, tool.row["description"], tool.semantics_key, tool.skeleton)
            if tool.semantics_key and tool.skeleton
            else KnownSpec(tool.spec())
            for tool in self.batch.known
        ]
        accepted = tuple(finding.spec for finding in earlier if finding.spec)
        return ExaminationJob(
            self.domain,
            (*known, *map(KnownSpec, accepted)),
            accepted,
            tuple(drafts),
            self.per_skeleton,
            self.quotas,
        )


def _with_latest(
    talks: dict[int, RequestTalk], outcomes: Sequence[ToolOutcome]
) -> dict[int, RequestTalk]:
    """The requests with each tool as it was mended last."""
    latest = {(o.group, o.place): o.tool for o in outcomes}
    return {
        number: talk._replace(
            tools=[latest.get((number, i)) or tool for i, tool in enumerate(talk.tools)]
        )
        for number, talk in talks.items()
    }


def _useful(answer: T | BaseException) -> T | None:
    """None where the answers were of no use; any other failure is the item's."""
    if isinstance(answer, ItemError):
        return None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _unanswered(groups: Sequence[RequestGroup], talks: dict[int, RequestTalk]) -> list[ToolOutcome]:
    """Tools that were asked for and not written, or written and not asked for."""
    found = []
    for number, group in enumerate(groups):
        talk = talks.get(number)
        answered = talk.tools if talk else []
        reason = "not_written" if talk else "invalid_output"
        for place in range(len(answered), group.size):
            found.append(ToolOutcome(number, place, None, reason, _refused(reason)))
        for place, tool in enumerate(answered[group.size :], start=group.size):
            found.append(ToolOutcome(number, place, tool, "over_count", _refused("over_count")))
    return found


def _refused(reason: str) -> ProposalFinding:
    return ProposalFinding(0, reason, (), None, None, None, None)


def _parent_names(group: RequestGroup) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tool.name for parents in group.parents for tool in parents))
