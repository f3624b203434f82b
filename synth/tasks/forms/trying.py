"""A call that is tried in the state that a goal starts from."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Fact, Step
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations


class TriedCall(NamedTuple):
    step: Step
    result: CallResult
    after: DomainEnvironment


def tried(
    builder: Builder,
    tool: DomainTool,
    arguments: dict[str, Any],
    before: DomainEnvironment | None = None,
) -> TriedCall | None:
    """The call, if it succeeds within the policy and, where the tool changes something, brings
    about something new. `before`: the state, by default the builder's."""
    before = before or builder.environment
    if policy_violations(before, tool.name, arguments):
        return None
    after = before.snapshot()
    result = after.call(tool.name, arguments)
    if result.is_error or (not tool.read_only and not builder.is_new(result)):
        return None
    return TriedCall(Step(tool=tool.name, arguments=arguments), result, after)


def without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != name}


def told_of(facts: Iterable[Fact]) -> str:
    """` (course subject crafts, seats 8)`, to be put behind what is wanted; empty without facts."""
    yes_or_no = {True: "yes", False: "no"}
    told = [
        f"{f.label} {yes_or_no[f.value] if isinstance(f.value, bool) else f.value}" for f in facts
    ]
    return f" ({', '.join(dict.fromkeys(told))})" if told else ""
