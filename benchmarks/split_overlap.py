"""What training tasks and held-out ones have in common: the values that their calls bring along.

    python -m benchmarks.split_overlap [DOMAIN ...] [--tasks 60]

Domains by name or pattern, as `synth domain list` shows them; the twelve built-in ones by default.
Of each, tasks are drawn twice: with new values that belong to the split of the task, as a run draws
them, and with any. A task is held out by the tools of its plan, one combination in five, so that
there are enough of them. Prints by kind of value how many of the held-out tasks' stand in a
training task of the same domain, too, and how many tasks come to a proof in how many seconds.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmarks.measured import machine
from records.digest import digest
from records.tables.splits import Split, own_split
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.arguments import MANY_STEPS, PHRASES
from synth.tasks.goals.goals import Draft
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.taxonomy import files_named
from tool_specs.language.domain_file import ParamSpec
from tool_specs.validation.drawing import examples_in

HELD_OUT = 0.2
SHARES = Complexity(0.3, 0.4, 0.3)
KINDS = (
    "row of the seed",
    "one of a list",
    "day or time",
    "value of the state",
    "one of few, or an example",
    "new value",
)


def split_of(draft: Draft) -> Split:
    tools = sorted(step.tool for step in draft.plan)
    return own_split("task", digest("combination", tools), heldout_share=HELD_OUT)


def values_of(domain: Domain, draft: Draft) -> Iterator[tuple[str, Any]]:
    """(kind, value) of the goals' arguments."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    stand = {
        str(part)
        for entity in domain.entities
        for row in environment.rows(entity)
        for value in row.values()
        for part in (value if isinstance(value, list) else [value])
    }
    for goal in draft.goals:
        if goal.tool not in domain.programs:
            continue
        for name, value in goal.arguments.items():
            param = domain.programs[goal.tool].spec.params[name]
            if param.ref:
                yield KINDS[0], str(value)
            elif param.type in ("enum", "boolean"):
                yield KINDS[1], str(value)
            elif param.type in ("date", "datetime"):
                yield KINDS[2], str(value)
            elif param.type in ("integer", "number", "string"):
                is_few = param.type != "string" and _is_one_of_few(param)
                example = value in (*examples_in(param.description or "").texts, *PHRASES)
                kind = 3 if str(value) in stand else 4 if is_few or example else 5
                yield KINDS[kind], str(value)


def _is_one_of_few(param: ParamSpec) -> bool:
    """Whether the bounds leave less than twice the values from which on numbers have a split: those
    under 20 come in halves."""
    if param.min is None or param.max is None:
        return False
    return param.max - param.min < 2 * MANY_STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("domains", nargs="*", default=["builtin/*"])
    parser.add_argument("--tasks", type=int, default=60, help="of each domain")
    args = parser.parse_args()
    paths = {name: path for given in args.domains for name, path in files_named(given).items()}
    domains = [d for path in paths.values() if (d := load_domain(path)).tools]
    print("| drawn | tasks | held out | " + " | ".join(KINDS) + " | s a task |")
    print("|---" * (len(KINDS) + 4) + "|")
    for own in (True, False):
        seen: dict[tuple[str, str, bool], set[str]] = defaultdict(set)
        proved = held = 0
        begun = time.process_time()
        for domain in domains:
            tasks = DomainTasks(domain, set(domain.programs), forms=ALL_PLAIN)
            for number in range(args.tasks):
                item = digest("overlap", domain.name, number)
                try:
                    _, draft, _ = tasks.make(
                        item,
                        shares=SHARES,
                        disclosure="mixed",
                        split="train" if own else None,
                        split_of=split_of if own else None,
                    )
                except UnprovedError:
                    continue
                is_held = split_of(draft) != "train"
                proved, held = proved + 1, held + is_held
                for kind, value in values_of(domain, draft):
                    seen[domain.name, kind, is_held].add(value)
        each = (time.process_time() - begun) / (len(domains) * args.tasks)
        shown = []
        for kind in KINDS:
            ours = {(name, v) for (name, k, h), vs in seen.items() if k == kind and h for v in vs}
            theirs = {
                (name, v) for (name, k, h), vs in seen.items() if k == kind and not h for v in vs
            }
            shown.append(f"{len(ours & theirs)} of {len(ours)}")
        how = "by split" if own else "any"
        print(f"| {how} | {proved} | {held} | {' | '.join(shown)} | {each:.3f} |", flush=True)
    print(machine())


if __name__ == "__main__":
    main()
