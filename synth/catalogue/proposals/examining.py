"""Proposed tools judged: form, repetition, proof; accepted ones become rows.

Runs in worker processes: all that goes in and out is plain data, and the same input gives the
same output in whichever process.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.catalogue.proposals.describing import REASONS, JudgedDescription, hints_of
from synth.catalogue.proposals.quotas import QuotaScreen
from synth.catalogue.proposals.screening import Screen, ToolFingerprint
from synth.catalogue.proposals.wire import ProposalWire, WireError, spec_of
from tool_specs.coverage.skeleton import semantics_key, skeleton_of
from tool_specs.domains.catalogue import domain_of_rows, domain_row, tool_rows
from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.execution.programs import Entities, Problems
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.validation.doubts import doubts_of
from tool_specs.validation.validate import clashes, validate_tools

MAX_PROBLEMS = 6
"""Of one tool that its author is shown."""


class KnownSpec(NamedTuple):
    """A committed tool whose keys were never computed, or a tool accepted just before."""

    spec: ToolSpec


class ProposalDraft(NamedTuple):
    number: int
    tool: ProposalWire
    parents: tuple[str, ...]
    """Names that `parent` may have; empty where the tool has no parents."""


class ExaminationJob(NamedTuple):
    domain: bytes
    """As `packed` makes it: the same bytes are built into a domain once a process."""
    known: tuple[ToolFingerprint | KnownSpec, ...]
    """What the domain has."""
    accepted: tuple[ToolSpec, ...]
    """Valid tools of this batch: they change the environment while others are validated."""
    drafts: tuple[ProposalDraft, ...]
    per_skeleton: int
    """Tools of one domain that may share a skeleton."""
    quotas: QuotaScreen | None = None
    """Before the accepted tools of this batch; None: there are none."""


class ProposalFinding(NamedTuple):
    number: int
    reason: str | None
    """None: accepted."""
    problems: tuple[str, ...]
    """Sentences for the model; empty where mending is no use, as with a repeated tool."""
    semantics_key: str | None
    skeleton: str | None
    row: Row | None
    """Of an accepted tool, for the table `tools`; lineage is the caller's to fill in."""
    spec: ToolSpec | None


def examine(job: ExaminationJob) -> list[ProposalFinding]:
    """A finding for each draft, in their order."""
    domain = _domain(job.domain)
    screen = Screen([_known(domain, tool) for tool in job.known], per_skeleton=job.per_skeleton)
    quotas = deepcopy(job.quotas)
    if quotas:
        for spec in job.accepted:
            quotas.admit(spec)
    findings: dict[int, ProposalFinding] = {}
    open_: dict[str, tuple[ProposalDraft, ToolSpec, ToolFingerprint]] = {}
    for draft in job.drafts:
        refused, spec = _formed(draft)
        if spec is None:
            findings[draft.number] = _refused(draft, "does_not_compile", refused)
            continue
        try:
            known = _known(domain, KnownSpec(spec))
        except (ExpressionError, KeyError, AttributeError) as error:
            words = _compile_problems(domain, spec) or (f"{type(error).__name__}: {error}",)
            findings[draft.number] = _refused(draft, "does_not_compile", words)
            continue
        if fault := screen.fault(known) or (quotas and quotas.fault(spec)):
            findings[draft.number] = ProposalFinding(
                draft.number, fault, (), known.semantics_key, known.skeleton, None, None
            )
            continue
        screen.admit(known)
        if quotas:
            quotas.admit(spec)
        open_[spec.name] = (draft, spec, known)
    for finding in _proved(domain, job.accepted, open_):
        findings[finding.number] = finding
    return [findings[draft.number] for draft in job.drafts]


def with_judged(finding: ProposalFinding, answer: JudgedDescription) -> ProposalFinding:
    """The finding of an accepted tool once the judge has read its description."""
    assert finding.row is not None, "only accepted tools are shown to the judge"
    if answer.broken:
        words = tuple(promise.words for promise in answer.broken)
        reason = REASONS[answer.broken[0].kind]
        return finding._replace(reason=reason, problems=words, row=None, spec=None)
    proof = finding.row["proof"] | {"described": "kept" if answer.answered else "unanswered"}
    return finding._replace(row=finding.row | {"proof": proof})


def clashing(domain: bytes) -> dict[str, tuple[str, ...]]:
    """What is wrong with tools of a domain that are sound alone, once all of its tools are called
    in turn, by name; the domain as `packed` makes it. Runs in worker processes."""
    made = _domain(domain)
    found = clashes(made, list(made.programs))
    return {n: tuple(d.words for d in defects)[:MAX_PROBLEMS] for n, defects in found.items()}


def refused_for_clash(finding: ProposalFinding, problems: tuple[str, ...]) -> ProposalFinding:
    """The finding of an accepted tool that breaks down, or breaks a rule, beside the others."""
    return finding._replace(reason="clashes", problems=problems, row=None, spec=None)


def packed(domain: Domain) -> bytes:
    return json.dumps({"domain": domain_row(domain), "tools": tool_rows(domain)}).encode()


@lru_cache(maxsize=8)
def _domain(data: bytes) -> Domain:
    rows = json.loads(data)
    return domain_of_rows(rows["domain"], rows["tools"])


def _known(domain: Domain, tool: ToolFingerprint | KnownSpec) -> ToolFingerprint:
    if isinstance(tool, ToolFingerprint):
        return tool
    spec = tool.spec
    keys = semantics_key(domain.file, spec), skeleton_of(domain.file, spec)
    return ToolFingerprint(spec.name, spec.description, *keys)


def _formed(draft: ProposalDraft) -> tuple[tuple[str, ...], ToolSpec | None]:
    """The spec, or what is wrong with its form."""
    parent = draft.tool["parent"]
    if draft.parents and parent not in draft.parents:
        names = ", ".join(draft.parents)
        return (f"parent: {parent!r} is none of the parents given: {names}",), None
    try:
        return (), spec_of(draft.tool)
    except WireError as error:
        return error.problems, None


def _refused(draft: ProposalDraft, reason: str, problems: Sequence[str]) -> ProposalFinding:
    return ProposalFinding(
        draft.number, reason, tuple(problems)[:MAX_PROBLEMS], None, None, None, None
    )


def _compile_problems(domain: Domain, spec: ToolSpec) -> tuple[str, ...]:
    problems = Problems()
    compile_tools([spec], Entities.of(domain.file), problems)
    return tuple(problems.found)


def _proved(
    domain: Domain,
    accepted: Sequence[ToolSpec],
    open_: dict[str, tuple[ProposalDraft, ToolSpec, ToolFingerprint]],
) -> list[ProposalFinding]:
    if not open_:
        return []
    entities = Entities.of(domain.file)
    moving = compile_tools(accepted, entities, Problems())
    around = domain.with_tools([*domain.programs.values(), *moving.values()])
    proofs = validate_tools(around, [spec for _, spec, _ in open_.values()])
    good = {name for name in open_ if proofs[name].reason is None}
    programs = compile_tools(
        [spec for name, (_, spec, _) in open_.items() if name in good], entities, Problems()
    )
    rows = {row["name"]: row for row in tool_rows(domain.with_tools(programs.values()))}
    findings = []
    for name, (draft, spec, known) in open_.items():
        proof = proofs[name]
        if proof.reason is not None:
            findings.append(_refused(draft, proof.reason, proof.details))
            continue
        evidence: dict[str, Any] = {
            "calls": proof.calls,
            "mutants": proof.mutants,
            "survivors": list(proof.survivors),
            "unexamined": list(proof.unexamined),
            "made_for": list(proof.made_for),
            "hints": [*hints_of(spec), *doubts_of(spec, domain.file)],
            "example": proof.example,
        }
        row = rows[name] | {"proof": evidence}
        keys = known.semantics_key, known.skeleton
        findings.append(ProposalFinding(draft.number, None, (), *keys, row, spec))
    return findings
