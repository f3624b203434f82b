"""What joint domains give: tasks whose goals lie in several of the parts, and about one person.

    python -m benchmarks.joint_domains NAME:ENTITY NAME:ENTITY [...] [--tasks 40]

Every pair of the given domains is joined, as `synth domain join` does, and tasks of two to four
goals are drawn of it. A task is about one person where each row of people that its goals name is
that person's in its part.
"""

import argparse
import time
from itertools import combinations

from benchmarks.measured import machine
from records.digest import digest
from records.errors import ConfigError
from synth.tasks.composing import Complexity, DomainTasks
from synth.tasks.goals.goals import Draft
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.joining import JoinedPart, joined
from tool_specs.domains.taxonomy import load_taxonomy

SHARES = Complexity(0.0, 0.5, 0.5)


def people_of(domain: Domain, draft: Draft, a: JoinedPart, b: JoinedPart) -> set[str]:
    """Keys, in the first part, of the people whom the plan's calls name; a person of the second
    part whom the first does not have counts under its own key."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    link = a.domain.file.entities[a.person].key
    found = set()
    for step in draft.plan:
        params = domain.programs[step.tool].spec.params
        for name, value in step.arguments.items():
            if (ref := params[name].ref) == a.person:
                found.add(value)
            elif ref == b.person:
                row = environment.get(b.person, value) or {}
                found.add(row.get(link) or value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="+", metavar="NAME:ENTITY")
    parser.add_argument("--tasks", type=int, default=40)
    given = parser.parse_args()
    parts = []
    for text in given.parts:
        name, _, person = text.rpartition(":")
        [domain] = load_taxonomy([name])
        parts.append(JoinedPart(domain, person))
    print("| pair | proved | goals in both parts | of these about one person | s a task |")
    print("|---|---|---|---|---|")
    for a, b in combinations(parts, 2):
        name = f"{a.domain.name}_and_{b.domain.name}"
        try:
            domain = Domain.of(joined(name, [a, b]), origin=name)
        except ConfigError as error:
            print(f"| {name} | not joined: {str(error).splitlines()[0]} | | | |")
            continue
        tasks = DomainTasks(domain, list(domain.programs))
        proved = both = one = 0
        begun = time.process_time()
        for number in range(given.tasks):
            item = digest("joint", name, number)
            try:
                _, draft, _ = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError:
                continue
            proved += 1
            tools = {goal.tool for goal in draft.goals}
            if tools & a.domain.programs.keys() and tools & b.domain.programs.keys():
                both += 1
                one += len(people_of(domain, draft, a, b)) <= 1
        each = (time.process_time() - begun) / given.tasks
        print(f"| {name} | {proved} of {given.tasks} | {both} | {one} | {each:.3f} |", flush=True)
    print(machine())


if __name__ == "__main__":
    main()
