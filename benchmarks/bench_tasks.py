"""What making and proving tasks costs, and what the proofs come to.

    python benchmarks/bench_tasks.py [--count 3000]

Makes tasks of the built-in domains, by turns, for agents with all tools or without two of them; no
model is asked. Prints one JSON line: CPU time a task, variants, how many plans the search made
shorter than the one put together wish by wish, nodes it expanded, and why tasks were dropped.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.goals import Draft
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.stage import TaskConfig
from tool_specs.domains.domain import Domain, load_domains


def make(domains: list[Domain], number: int) -> Draft:
    domain = domains[number % len(domains)]
    users = set(domain.file.user_tools)
    names = [tool.name for tool in domain.tools if tool.name not in users]
    lacking = names[number % len(names) :: len(names) // 2][:2] if number % 4 == 0 else []
    tasks = DomainTasks(
        domain,
        set(names) - set(lacking),
        lacking=lacking,
        others=lambda: [other for other in domains if other is not domain],
        own=users,
    )
    config = TaskConfig()
    _, draft, _ = tasks.make(
        digest("bench", number),
        shares=config.shares,
        disclosure="mixed",
        dual_control=config.dual_control,
    )
    return draft


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=3000, help="tasks to make")
    count = parser.parse_args().count
    domains = list(load_domains())
    for number in range(len(domains)):
        make(domains, number)  # what is compiled once is no cost of a task
    drafts: list[Draft] = []
    dropped: Counter[str] = Counter()
    began = time.process_time()
    for number in range(count):
        try:
            drafts.append(make(domains, number))
        except UnprovedError as error:
            dropped[error.reason] += 1
    seconds = time.process_time() - began
    proofs = [draft.proved for draft in drafts]
    nodes = [proof["nodes"] for proof in proofs]
    show(
        {
            "name": "tasks",
            "requested": count,
            "kept": len(drafts),
            "dropped": dict(dropped),
            "cpu_ms_per_task": round(1000 * seconds / count, 2),
            "variants": dict(Counter(draft.variant for draft in drafts).most_common()),
            "in_order": sum(any(goal.after for goal in draft.goals) for draft in drafts),
            "plans": dict(Counter(proof["plan"] for proof in proofs)),
            "shorter_by_search": sum("shorter_by" in proof for proof in proofs),
            "nodes": {"median": statistics.median(nodes), "most": max(nodes)},
            "out_of_reach": dict(
                Counter(p["out_of_reach"]["why"] for p in proofs if "out_of_reach" in p)
            ),
        }
    )


if __name__ == "__main__":
    main()
