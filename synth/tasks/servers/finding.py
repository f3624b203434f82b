"""Goals of a server that nobody has written down: proposed by the generator, executed, and kept
where they work, come out the same twice, and mean what their calls do."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import digest
from records.tables.schemas import Row
from sandboxes.mcp.servers import (
    Communicated,
    GoalCall,
    ServerConfig,
    ServerGoal,
    pattern_of,
)
from synth.episode.tools.cassette import ServerForProof
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rubrics.built_in import mentions
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers import looking
from synth.tasks.servers.config import ServerGoalsConfig
from synth.tasks.servers.derivable import check_said, composed_in
from synth.tasks.servers.looking import ServerLook, about, described, look_at, usable_tools
from synth.tasks.servers.notes import NO_NOTES, Notes, find_notes
from synth.tasks.servers.proposals import TOLD_SCHEMA, bare_label, goal_from, schema_of_goals
from synth.tasks.servers.shared import check_parts, check_shared, parts_told
from synth.tasks.servers.trying import OpenFresh, TriedGoal, TriedTwin, drawing, try_goal, try_twin

STAGE_VERSION = 2
_FIGURE = re.compile(r"-?(?:0|[1-9]\d{0,11})(?:\.\d+)?")
PROMPT, TOLD_PROMPT = "server_goals", "server_told"
PROMPTS = (looking.PROMPT, PROMPT, TOLD_PROMPT)

REPEATS = "repeats"
"""The reason of a goal whose calls one that stands has."""

PER_ROUND = 8
"""Goals that are asked for at once."""


class Proposal(NamedTuple):
    """A proposed goal with what executing it showed."""

    proposed: dict[str, Any]
    tried: TriedGoal
    twin: TriedTwin | None


class _Found:
    """Rows of the table `server_goals` so far."""

    def __init__(self, item_id: str, config: ServerConfig, definition: str, model: str) -> None:
        self.rows: list[Row] = []
        self._base: dict[str, Any] = {
            "item_id": item_id,
            "server": config.name,
            "definition": definition,
            "model": model,
            "prompt_version": digest(*(version_of(name) for name in PROMPTS)),
        }
        self._proposed: set[str] = set()
        self._standing: set[str] = set()

    def is_new(self, proposed: Mapping[str, Any]) -> bool:
        """Whether it was not proposed as it is, and no goal stands that has its calls: what was
        dropped may come again, mended."""
        whole, calls = digest(proposed), digest(proposed["calls"])
        is_new = whole not in self._proposed and calls not in self._standing
        self._proposed.add(whole)
        if is_new:  # else these calls stand already, or were dropped and may come again
            self._standing.add(calls)
        return is_new

    def add(
        self,
        proposed: Mapping[str, Any],
        *,
        reason: str | None,
        detail: str = "",
        goal: ServerGoal | None = None,
        read_from: str | None = None,
    ) -> None:
        number = len(self.rows)
        if reason not in (None, REPEATS):
            self._standing.discard(digest(proposed["calls"]))
        self.rows.append(
            {
                **self._base,
                "number": number,
                "proposed": dict(proposed),
                "form": goal.form if goal else proposed["form"],
                "num_calls": len(proposed["calls"]),
                "writes": goal.writes if goal else None,
                "state_read_from": read_from,
                "goal": goal.model_dump(mode="json") if goal and reason is None else None,
                "drop_reason": reason,
                "detail": detail[:500],
            }
        )

    def kept(self) -> list[Row]:
        return [row for row in self.rows if row["drop_reason"] is None]

    def failed(self) -> list[dict[str, Any]]:
        return [
            {"goal": row["proposed"]["goal"], "calls": row["proposed"]["calls"]}
            | {"why": f"{row['drop_reason']}: {row['detail']}"[:300]}
            for row in self.rows
            if row["drop_reason"]
        ]


async def find_goals(
    config: ServerConfig,
    tools: Mapping[str, Row],
    llm: LLM,
    *,
    item_id: str,
    settings: ServerGoalsConfig,
    definition: str,
    model: str,
    open_fresh: OpenFresh,
) -> list[Row]:
    """Rows of `server_goals`, one for each goal that was proposed, kept or not.

    `tools`: rows by name, `definition`: digest of the server's definition. Raises what asking the
    generator raises, and TransientError for the server's own failure.
    """
    usable = usable_tools(config, tools)
    found = _Found(item_id, config, definition, model)
    if not usable:
        return []
    async with open_fresh(config, drawing(config, item_id, "look")) as server:
        look = await look_at(server, usable, llm, item_id=item_id, calls=settings.look_calls)
    notes = NO_NOTES
    for number in range(settings.rounds):
        missing = settings.wanted - len(found.kept())
        if missing <= 0:
            break
        proposed = await _proposed(config, look, llm, found, item_id, number, missing)
        if not proposed:
            break
        if number == 0:
            async with open_fresh(config, drawing(config, item_id, "notes")) as server:
                notes = await _notes(server, usable, look, proposed)
        tried = [await _tried(config, usable, one, found, open_fresh, notes) for one in proposed]
        await _checked(llm, [one for one in tried if one], found, item_id, number)
    return found.rows


async def _notes(
    server: ServerForProof,
    tools: Mapping[str, Row],
    look: ServerLook,
    proposed: Sequence[Mapping[str, Any]],
) -> Notes:
    """What the server notes of calls that were made, and of those that goals are made of."""
    answered = [one for one in look.answers if "answer" in one]
    showing = [call for goal in proposed for call in goal["seen_by"]]
    in_goals = [call for goal in proposed for call in goal["calls"]]
    calls = [
        GoalCall(tool=call["tool"], arguments=call["arguments"])
        for call in (*answered, *showing, *in_goals)
    ]
    return await find_notes(server, tools, calls, {call["tool"] for call in showing})


async def _proposed(
    config: ServerConfig,
    look: ServerLook,
    llm: LLM,
    found: _Found,
    item_id: str,
    number: int,
    missing: int,
) -> list[dict[str, Any]]:
    count = min(PER_ROUND, missing + missing // 2 + 1)
    prompt = render(
        PROMPT,
        server=about(config),
        parts=parts_told(config),
        look=look._asdict(),
        count=count,
        kept=[
            {"goal": row["proposed"]["goal"], "calls": row["proposed"]["calls"]}
            for row in found.kept()
        ],
        failed=found.failed(),
    )
    answer = await llm.structured(
        "generator",
        prompt.messages,
        item=item_id,
        step=f"goals-{number}",
        name="goals",
        schema=schema_of_goals(count),
    )
    return answer["goals"]


async def _tried(
    config: ServerConfig,
    tools: Mapping[str, Row],
    proposed: dict[str, Any],
    found: _Found,
    open_fresh: OpenFresh,
    notes: Notes,
) -> Proposal | None:
    """What was proposed with what its execution showed; None where it is dropped for that."""
    goal = goal_from(proposed)
    try:
        if not found.is_new(proposed):
            raise UnprovedError(REPEATS, "a goal with these calls was proposed before")
        check_said(proposed)
        check_parts(config, proposed, tools)
        tried = await try_goal(config, goal, tools, open_fresh, notes)
        composed = composed_in(proposed, tried, tools)
        check_shared(config, proposed, tried.calls, tools)
        tried = tried._replace(goal=tried.goal.model_copy(update={"composed": composed}))
        twin = await try_twin(config, tried, open_fresh)
    except UnprovedError as error:
        detail = str(error).removeprefix(f"{error.reason}: ")
        found.add(proposed, reason=error.reason, detail=detail)
        return None
    return Proposal(proposed, tried, twin)


async def _checked(
    llm: LLM,
    tried: Sequence[Proposal],
    found: _Found,
    item_id: str,
    number: int,
) -> None:
    """Have the executed goals read against what came of them, and keep those that stand."""
    if not tried:
        return
    shown = [
        {
            "number": at,
            "goal": one.proposed["goal"],
            "calls": described(one.tried.calls),
            "changes": one.tried.changes[:10],
            "told": one.proposed["told"],
        }
        | ({"other": _other(one.twin)} if one.twin else {})
        for at, one in enumerate(tried)
    ]
    answer = await llm.structured(
        "generator",
        render(TOLD_PROMPT, goals=shown).messages,
        item=item_id,
        step=f"told-{number}",
        name="told",
        schema=TOLD_SCHEMA,
    )
    read = {one["number"]: one for one in answer["goals"]}
    for at, one in enumerate(tried):
        try:
            goal = with_told(one, read.get(at))
        except UnprovedError as error:
            detail = str(error).removeprefix(f"{error.reason}: ")
            found.add(one.proposed, reason=error.reason, detail=detail)
            continue
        read_from = one.tried.state_read_from
        found.add(one.proposed, reason=None, goal=goal, read_from=read_from)


def _other(twin: TriedTwin) -> dict[str, Any]:
    return {
        "before": described(twin.before),
        "calls": described(twin.calls),
        "changes": twin.changes[:10],
    }


def with_told(proposal: Proposal, read: Mapping[str, Any] | None) -> ServerGoal:
    """The goal with the values that the person is told, and of its form if that was shown by a
    twin. UnprovedError where the reader finds fault with it, or where nothing is done and nothing
    told."""
    if read is None:
        raise UnprovedError("not_read", "the reader left it out")
    if fault := read["fault"].strip():
        raise UnprovedError("faulty", fault)
    proposed, tried, twin = proposal
    told = [
        _communicated(place, value.strip())
        for place, value in zip(proposed["told"], read["told"], strict=False)
        if _tells(value.strip(), proposed, tried, place["call"])
    ]
    if not (told or tried.goal.writes):
        raise UnprovedError("nothing_told", _why_nothing(read["told"], proposed["goal"]))
    shown = {"communicate": tuple(told)}
    if twin is None or not read["other_fits"]:
        return tried.goal.model_copy(update={**shown, "form": "plain", "twin": None})
    return tried.goal.model_copy(update=shown)


def _why_nothing(values: Sequence[str], goal: str) -> str:
    """The words on values of which none tells anything."""
    given = [value.strip() for value in values if value.strip()]
    if not given:
        return "no answer holds anything that the goal does not say"
    said = [value for value in given if mentions(goal, value)]
    place = "the goal says it already" if said else "it stands in no answer as a whole word"
    return f"of {(said or given)[0]!r}: {place}"


def _communicated(place: Mapping[str, Any], value: str) -> Communicated:
    """A figure is told by any spelling of the number: 715 tells 715.0."""
    where = {"label": bare_label(place["label"]), "call": place["call"]}
    if _FIGURE.fullmatch(value):
        return Communicated(**where, regex=pattern_of(value), number=True)
    return Communicated(**where, value=value)


def _tells(value: str, proposed: Mapping[str, Any], tried: TriedGoal, call: int) -> bool:
    if not value or call >= len(tried.calls) or mentions(proposed["goal"], value):
        return False
    place = Communicated(label="told", value=value)
    return place.value_in(str(tried.calls[call].observation)) is not None
