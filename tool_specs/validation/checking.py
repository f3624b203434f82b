"""Validates a whole domain by running it: its tools as `validate` does, its policy rules
and its jobs."""

from dataclasses import dataclass

from tool_specs.domains.domain import Domain
from tool_specs.validation.fuzzing import ToolReport
from tool_specs.validation.job_trials import job_trial
from tool_specs.validation.rules import RuleTrial, rule_trials
from tool_specs.validation.validate import together, validated


@dataclass
class DomainReport:
    domain: str
    tools: dict[str, ToolReport]
    rules: dict[str, RuleTrial]
    """Policy rules that code checks, by id."""
    jobs: dict[str, tuple[str, ...]]
    """What is wrong with each job."""
    job_faults: list[str]
    """What went wrong while time passed between calls: the first of it."""

    @property
    def problems(self) -> list[str]:
        """What a person must fix, empty for a valid domain."""
        found = [f"tools[{t.name}]: {d.words}" for t in self.tools.values() for d in t.defects]
        found += [
            f"policy[{rule}]: {trial.problem}"
            for rule, trial in self.rules.items()
            if trial.fault
            or not trial.broken  # a rule that a person writes may close a tool altogether
        ]
        found += [f"jobs: {words}" for words in self.job_faults]
        found += [f"jobs[{job}].{words}" for job, all_ in self.jobs.items() for words in all_]
        return found


def check_domain(domain: Domain, *, seed: int = 0) -> DomainReport:
    """The calls, seeds and states by which `synth domain write` accepts a tool or a rule.
    Deterministic by seed."""
    tools = {name: validated(domain, p, seed=seed) for name, p in domain.programs.items()}
    all_ = together(domain, list(tools), seed=seed)
    for name, report in all_.tools.items():
        for defect in report.defects:
            tools[name].defect(*defect)
    faults = list(all_.job_faults)
    jobs = {job.spec.name: job_trial(domain, job.spec.name).problems for job in domain.jobs}
    return DomainReport(domain.name, tools, rule_trials(domain, seed=seed), jobs, faults[:4])
