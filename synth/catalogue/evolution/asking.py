"""The generator asked for tools, and to mend those that were found wanting."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.catalogue.evolution.batch import IN_TIME, REPAIR, RequestGroup, prompt_of
from synth.catalogue.proposals.schemas import TOOLS, TOOLS_IN_TIME
from synth.catalogue.proposals.wire import ProposalWire
from synth.llm.client import LLM
from synth.prompts.templates import fenced, render
from tool_specs.domains.catalogue import domain_row
from tool_specs.domains.domain import Domain

SEED_ROWS = 3
"""Of each entity that the model is shown."""


class DomainView(NamedTuple):
    """What all requests of a batch show of its domain, rendered once."""

    domain: str
    existing: str


def shown(domain: Domain) -> dict[str, Any]:
    """The domain as a generator sees it, fields in the order of the file."""
    row = domain_row(domain)
    entities = {
        name: row["entities"][name]
        | {"fields": {f: row["entities"][name]["fields"][f] for f in entity.fields}}
        for name, entity in domain.entities.items()
    }
    return {
        "domain": domain.name,
        "title": domain.title,
        "description": domain.description,
        "now": domain.now,
        "entities": entities,
        "rules": row["rules"],
        "seed": {name: rows[:SEED_ROWS] for name, rows in domain.seed.items()},
    } | ({"jobs": row["time"]["jobs"]} if domain.file.jobs else {})


def view_of(domain: Domain, tools: Sequence[Row]) -> DomainView:
    """`tools`: what exists, rows with `name` and `description`."""
    existing = [{"name": t["name"], "description": t["description"]} for t in tools]
    return DomainView(fenced(shown(domain)), fenced(existing))


class RequestTalk(NamedTuple):
    """A request and what came of it, for the repair that may follow."""

    group: RequestGroup
    messages: list[dict[str, Any]]
    tools: list[ProposalWire]


async def ask(llm: LLM, item: str, group: RequestGroup, view: DomainView) -> RequestTalk:
    """Raises ItemError when the generator writes nothing usable."""
    prompt = render(
        prompt_of(group.operator),
        operator=group.operator,
        domain=view.domain,
        existing=view.existing,
        **_particulars(group),
    )
    tools = await _tools(llm, item, group, group.operator, prompt.messages)
    return RequestTalk(group, prompt.messages, tools)


def _particulars(group: RequestGroup) -> dict[str, Any]:
    """What is wanted, and of which tools it is made where it is made of tools."""
    wanted: dict[str, Any] = {"count": group.size, "aims": group.aims, "draw": group.draw}
    if group.shapes:
        shaped = {"shapes": list(group.shapes), "elsewhere": list(group.elsewhere)}
        return {"wanted": wanted | shaped}
    parents: list[Any] = [list(some) for some in group.wires]
    if group.operator != "compose":
        parents = [wire for (wire,) in group.wires]
    return {"wanted": wanted, "parents": parents}


def repair_step(number: int) -> str:
    """What the ledger calls a round of repair; the first has no number."""
    return "repair" if number == 1 else f"repair_{number}"


async def ask_to_mend(
    llm: LLM, item: str, talk: RequestTalk, faulty: Mapping[int, Sequence[str]], number: int
) -> dict[int, ProposalWire]:
    """Mended tools by their place in the answer. `faulty`: place -> what is wrong; `number`: of the
    round, from 1.

    A mended tool is told by its name; one with another name takes the place of the first faulty
    tool that no answer names.
    """
    problems = [
        {"tool": talk.tools[place], "problems": list(words)} for place, words in faulty.items()
    ]
    [message] = render(REPAIR, problems=problems).messages
    said = {"role": "assistant", "content": json.dumps({"tools": talk.tools}, ensure_ascii=False)}
    step = f"{talk.group.operator}_{repair_step(number)}"
    answered = await _tools(llm, item, talk.group, step, [*talk.messages, said, message])
    open_ = dict(faulty)
    places = {talk.tools[place]["name"]: place for place in reversed(list(faulty))}
    mended: dict[int, ProposalWire] = {}
    renamed: list[ProposalWire] = []
    for tool in answered:
        place = places.get(tool["name"])
        if place in open_:
            del open_[place]
            mended[place] = tool
        else:
            renamed.append(tool)
    return mended | dict(zip(open_, renamed, strict=False))


async def _tools(
    llm: LLM, item: str, group: RequestGroup, step: str, messages: list[dict[str, Any]]
) -> list[ProposalWire]:
    schema = TOOLS_IN_TIME if group.operator in IN_TIME else TOOLS
    answer = await llm.structured(
        "generator", messages, item=item, step=step, name="tools", schema=schema
    )
    return answer["tools"]
