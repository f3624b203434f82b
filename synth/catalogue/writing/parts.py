"""Parts of a domain that a generator writes beside tools: asked for, tried, mended.

What a part is, and how it is tried, is said by its kind: policy rules and jobs go the same way.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ItemError
from synth.catalogue.evolution.asking import repair_step
from synth.catalogue.proposals.examining import packed
from synth.engine.executor import ShardExecutor
from synth.llm.client import LLM
from synth.prompts.templates import render
from tool_specs.domains.domain import Domain

PartWire = dict[str, Any]
"""A part as the model writes it."""


class PartsJob(NamedTuple):
    domain: bytes
    """As `packed` makes it, with its tools."""
    parts: tuple[PartWire, ...]
    good: tuple[PartWire, ...] = ()
    """Parts that were found good before, and stay."""


class PartFinding(NamedTuple):
    part: PartWire
    problems: tuple[str, ...]
    """Sentences for the model; none of a part that can be used."""
    first_problems: tuple[str, ...] = ()
    """Of the part before it was mended."""


class PartKind(NamedTuple):
    name: str
    """Of the answer's schema, and of its one member."""
    word: str
    """One part, in the request that asks to mend it."""
    key: str
    """Member that names a part."""
    step: str
    prompt: str
    repair: str
    schema: Mapping[str, Any]
    examine: Callable[[PartsJob], list[PartFinding]]
    """A finding for each part, in their order. Runs in worker processes."""


async def write_parts(
    llm: LLM,
    executor: ShardExecutor,
    item: str,
    kind: PartKind,
    domain: Domain,
    values: Mapping[str, Any],
    *,
    repair_rounds: int,
) -> list[PartFinding]:
    """What became of each part that was written, mended ones as they are in the end; `values` are
    the prompt's. Empty where the generator gives no answer of use."""
    prompt = render(kind.prompt, **values)
    try:
        parts = await _parts(llm, item, kind, kind.step, prompt.messages)
    except ItemError:
        return []
    packed_domain = packed(domain)
    findings = await executor.compute(kind.examine, PartsJob(packed_domain, tuple(parts)))
    for number in range(1, repair_rounds + 1):
        faulty = [finding for finding in findings if finding.problems]
        if not faulty:
            break
        problems = [{kind.word: f.part, "problems": list(f.problems)} for f in faulty]
        [message] = render(kind.repair, problems=problems).messages
        said = json.dumps({kind.name: [f.part for f in findings]}, ensure_ascii=False)
        talk = [*prompt.messages, {"role": "assistant", "content": said}, message]
        try:
            mended = await _parts(llm, item, kind, f"{kind.step}_{repair_step(number)}", talk)
        except ItemError:
            break
        good = [finding for finding in findings if not finding.problems]
        again = PartsJob(packed_domain, tuple(mended), tuple(f.part for f in good))
        findings = [*good, *_paired(kind, faulty, await executor.compute(kind.examine, again))]
    return findings


def _paired(
    kind: PartKind, faulty: Sequence[PartFinding], again: Sequence[PartFinding]
) -> list[PartFinding]:
    """Mended parts, each with what was wrong with the first one of its name, and those that nothing
    replaced."""
    before = {finding.part[kind.key]: finding for finding in faulty}
    answered = {finding.part[kind.key] for finding in again}
    left = iter([f for name, f in before.items() if name not in answered])
    found = []
    for finding in again:
        old = before.get(finding.part[kind.key]) or next(left, None)
        first = (old.first_problems or old.problems) if old else ()
        found.append(finding._replace(first_problems=first))
    return [*found, *left]


async def _parts(
    llm: LLM, item: str, kind: PartKind, step: str, messages: list[dict[str, Any]]
) -> list[PartWire]:
    answer = await llm.structured(
        "generator", messages, item=item, step=step, name=kind.name, schema=dict(kind.schema)
    )
    return answer[kind.name]
