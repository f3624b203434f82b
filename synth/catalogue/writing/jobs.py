"""Jobs that a generator writes: what is asked, and how jobs are tried on states of the domain."""

import json
from collections.abc import Sequence
from typing import Any

from records.errors import ConfigError
from synth.catalogue.evolution.asking import shown
from synth.catalogue.proposals.narrowing import values_in
from synth.catalogue.proposals.schemas import JOBS
from synth.catalogue.proposals.wire import WireError, job_of
from synth.catalogue.writing.parts import PartFinding, PartKind, PartsJob, PartWire
from synth.prompts.templates import fenced
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.domain import Domain
from tool_specs.domains.rewriting import AddedField
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.values import EvaluationError
from tool_specs.validation.job_trials import job_trial


class JobError(Exception):
    """Why a domain cannot have a job, in sentences for the model."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def with_jobs(domain: Domain, wires: Sequence[PartWire]) -> Domain:
    """The domain with these jobs, one after the other, and the fields that they bring along.

    Raises JobError with what is wrong with the first that does not fit.
    """
    for wire in wires:
        domain = _with_job(domain, wire)
    return domain


def _with_job(domain: Domain, wire: PartWire) -> Domain:
    if wire["name"] in [job.name for job in domain.file.jobs]:
        raise JobError(f"name: {wire['name']!r} is taken")
    if wire["entity"] not in domain.entities:
        raise JobError(f"entity: unknown {wire['entity']!r}; known: {', '.join(domain.entities)}")
    data: dict[str, Any] = domain.file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    try:
        for field in wire["fields"]:
            _add_field(domain, wire["entity"], field, data)
        spec = job_of(wire).model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return Domain.of(data | {"jobs": [*data.get("jobs", ()), spec]}, origin="")
    except WireError as error:
        raise JobError(*error.problems) from None
    except ConfigError as error:
        own = f"jobs[{wire['name']}]."
        lines = [line.removeprefix(": ").removeprefix(own) for line in str(error).splitlines()]
        raise JobError(*lines) from None


def _add_field(domain: Domain, entity: str, field: PartWire, data: dict[str, Any]) -> None:
    """A date-time that may be null, in the entity and in every row of the seed."""
    name, fields = field["name"], data["entities"][entity]["fields"]
    if name in fields:
        raise JobError(f"fields: {entity} has a field {name!r} already; use it, or take another")
    rows, key = data["seed"].get(entity, []), domain.entities[entity].key
    whole = [row for own in rows if (row := domain.seed_state.get(entity, own[key])) is not None]
    try:
        values = values_in(domain, entity, whole, field["value"])
    except (ExpressionError, EvaluationError) as error:
        raise JobError(f"fields[{name}].value: {error}") from None
    fields[name] = {"type": "datetime", "optional": True, "description": field["description"]}
    for row, value in zip(rows, values, strict=True):
        row[name] = value


def examine_jobs(job: PartsJob) -> list[PartFinding]:
    """A finding for each job, in their order; a job is tried with the good ones before it. Runs in
    worker processes."""
    data = json.loads(job.domain)
    domain = with_jobs(domain_of_rows(data["domain"], data["tools"]), job.good)
    findings: list[PartFinding] = []
    for wire in job.parts:
        try:
            further = with_jobs(domain, [wire])
            problems = job_trial(further, wire["name"]).problems
        except JobError as error:
            problems = error.problems
        else:
            domain = domain if problems else further
        findings.append(PartFinding(wire, problems))
    return findings


def added_fields(before: Domain, after: Domain) -> list[AddedField]:
    """The fields that a domain has gained, in the order in which they stand."""
    return [
        AddedField(
            entity, name, field, tuple(row.get(name) for row in after.file.seed.get(entity, []))
        )
        for entity, spec in after.entities.items()
        for name, field in spec.fields.items()
        if name not in before.entities[entity].fields
    ]


def jobs_values(domain: Domain, count: int) -> dict[str, Any]:
    """What the prompt shows and asks for."""
    return {"domain": fenced(shown(domain)), "wanted": {"count": count}}


JOB_KIND = PartKind(
    "jobs", "job", "name", "jobs", "domain_jobs", "domain_jobs_repair", JOBS, examine_jobs
)
