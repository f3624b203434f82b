"""Policy rules tried on calls: each must be breakable and keepable by calls that succeed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from records.errors import ItemError
from records.seeds import rng_of
from tool_specs.domains.domain import CheckedRule, Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.execution.programs import Entities, Problems, Program, compile_rule
from tool_specs.language.domain_file import PolicyRule
from tool_specs.language.expressions import Access, Name, Node, parse, walk
from tool_specs.language.values import EvaluationError
from tool_specs.validation.drawing import draw_arguments
from tool_specs.validation.fuzzing import EPISODE, IDLE, IDLE_MINUTES
from tool_specs.validation.states.made_states import StateMaker

MAX_CALLS = 2_400
"""Calls that look for a breach and for a call that keeps to the rule, of the rules of one tool."""

OWN_SHARE = 0.5
"""Share of the calls that go to the rules' tool; the others move the environment."""


PLAIN_CALLS = 800
"""Of these: drawn as fuzzing draws them. Later ones have values near the constants of the rules."""


@dataclass
class RuleTrial:
    """What calls of the rule's tool that succeeded have shown."""

    broken: int = 0
    kept: int = 0
    fault: str | None = None
    """Why the condition could not be evaluated on one of them."""

    @property
    def problem(self) -> str | None:
        """What is wrong, for the author to mend."""
        if self.fault is not None:
            return f"cannot be evaluated on a call that succeeds: {self.fault}"
        if not self.broken and not self.kept:
            return "no call of the tool was found that succeeds"
        if not self.broken:
            return (
                f"forbids: held in none of {self.kept} calls that succeeded: the tool refuses such "
                "calls itself, or no row is like that"
            )
        if not self.kept:
            return f"forbids: held in all of {self.broken} calls that succeeded; none keeps it"
        return None


def rule_problems(
    domain: Domain, rules: Sequence[PolicyRule], *, seed: int = 0
) -> list[tuple[str, ...]]:
    """What is wrong with each rule, in their order; nothing of a good one.

    The domain's own policy does not matter. Deterministic by seed.
    """
    found: list[tuple[str, ...]] = []
    checked: dict[int, CheckedRule] = {}
    for number, rule in enumerate(rules):
        problems = Problems()
        compiled = _compiled(domain, rule, problems)
        found.append(tuple(problems.found))
        if compiled is not None and not problems.found:
            checked[number] = compiled
    for number, trial in _tried(domain, checked, seed).items():
        if trial.problem is not None:
            found[number] = (trial.problem,)
    return found


def rule_trials(domain: Domain, *, seed: int = 0) -> dict[str, RuleTrial]:
    """Of the domain's own rules that code checks, by id: the calls of `rule_problems`."""
    rules = [rule for rules in domain.rules.values() for rule in rules]
    trials = _tried(domain, dict(enumerate(rules)), seed)
    return {rule.spec.id: trials[number] for number, rule in enumerate(rules)}


def _compiled(domain: Domain, rule: PolicyRule, problems: Problems) -> CheckedRule | None:
    tools = {tool.name: tool for tool in domain.tools}
    if rule.tool not in tools or rule.tool in domain.file.user_tools:
        known = ", ".join(name for name in tools if name not in domain.file.user_tools)
        problems.add("tool", f"{rule.tool!r} is no tool of the agent; known: {known}")
        return None
    entities = Entities.of(domain.file)
    run = compile_rule(rule.forbids, tools[rule.tool], entities, "forbids", problems)
    return CheckedRule(rule, run)


def _tried(domain: Domain, rules: dict[int, CheckedRule], seed: int) -> dict[int, RuleTrial]:
    """The rules of each tool alone: no rule of another one, good or bad, changes the calls."""
    by_tool: dict[str, dict[int, CheckedRule]] = {}
    for number, rule in rules.items():
        by_tool.setdefault(str(rule.spec.tool), {})[number] = rule
    trials = {number: RuleTrial() for number in rules}
    for tool, own in by_tool.items():
        _try_tool(domain, tool, own, trials, rng_of(domain.name, f"rules:{tool}", seed))
    return trials


def _try_tool(
    domain: Domain,
    tool: str,
    rules: dict[int, CheckedRule],
    trials: dict[int, RuleTrial],
    rng: Random,
) -> None:
    alone = {number: replace(domain, rules={tool: (rule,)}) for number, rule in rules.items()}
    names = sorted(domain.programs)
    trees = [parse(rule.spec.forbids) for rule in rules.values()]
    maker = StateMaker(domain, domain.programs[tool], rng, trees)
    asked = _arguments_in(trees, domain.programs[tool])
    calls = 0
    while calls < MAX_CALLS and any(_is_open(trials[number]) for number in rules):
        environment = DomainEnvironment.of(domain)
        for _ in range(EPISODE):
            calls += 1
            environment = _rested(environment, rng)
            name = tool if rng.random() < OWN_SHARE else rng.choice(names)
            arguments = draw_arguments(environment, name, rng)
            if arguments is None:
                continue
            if name == tool and asked and calls > PLAIN_CALLS:
                arguments = maker.with_near_argument(environment, arguments, rng.choice(asked))
            before = environment.state.snapshot()
            if environment.call(name, arguments).is_error or name != tool:
                continue
            for number, around in alone.items():
                _judge(trials[number], DomainEnvironment(around, before), tool, arguments)


def _is_open(trial: RuleTrial) -> bool:
    """Whether more calls may show something."""
    return trial.fault is None and not (trial.broken and trial.kept)


def _judge(
    trial: RuleTrial, before: DomainEnvironment, tool: str, arguments: dict[str, Any]
) -> None:
    """Count a call that succeeds; `before` has the rule alone."""
    try:
        violated = policy_violations(before, tool, arguments)
    except ItemError as error:
        trial.fault = error.detail.partition(".forbids: ")[2]
        return
    trial.broken += bool(violated)
    trial.kept += not violated


def _rested(environment: DomainEnvironment, rng: Random) -> DomainEnvironment:
    """Now and then some time later, in a domain that has time."""
    if environment.domain.has_time and rng.random() < IDLE:
        try:
            environment.pass_time(60 * rng.choice(IDLE_MINUTES))
        except EvaluationError:  # jobs without end, which their own trial tells
            return DomainEnvironment.of(environment.domain)
    return environment


def _arguments_in(trees: Sequence[Node], program: Program) -> list[str]:
    """Parameters of the tool that the expressions look at."""
    read = {
        node.field
        for tree in trees
        for node in walk(tree)
        if isinstance(node, Access) and node.base == Name("args")
    }
    return [name for name in program.spec.params if name in read]
