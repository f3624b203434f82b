"""Policy rules tried on calls: each must be breakable and keepable by calls that succeed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from records.seeds import rng_of
from tool_specs.domains.domain import CheckedRule, Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.execution.programs import Entities, Problems, Program, compile_rule
from tool_specs.language.domain_file import PolicyRule
from tool_specs.language.expressions import Access, Name, Node, parse, walk
from tool_specs.validation.drawing import draw_arguments
from tool_specs.validation.fuzzing import EPISODE
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

    @property
    def problem(self) -> str | None:
        """What is wrong, for the author to mend."""
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
    # the number stands for the id, which two rules of an answer may share
    numbered = tuple(
        replace(rule, spec=rule.spec.model_copy(update={"id": str(number)}))
        for number, rule in rules.items()
    )
    around = replace(domain, rules={tool: numbered})
    names = sorted(domain.programs)
    trees = [parse(rule.spec.forbids) for rule in rules.values()]
    maker = StateMaker(domain, domain.programs[tool], rng, trees)
    asked = _arguments_in(trees, domain.programs[tool])
    calls = 0
    while calls < MAX_CALLS and any(trials[number].problem for number in rules):
        environment = DomainEnvironment.of(around)
        for _ in range(EPISODE):
            calls += 1
            name = tool if rng.random() < OWN_SHARE else rng.choice(names)
            arguments = draw_arguments(environment, name, rng)
            if arguments is None:
                continue
            if name == tool and asked and calls > PLAIN_CALLS:
                arguments = maker.with_near_argument(environment, arguments, rng.choice(asked))
            violated = policy_violations(environment, name, arguments)
            if environment.call(name, arguments).is_error or name != tool:
                continue
            for number in rules:
                trials[number].broken += str(number) in violated
                trials[number].kept += str(number) not in violated


def _arguments_in(trees: Sequence[Node], program: Program) -> list[str]:
    """Parameters of the tool that the expressions look at."""
    read = {
        node.field
        for tree in trees
        for node in walk(tree)
        if isinstance(node, Access) and node.base == Name("args")
    }
    return [name for name in program.spec.params if name in read]
