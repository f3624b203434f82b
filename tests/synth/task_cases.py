"""Proved tasks on the built-in domains, and a way to play a plan and see what the checks see."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from records.digest import digest
from synth.rubrics.built_in import BUILT_IN, Episode, EpisodeCall, PolicyViolation, episode_of
from synth.rubrics.criteria import Rubric
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Draft, Step
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import reference_messages
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations

SHARES = Complexity(0.3, 0.4, 0.3)
PER_DOMAIN = 30


@dataclass(frozen=True)
class Case:
    """A proved task and what it was made of."""

    domain: Domain
    tools: dict[str, DomainTool]
    complexity: str
    draft: Draft
    rubric: Rubric

    def play(
        self, plan: Sequence[Step] | None = None, messages: Sequence[dict[str, Any]] | None = None
    ) -> Episode:
        """What is left of calling `plan` in order: the reference plan unless given."""
        environment = DomainEnvironment.of(self.domain, self.draft.initial_state)
        calls, broken = [], []
        for index, step in enumerate(self.draft.plan if plan is None else plan):
            rules = policy_violations(environment, step.tool, step.arguments)
            broken += [PolicyViolation(rule=rule, call_index=index) for rule in rules]
            result = environment.call(step.tool, step.arguments)
            calls.append(
                EpisodeCall(
                    tool=step.tool,
                    arguments=step.arguments,
                    observation=result.observation,
                    is_error=result.is_error,
                    diff=tuple(result.diff),
                    turn=2 if self.draft.goals[0].could_be else 1,
                )
            )
        words = reference_messages(self.draft) if messages is None else messages
        return episode_of(words, calls, policy_violations=broken)

    def failed(self, episode: Episode) -> set[str]:
        """Criteria that the episode fails."""
        return {i for i, v in BUILT_IN.check_all(self.rubric, episode).items() if not v.passed}

    def environment(self, plan: Sequence[Step] = ()) -> DomainEnvironment:
        """The state after `plan`."""
        environment = DomainEnvironment.of(self.domain, self.draft.initial_state)
        for step in plan:
            environment.call(step.tool, step.arguments)
        return environment


def without(changes: Iterable[Any], free: Collection[tuple[str, str, str]]) -> list[str]:
    """The changes as text, but for the free fields."""

    def rest(change: Any, side: str) -> dict[str, Any]:
        fields = (change[side] or {}).items()
        return {f: v for f, v in fields if (change["entity"], change["id"], f) not in free}

    kept = [[c["op"], c["entity"], c["id"], rest(c, "before"), rest(c, "after")] for c in changes]
    return [json.dumps(change, sort_keys=True) for change in kept]


@cache
def domains() -> tuple[Domain, ...]:
    return tuple(load_domains())


@cache
def cases(per_domain: int = PER_DOMAIN) -> tuple[Case, ...]:
    """Tasks over all built-in domains, about 400 unless fewer will do, which cost less to make;
    each third agent lacks two tools."""
    return tuple(_made(domain, i) for domain in range(len(domains())) for i in range(per_domain))


@cache
def _made(domain: int, i: int) -> Case:
    return case(domains()[domain], i)


def case(domain: Domain, i: int) -> Case:
    names = [tool.name for tool in domain.tools]
    lacking = names[i % len(names) :: len(names) // 2][:2] if i % 3 == 0 else []
    tasks = DomainTasks(
        domain,
        set(names) - set(lacking),
        lacking=lacking,
        others=lambda: [other for other in domains() if other is not domain],
    )
    disclosure = ("at_once", "mixed", "when_asked")[i % 3]
    complexity, draft, proof = tasks.make(
        digest("case", domain.name, i), shares=SHARES, disclosure=disclosure
    )
    return Case(domain, tasks.tools, complexity, draft, proof.rubric)
