"""Initial states: the domain's seed, grown or as it is, and a short seeded history of its own write
tools.

What the tools themselves brought about is consistent, which a state edited from outside need not
be; and two tasks on the same tool start from different rows, amounts and statuses.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from synth.rubrics.built_in import net_changes
from synth.tasks.goals.domain_tools import DomainTool
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.growth.grown_seed import GROWN, GrownSeed
from tool_specs.validation.drawing import draw_success

MAX_HISTORY = 6
"""Calls that the seed is taken on by, at most."""

TRIES = 24
"""Draws for one call before it is left out."""

StatePatch = dict[str, dict[str, Any]]
"""Entity -> key -> row, or null for a row of the seed that is gone; `GROWN` -> the grown
seed that it is a patch on."""


def seeded_state(
    domain: Domain,
    tools: Mapping[str, DomainTool],
    rng: Random,
    grown: GrownSeed | None = None,
) -> StatePatch:
    """A patch on the seed, grown or not, that calls of the domain's write tools lead to; may be
    empty."""
    patch: StatePatch = {}
    if grown is not None:
        patch[GROWN] = grown.named(domain.start(grown))
    timeless = domain.without_durations()  # an episode starts at its now
    environment = DomainEnvironment.of(timeless, patch)
    writes = [name for name, tool in sorted(tools.items()) if not tool.read_only]
    diffs: list[dict[str, Any]] = []
    for _ in range(rng.randint(1, MAX_HISTORY) if writes else 0):
        name = rng.choice(writes)
        drawn = draw_success(environment, name, rng, tries=TRIES)
        if drawn is not None and not policy_violations(environment, name, drawn.arguments):
            environment = drawn.environment
            diffs += [_of_nobody(change) for change in drawn.result.all_changes]
    for change in net_changes(diffs):
        row = environment.get(change["entity"], change["id"])
        patch.setdefault(change["entity"], {})[change["id"]] = dict(row) if row else None
    return patch


def _of_nobody(change: dict[str, Any]) -> dict[str, Any]:
    """What jobs changed at once is part of the state like all the rest."""
    return {name: value for name, value in change.items() if name not in ("job", "at")}
