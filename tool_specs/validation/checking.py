"""Validates a whole domain by running it: its tools as `validate` does, its policy rules
and its jobs."""

from dataclasses import dataclass

from records.seeds import rng_of
from tool_specs.domains.domain import Domain
from tool_specs.validation.fuzzing import Fuzzer, ToolReport
from tool_specs.validation.job_trials import job_trial
from tool_specs.validation.validate import conclude

MAX_CALLS = 20_000
"""Calls of one validation. A domain that needs more has an error that hardly ever happens."""

MORE_CALLS = 3_000
"""Calls of one tool that look for what a mutant does differently."""


@dataclass
class DomainReport:
    domain: str
    calls: int
    tools: dict[str, ToolReport]
    rules: dict[str, bool]
    """Policy rules that code checks: whether a call that would have succeeded violated them."""
    jobs: dict[str, tuple[str, ...]]
    """What is wrong with each job."""
    job_faults: list[str]
    """What went wrong while time passed between calls: the first of it."""

    @property
    def problems(self) -> list[str]:
        """What a person must fix, empty for a valid domain."""
        found = [f"tools[{t.name}]: {d.words}" for t in self.tools.values() for d in t.defects]
        found += [
            f"policy[{rule}].forbids: no successful call breached it in {self.calls} calls"
            for rule, violated in self.rules.items()
            if not violated
        ]
        found += [f"jobs: {words}" for words in self.job_faults]
        found += [f"jobs[{job}].{words}" for job, all_ in self.jobs.items() for words in all_]
        return found


def check_domain(domain: Domain, *, seed: int = 0, max_calls: int = MAX_CALLS) -> DomainReport:
    """Fuzz until everything has been seen, or `max_calls` are spent. Deterministic by seed."""
    fuzzer = Fuzzer(domain, rng_of(domain.name, "check_domain", seed), list(domain.programs))
    fuzzer.run(max_calls)
    for report in fuzzer.tools.values():
        conclude(fuzzer, report, MORE_CALLS)
    jobs = {job.spec.name: job_trial(domain, job.spec.name).problems for job in domain.jobs}
    return DomainReport(
        domain.name, fuzzer.calls, fuzzer.tools, fuzzer.rules, jobs, list(fuzzer.job_faults)[:4]
    )
