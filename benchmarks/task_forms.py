"""How many drafts come out in each form of goals, and one task of each.

    python -m benchmarks.task_forms [--per-domain 20] [--taxonomy 30] [--show]

Makes tasks with the default shares over the built-in domains and some of the taxonomy and
prints the goals by form, what was dropped and why, and tasks in a second of one process beside
those of plain goals. With --show it prints a task of each form in place of that: what is wished
for, what it could be taken for, what the user knows, the plan, and what was proved.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from records.digest import digest
from synth.tasks.composing import Complexity, DomainTasks
from synth.tasks.forms.forms import ALL_PLAIN, FormShares
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Draft, Goal, GoalForm
from synth.tasks.goals.variants import VariantShares
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files

SHARES = Complexity(0.3, 0.4, 0.3)
"""As tasks have it by default."""

NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))

SHOWN: Sequence[GoalForm] = (
    "chosen",
    "for_each",
    "conditional",
    "fallback",
    "corrected",
    "traded",
)


def worlds(taxonomy: int) -> list[Domain]:
    names = sorted(taxonomy_files())
    drawn = names[:: max(1, len(names) // taxonomy)][:taxonomy] if taxonomy else []
    return [*load_domains(), *load_taxonomy(drawn)]


def made(
    domains: Sequence[Domain], per_domain: int, forms: FormShares
) -> Iterator[tuple[Domain, Draft | str]]:
    """Tasks and the reasons of those that were dropped; every second agent lacks some tools."""
    for domain in domains:
        names = [tool.name for tool in domain.tools]
        for i in range(per_domain):
            lacking = names[i % 4 :: 4] if i % 2 else []
            tasks = DomainTasks(domain, set(names) - set(lacking), lacking=lacking, forms=forms)
            item = digest("form", domain.file.domain, i)
            try:
                yield domain, tasks.make(item, shares=SHARES, disclosure="mixed")[1]
            except UnprovedError as error:
                yield domain, error.reason


def count(domains: Sequence[Domain], per_domain: int, forms: FormShares) -> Iterator[str]:
    began = time.perf_counter()
    found = [draft for _, draft in made(domains, per_domain, forms)]
    seconds = time.perf_counter() - began
    drafts = [draft for draft in found if isinstance(draft, Draft)]
    goals = Counter(goal.form for goal in chain.from_iterable(d.goals for d in drafts))
    with_form = Counter(form for d in drafts for form in {goal.form for goal in d.goals})
    yield f"{len(drafts)} tasks of {len(found)}, {len(found) / seconds:.1f} tried in a second"
    for form, number in goals.most_common():
        share = 1000 * with_form[form] / len(found)
        yield f"  {form}: {number} goals, in {share:.0f} of 1,000 drafts"
    for reason, number in Counter(d for d in found if isinstance(d, str)).most_common():
        yield f"  dropped as {reason}: {number}"


def one_of(domains: Sequence[Domain], form: GoalForm) -> Iterator[str]:
    """The first task that ends with a goal of the form."""
    forms = FormShares.model_validate(ALL_PLAIN.model_dump() | {form: 0.8})
    for domain in domains:
        tasks = DomainTasks(
            domain,
            tools_of(domain),
            forms=forms,
            variants=NORMAL.model_copy(update={"against_policy": float(form == "traded")}),
        )
        for i in range(4):
            try:
                _, draft, _ = tasks.make(digest("show", i), shares=SHARES, disclosure="at_once")
            except UnprovedError:
                continue
            if draft.goals[-1].form == form:
                yield from shown(domain, draft, draft.goals[-1])
                return


def shown(domain: Domain, draft: Draft, goal: Goal) -> Iterator[str]:
    yield f"{goal.form} ({domain.title})"
    yield f"  wish: {goal.wish}"
    yield from (f"  not: {text}" for text in goal.misreadings)
    yield f"  known: {', '.join(f'{fact.label} {fact.value}' for fact in goal.known)}"
    yield from (f"  plan: {step.tool} {step.arguments}" for step in goal.steps)
    yield f"  proved: {draft.proved}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--per-domain", type=int, default=20)
    parser.add_argument("--taxonomy", type=int, default=30, help="domains of it")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    domains = worlds(options.taxonomy)
    if options.show:
        for form in SHOWN:
            print("\n".join(one_of(domains, form)))
        return
    for title, forms in (("default", FormShares()), ("plain", ALL_PLAIN)):
        print(f"{title}: " + "\n".join(count(domains, options.per_domain, forms)))


if __name__ == "__main__":
    main()
