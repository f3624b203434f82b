"""Which trajectories a list shows: by facets, by the beginning of an id, or by ids from a query."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from records.tables.schemas import Row
from records.tables.task_tables import IMPORTED
from synth.browser.index import NONE, TrajectoryIndex

PAGE_ROWS = 50

FACETS = {
    "decision": "Decision",
    "drop_reason": "Drop reason",
    "failed_criterion": "Failed criterion",
    "attributed_to": "Whose failure",
    "domain": "Domain or server",
    "variant": "Variant",
    "complexity": "Complexity",
    "outcome": "Outcome by code",
    "termination_reason": "How it ended",
    "model": "Agent's model",
    "run_id": "Run",
    "split": "Split",
}
"""Parameter of an address -> its heading."""

MEANINGS: dict[str, dict[str, str]] = {
    "variant": {
        "normal": "all that is asked for can be done",
        "missing_parameter": "the user leaves out a needed fact until asked for it",
        "missing_tool": "a wish needs a tool that the agent lacks",
        "irrelevant_tool": "a wish of another domain, for which no tool is any use",
        "unclear_tool": "the first wish can mean several things, so the agent has to ask",
        "against_policy": "a wish that the agent's rules forbid",
        "no_tool": "a question that takes no tool",
        IMPORTED: "a conversation that was made elsewhere",
    },
    "split": {
        "train": "may be learnt from",
        "heldout_document": "kept from training: of a text that is held out",
        "heldout_values": "kept from training: of values that are held out",
        "heldout_task": "kept from training: its task is held out",
        "heldout_tool": "kept from training: one of its tools is in no training row",
        "heldout_domain": "kept from training: its whole domain or server is",
    },
    "outcome": {
        "passed": "code found every criterion met that it can tell",
        "failed": "code found a criterion that is not met",
        "truncated": "cut off by a limit before its end",
        "error": "ended by something that says nothing of the agent",
    },
    "termination_reason": {
        "user_done": "the user had no more to say",
        "agent_done": "the agent was done",
        "refused": "the agent's model refused to go on",
        "max_turns": "the agent wrote as many messages as are allowed",
        "token_budget": "it took as many tokens as are allowed",
        "format_error": "the agent's model kept writing calls that are not valid",
        "user_error": "the simulated user kept saying what it must not say",
        "infra_error": "a sandbox, server or process was lost",
        "budget_stop": "the run's budget was spent",
    },
}
"""Facet -> value -> what it means, for somebody who does not know the project."""


def value_in_words(facet: str, value: str) -> str:
    """What a value of a facet means; empty where it speaks for itself, or is not known."""
    return MEANINGS.get(facet, {}).get(value, "")


ACCEPTED, REJECTED, UNDECIDED = "accepted", "rejected", "not curated"

_OF = {name: f"coalesce({name}, '{NONE}')" for name in FACETS} | {
    "decision": f"CASE WHEN accepted THEN '{ACCEPTED}' WHEN accepted IS NULL THEN '{UNDECIDED}' "
    f"ELSE '{REJECTED}' END",
}
"""The SQL of each."""

ORDERS = {
    "trajectory_id": ("Id", "trajectory_id"),
    "score": ("Score, lowest first", "score NULLS LAST, trajectory_id"),
    "num_messages": ("Messages, most first", "num_messages DESC, trajectory_id"),
    "num_tool_calls": ("Calls, most first", "num_tool_calls DESC, trajectory_id"),
    "num_errors": ("Errors of calls, most first", "num_errors DESC, trajectory_id"),
}
"""Parameter -> its words and its SQL."""


@dataclass(frozen=True, slots=True)
class TrajectoryFilter:
    chosen: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Facet -> values; a trajectory has one of each facet's."""
    beginning: str = ""
    """Of the id."""
    ids: Sequence[str] | None = None
    """What a query found; None where there is none."""

    def where(self, *, but: str = "") -> tuple[str, list[Any]]:
        """The condition and its values; without that of one facet, to count its other values."""
        conditions, values = ["true"], []
        for name, wanted in self.chosen.items():
            if name != but:
                values.append(list(wanted))
                conditions.append(f"list_contains(${len(values)}, {_OF[name]})")
        if self.beginning:
            values.append(self.beginning)
            conditions.append(f"starts_with(trajectory_id, ${len(values)})")
        if self.ids is not None:
            values.append(list(self.ids))
            conditions.append(f"trajectory_id IN (SELECT unnest(${len(values)}))")
        return " AND ".join(conditions), values


class FacetValue(NamedTuple):
    value: str
    n: int
    chosen: bool


class TrajectoryPage(NamedTuple):
    rows: list[Row]
    total: int
    facets: dict[str, list[FacetValue]]


def page_of(
    index: TrajectoryIndex, chosen: TrajectoryFilter, *, order: str, page: int
) -> TrajectoryPage:
    """`page` counts from 0. Of each facet the values are counted as if none were chosen."""
    where, values = chosen.where()
    rows = index.rows(
        f"SELECT * FROM shown WHERE {where} ORDER BY {ORDERS[order][1]} "
        f"LIMIT {PAGE_ROWS} OFFSET {page * PAGE_ROWS}",
        values,
    )
    [counted] = index.rows(f"SELECT count(*) AS n FROM shown WHERE {where}", values)
    facets = {name: _values(index, chosen, name) for name in FACETS}
    return TrajectoryPage(rows, counted["n"], facets)


def _values(index: TrajectoryIndex, chosen: TrajectoryFilter, name: str) -> list[FacetValue]:
    where, values = chosen.where(but=name)
    found = index.rows(
        f"SELECT {_OF[name]} AS value, count(*) AS n FROM shown WHERE {where} "
        "GROUP BY ALL ORDER BY n DESC, value",
        values,
    )
    wanted = chosen.chosen.get(name, ())
    return [FacetValue(row["value"], row["n"], row["value"] in wanted) for row in found]
