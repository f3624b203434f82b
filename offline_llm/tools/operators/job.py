"""Job `tools`: which operator is asked for, and the tools it gives."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from offline_llm.tools.draft import ToolDraft, ToolWire
from offline_llm.tools.english import shortened
from offline_llm.tools.operators.broadening import broadened
from offline_llm.tools.operators.composing import composed
from offline_llm.tools.operators.constraining import constrained
from offline_llm.tools.operators.deepening import deepened
from offline_llm.tools.operators.mending import mended
from offline_llm.tools.operators.slips import slipped
from offline_llm.tools.outline import Outline
from offline_llm.tools.patterns.planning import LONGEST_NAME, Candidate, candidates, in_turn
from records.seeds import rng_of

OperatorFunction = Callable[[Outline, Any], Iterator[tuple[str, ToolDraft]]]
"""(name of the parent, child) for every child that it makes of what the request gives."""


def write_tools(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    problems = [p for p in json_of(found, "problems", []) if isinstance(p, dict)]
    if problems:
        return {"tools": [tool for entry in problems if (tool := mended(entry))]}
    wanted = json_of(found, "wanted", {})
    existing = [t for t in json_of(found, "tools that exist", []) if isinstance(t, dict)]
    domain = json.dumps(json_of(found, "domain", {}))
    taken = {str(t.get("name")) for t in existing}
    operator = found.get("operator", "").split()[0:1] or ["derive"]
    if operator[0] in OPERATORS:
        tools = reworked(domain, operator[0], json_of(found, "parents", []), taken, wanted)
    else:
        tools = derived(domain, taken, wanted)
    factor = settings.models.get(request.model, 1.0)
    return {"tools": [slipped(tool, settings.tool_mistakes, factor) for tool in tools]}


def derived(domain: str, taken: set[str], wanted: dict[str, Any]) -> list[ToolWire]:
    """Tools of the patterns, other than those that exist: one that meets each aim, where there is
    one, then those whose turn it is."""
    rng = rng_of(domain, "derive", int(wanted.get("draw") or 0))
    free = in_turn(candidates(domain), taken, rng)
    count = int(wanted.get("count") or 0)
    chosen: list[Candidate] = []
    for aim in [*map(str, wanted.get("aims") or ()), *[""] * count][:count]:
        best = next((c for c in free if aim and c.meets(aim)), None) or next(iter(free), None)
        if best is not None:
            free.remove(best)
            chosen.append(best)
    return [c.draft.wire() for c in chosen]


def elsewhere(domain: str) -> Callable[[Outline, ToolWire], Iterator[ToolDraft]]:
    """Broadens a tool also to what its pattern gives for other entities and fields."""

    def make(outline: Outline, parent: ToolWire) -> Iterator[ToolDraft]:
        yield from broadened(outline, parent)
        known = {c.draft.name: c for c in candidates(domain)}
        if parent["name"] in known:
            pattern = known[parent["name"]].pattern
            yield from (c.draft for c in known.values() if c.pattern == pattern)

    return make


def reworked(
    domain: str, operator: str, parents: list[Any], taken: set[str], wanted: dict[str, Any]
) -> list[ToolWire]:
    """Tools that the operator makes of the parents, from each parent as many as from another."""
    outline = Outline(json.loads(domain))
    rng = rng_of(domain, operator, int(wanted.get("draw") or 0))
    operate = _alone(elsewhere(domain)) if operator == "broaden" else OPERATORS[operator]
    queues = [list(operate(outline, parent)) for parent in _offered(operator, parents)]
    for queue in queues:
        rng.shuffle(queue)
    tools: dict[str, ToolWire] = {}
    while any(queues) and len(tools) < int(wanted.get("count") or 0):
        for queue in queues:
            name, draft = queue.pop() if queue else ("", None)
            if draft is None:
                continue
            draft.name = shortened(draft.name)
            if draft.name in taken or draft.name in tools:
                continue
            if len(draft.name) <= LONGEST_NAME and len(tools) < int(wanted.get("count") or 0):
                tools[draft.name] = draft.wire(name)
    return list(tools.values())


def _offered(operator: str, parents: list[Any]) -> list[Any]:
    """What the operator works on, one by one: pairs as they are given, then in other matches."""
    if operator != "compose":
        return parents
    pairs = [p for p in parents if isinstance(p, list) and len(p) == 2]
    return pairs + [[a, d] for a, b in pairs for c, d in pairs if d["name"] != b["name"]]


def _alone(make: Callable[[Outline, ToolWire], Iterator[ToolDraft]]) -> OperatorFunction:
    def operate(outline: Outline, parent: Any) -> Iterator[tuple[str, ToolDraft]]:
        if isinstance(parent, dict):
            for draft in make(outline, parent):
                yield str(parent["name"]), draft

    return operate


def _pairwise(outline: Outline, pair: Any) -> Iterator[tuple[str, ToolDraft]]:
    if isinstance(pair, list) and len(pair) == 2:
        for one, other in (pair, pair[::-1]):
            for draft in composed(outline, one, other):
                yield str(pair[0]["name"]), draft


OPERATORS: dict[str, OperatorFunction] = {
    "deepen": _alone(deepened),
    "constrain": _alone(constrained),
    "broaden": _alone(broadened),
    "compose": _pairwise,
}
