"""Validates a whole domain by running it: its tools as `validate` does, and its policy rules."""

from dataclasses import dataclass

from tool_specs.domains.domain import Domain
from tool_specs.validation.fuzzing import ToolReport
from tool_specs.validation.rules import RuleTrial, rule_trials
from tool_specs.validation.validate import clashes, validated


@dataclass
class DomainReport:
    domain: str
    tools: dict[str, ToolReport]
    rules: dict[str, RuleTrial]
    """Policy rules that code checks, by id."""

    @property
    def problems(self) -> list[str]:
        """What a person must fix, empty for a valid domain."""
        found = [f"tools[{t.name}]: {d.words}" for t in self.tools.values() for d in t.defects]
        found += [
            f"policy[{rule}]: {trial.problem}"
            for rule, trial in self.rules.items()
            if not trial.broken  # a rule that a person writes may close a tool altogether
        ]
        return found


def check_domain(domain: Domain, *, seed: int = 0) -> DomainReport:
    """The calls, seeds and states by which `synth domain write` accepts a tool or a rule.
    Deterministic by seed."""
    tools = {name: validated(domain, p, seed=seed) for name, p in domain.programs.items()}
    for name, defects in clashes(domain, list(tools), seed=seed).items():
        for defect in defects:
            tools[name].defect(*defect)
    return DomainReport(domain.name, tools, rule_trials(domain, seed=seed))
