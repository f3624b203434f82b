"""The stage `specialise`: narrower domains of those that the run starts from, an item each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ItemError
from records.seeds import rng_of, seed_of
from records.tables.schemas import Row
from synth.catalogue.evolution.asking import shown
from synth.catalogue.evolution.batch import STAGE_VERSION
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.proposals.narrowing import NarrowingError, narrowed, rows_with, too_few
from synth.catalogue.proposals.schemas import DOMAIN
from synth.engine.run import Run
from synth.engine.stages import KEPT, Item, ItemResult, ShardContext, dropped
from synth.prompts.templates import fenced, render, version_of
from tool_specs.domains.catalogue import domain_id, domain_of_rows, domain_row
from tool_specs.domains.domain import Domain
from tool_specs.domains.taxonomy import taxonomy_files

PROMPT = "domain_specialise"
REPAIR = "domain_repair"


class SpecialisationPlan(NamedTuple):
    item_id: str
    parent: Domain
    aim: str
    """A field and a value that would make the domain narrower: `ticket.priority = urgent`."""


class SpecialiseStage:
    name = "specialise"

    def __init__(self, run: Run[EvolveConfig], domains: Sequence[Domain]) -> None:
        self.run = run
        self.domains = domains
        self.base = digest(
            "specialise",
            STAGE_VERSION,
            run.config.seed,
            run.config.roles["generator"].identity(),
            self.version,
        )

    @property
    def version(self) -> str:
        return digest(version_of(PROMPT), version_of(REPAIR))

    def plan(self) -> list[Item]:
        """Every domain once before any twice; the same items whatever their number."""
        order = sorted(
            self.domains, key=lambda d: seed_of(domain_id(d), f"specialise:{self.run.config.seed}")
        )
        plans: list[SpecialisationPlan] = []
        for turn in range(self.run.config.specialise):
            plans += [plan for domain in order if (plan := self._plan(domain, turn))]
            if len(plans) >= self.run.config.specialise:
                break
        chosen = plans[: self.run.config.specialise]
        return [Item(plan.item_id, {"plan": plan}) for plan in chosen]

    def _plan(self, domain: Domain, turn: int) -> SpecialisationPlan | None:
        """None when all that could make the domain narrower has been tried."""
        aims = aims_of(domain)
        rng_of(self.base, domain_id(domain)).shuffle(aims)
        if turn >= len(aims):
            return None
        return SpecialisationPlan(digest(self.base, domain_id(domain), turn), domain, aims[turn])

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        plan: SpecialisationPlan = item.data["plan"]
        prompt = render(
            PROMPT,
            domain=fenced(shown(plan.parent)),
            wanted={"aims": [plan.aim], "draw": seed_of(item.item_id, "draw") % 1_000_000},
        )
        messages, first, child = prompt.messages, None, None
        answer: dict[str, Any] = {}
        problems: tuple[str, ...] = ()
        for step in ("specialise", "specialise_repair"):
            try:
                answer = await shard.llm.structured(
                    "generator",
                    messages,
                    item=item.item_id,
                    step=step,
                    name="domain",
                    schema=DOMAIN,
                )
            except ItemError:
                if step == "specialise":
                    raise
                break  # the first answer's problems stand
            try:
                child = narrowed(plan.parent, answer, taken=set(taxonomy_files()))
                break
            except NarrowingError as error:
                first, problems = "not_sound", error.problems
                messages = [*messages, *_again(answer, problems)]
        proposal = self._proposal(plan, child, answer, first, problems)
        if child is None:
            return ItemResult({"proposals": [proposal]}, dropped("not_sound").status)
        row = domain_row(child) | {"parent_id": domain_id(plan.parent)}
        new = row["domain_id"] not in self.run.dataset.ids("domains")
        return ItemResult({"proposals": [proposal], "domains": [row] if new else []}, KEPT)

    def made(self) -> list[Domain]:
        """The narrower domains that are committed, in the order of the plan."""
        dataset = self.run.dataset
        made = {p["item_id"]: p for p in dataset.rows("proposals") if p["drop_reason"] is None}
        rows = {row["domain_id"]: row for row in dataset.rows("domains")}
        ids = [made[i.item_id]["domain_id"] for i in self.plan() if i.item_id in made]
        return [domain_of_rows(rows[place]) for place in dict.fromkeys(ids)]

    def _proposal(
        self,
        plan: SpecialisationPlan,
        child: Domain | None,
        answer: dict[str, Any],
        first_reason: str | None,
        problems: tuple[str, ...],
    ) -> Row:
        generator = self.run.config.roles["generator"]
        return {
            "item_id": plan.item_id,
            "number": 0,
            "operator": "specialise",
            "batch": 0,
            "domain_id": domain_id(child or plan.parent),
            "category": plan.parent.category,
            "model": generator.model_of(plan.item_id, "generator"),
            "prompt_version": self.version,
            "name": answer.get("domain"),
            "parents": [domain_id(plan.parent)],
            "first_reason": first_reason,
            "drop_reason": None if child else "not_sound",
            "problems": [] if child else list(problems),
            "repaired": bool(child and first_reason),
            "tool_id": None,
            "semantics_key": None,
            "skeleton": None,
            "split": plan.parent.split,
        }


def aims_of(domain: Domain) -> list[str]:
    """Fields and values that leave enough rows of everything, status fields left out."""
    found = []
    for name, entity in domain.entities.items():
        for field, spec in entity.fields.items():
            if spec.type not in ("enum", "boolean") or field == entity.lifecycle_field:
                continue
            values = [row[field] for row in domain.seed[name] if row[field] is not None]
            for value in dict.fromkeys(values):
                left = rows_with(domain, domain.seed, name, field, value)
                if values.count(value) < len(values) and not too_few(domain, left):
                    text = str(value).lower() if spec.type == "boolean" else value
                    found.append(f"{name}.{field} = {text}")
    return found


def _again(answer: dict[str, Any], problems: Sequence[str]) -> list[dict[str, Any]]:
    [message] = render(REPAIR, problems=list(problems)).messages
    return [{"role": "assistant", "content": fenced(answer)}, message]
