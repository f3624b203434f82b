"""How the calls of a plan hang together: which takes what another one is the first to show, and how
long a chain of such calls is.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from synth.rubrics.built_in import EpisodeCall
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.knowledge import plain_values


class PlanShape(NamedTuple):
    """What was measured of an executed plan."""

    num_dependencies: int
    """Pairs of calls of which the later one takes a value that nobody said, and that the earlier
    one is the first to show."""
    num_distinct_tools: int
    """Of the agent."""
    longest_chain: int
    """Calls of the longest chain in which each takes a value that nobody said and that the one
    before it is the first to show; 1 where no call needs another, 0 without calls."""


def shape_of(draft: Draft, calls: Sequence[EpisodeCall]) -> PlanShape:
    pairs = dependencies(draft, calls)
    tools = {call.tool for call in calls if call.actor == "agent"}
    return PlanShape(len(pairs), len(tools), longest_chain(pairs, len(calls)))


def dependencies(draft: Draft, calls: Sequence[EpisodeCall]) -> set[tuple[int, int]]:
    """(earlier, later) of calls, by their places in the plan."""
    said = [fact.value for goal in draft.goals for fact in goal.known]
    shown = [list(plain_values(call.observation)) for call in calls]
    pairs: set[tuple[int, int]] = set()
    for later, call in enumerate(calls):
        for value in needed_values(draft, call):
            if any(shows(source, value) for source in said):
                continue
            for earlier in range(later):
                if any(shows(source, value) for source in shown[earlier]):
                    pairs.add((earlier, later))
                    break
    return pairs


def longest_chain(pairs: set[tuple[int, int]], num_calls: int) -> int:
    """The pairs are (earlier, later); in O(calls + pairs)."""
    lengths = [1] * num_calls
    for earlier, later in sorted(pairs, key=lambda pair: pair[1]):
        lengths[later] = max(lengths[later], lengths[earlier] + 1)
    return max(lengths, default=0)


def needed_values(draft: Draft, call: EpisodeCall) -> Iterator[Any]:
    """What a call is told and its caller has to know: not how long to wait."""
    lengths = {(g.awaited.wait.tool, g.awaited.minutes) for g in draft.goals if g.awaited}
    for name, value in call.arguments.items():
        if (call.tool, name) not in lengths:
            yield from plain_values(value)


def shows(source: Any, value: Any) -> bool:
    """The same value, or a text that holds it, such as a moment and its date."""
    if source == value:
        return True
    return isinstance(source, str) and isinstance(value, str) and value != "" and value in source
