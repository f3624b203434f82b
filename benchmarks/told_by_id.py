"""How users name the rows that their tasks are about: by what people know, or by an id.

    python -m benchmarks.told_by_id [DOMAIN ...] [--drafts 8]

Domains by name or pattern, as `synth domain list` shows them; all that have tools by default. Of
each, plain tasks are drafted with all of its tools. Prints how many references to rows are told by
an id and how many look-ups the plans have for a call that changes something, and for how many
kinds of rows no read leads to the id.
"""

import argparse
from collections import Counter

from records.digest import digest
from synth.catalogue.writing.lookups import lacking
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.taxonomy import files_named

SHARES = Complexity(0.3, 0.4, 0.3)
NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))


def count(domain: Domain, drafts: int) -> Counter[str]:
    found = Counter(kinds=len(domain.entities), lacking=len(lacking(domain)))
    tools = tools_of(domain)
    for number in range(drafts):
        tasks = DomainTasks(domain, set(domain.programs), forms=ALL_PLAIN, variants=NORMAL)
        item = digest("told_by_id", domain.name, number)
        try:
            _, draft, _ = tasks.make(item, shares=SHARES, disclosure="mixed")
        except UnprovedError:
            continue
        found["tasks"] += 1
        for goal in draft.goals:
            if goal.tool not in tools:
                continue
            taken = {name for name, p in tools[goal.tool].spec.params.items() if p.ref}
            for param in taken & {fact.param for fact in goal.known}:
                labels = [fact.label for fact in goal.known if fact.param == param]
                found["rows"] += 1
                found["by_id"] += any(label.endswith(" id") for label in labels)
        for step in draft.plan:
            found["reads" if tools[step.tool].read_only else "writes"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("domains", nargs="*", default=["*/*"])
    parser.add_argument("--drafts", type=int, default=8, help="of each domain")
    args = parser.parse_args()
    paths = {name: path for given in args.domains for name, path in files_named(given).items()}
    domains = [d for path in paths.values() if (d := load_domain(path)).tools]
    total = Counter[str]()
    for domain in domains:
        total += count(domain, args.drafts)
    print(f"{len(domains)} domains, {total['kinds']} kinds of rows, {total['tasks']} tasks")
    print(f"no read leads to the id of {total['lacking']} kinds of rows")
    share = total["by_id"] / max(total["rows"], 1)
    print(f"told by an id: {total['by_id']} of {total['rows']} rows that users name ({share:.1%})")
    print(f"look-ups for a call that changes something: {total['reads'] / total['writes']:.2f}")


if __name__ == "__main__":
    main()
