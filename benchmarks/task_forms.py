"""How many tasks with structure the worlds give, by form, and one of each.

    python -m benchmarks.task_forms [DOMAIN ...] [--drafts 20] [--show]

Domains by name or pattern, as `synth domain list` shows them; all that have tools by default. For
each form, drafts are made in which every goal is to be of that form (every second one for goals on
second thoughts, which need something to think again about; trades are made of tasks against the
policy and of tasks that lack a tool, by turns). Prints how many tasks were proved, how many of them
hold the form, why the others were dropped, and proved tasks/s beside plain ones. With `--show`, one
task of each form: its wish, what it could be taken for, what the user knows, its plan, what is
asked, and what was proved.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import ADDERS, ALL_PLAIN, FormShares
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.taxonomy import files_named

SHARES = Complexity(0.3, 0.4, 0.3)
NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))


class FormYield(NamedTuple):
    proved: int
    with_form: int
    dropped: Counter[str]
    wall_s: float
    example: tuple[str, Draft] | None


def shares_of(form: str) -> FormShares:
    share = {"plain": 0.0, "corrected": 0.5}.get(form, 1.0)
    wanted = {} if form == "plain" else {form: share}
    return FormShares.model_validate(ALL_PLAIN.model_dump() | wanted)


def _tasks(domain: Domain, names: Sequence[str], form: str, number: int) -> DomainTasks:
    """Trades are made by turns of tasks against the policy and of tasks that lack some tools."""
    variant = ("against_policy", "missing_tool")[number % 2] if form == "traded" else None
    lacking = set(names[number::4][:3]) if variant == "missing_tool" else set[str]()
    variants = NORMAL.model_copy(update={variant: 1.0}) if variant else NORMAL
    return DomainTasks(
        domain, set(names) - lacking, lacking=lacking, forms=shares_of(form), variants=variants
    )


def yield_of(form: str, files: Sequence[Path], drafts: int) -> FormYield:
    proved = with_form = 0
    dropped: Counter[str] = Counter()
    example: tuple[str, Draft] | None = None
    begun = time.monotonic()
    for path in files:
        domain = load_domain(path)
        names = list(domain.programs)
        for i in range(drafts):
            tasks = _tasks(domain, names, form, i)
            item = digest("task_forms", form, domain.name, i)
            try:
                _, draft, _ = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError as error:
                dropped[error.reason] += 1
                continue
            proved += 1
            if any(goal.form == form for goal in draft.goals):
                with_form += 1
                if example is None or len(draft.goals) < len(example[1].goals):
                    example = (domain.name, draft)
    return FormYield(proved, with_form, dropped, time.monotonic() - begun, example)


def shown(form: str, domain: str, draft: Draft) -> str:
    """Markdown."""
    lines = [f"### `{form}`, of {domain}", ""]
    for goal in draft.goals:
        lines.append(f"- {goal.form}: {goal.sentence}")
        lines += [f"  - not: {words}" for words in goal.misreadings]
        told = ", ".join(f"{f.label} {f.value} ({f.when})" for f in goal.known)
        lines.append(f"  - the user knows: {told or 'nothing'}")
        lines += [f"  - wants to hear: {asked.label}" for asked in goal.asks]
        lines += [
            f"  - `{step.tool}({json.dumps(step.arguments, ensure_ascii=False)})`"
            for step in goal.steps
        ]
    proved = json.dumps(draft.proved, ensure_ascii=False)
    return "\n".join([*lines, f"- proved: `{proved}`", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("domains", nargs="*", default=["*/*"])
    parser.add_argument("--drafts", type=int, default=20, help="in each domain and form")
    parser.add_argument("--show", action="store_true", help="print one task of each form")
    args = parser.parse_args()
    paths = {name: path for given in args.domains for name, path in files_named(given).items()}
    files = [path for path in paths.values() if load_domain(path).tools]
    print(f"{len(files)} domains, {args.drafts} drafts of each form in each")
    print("| form | proved | with the form | dropped | tasks/s |\n|---|---|---|---|---|")
    examples = []
    for form in ("plain", *ADDERS, "traded"):
        found = yield_of(form, files, args.drafts)
        why = ", ".join(f"{reason} {n}" for reason, n in found.dropped.most_common(4)) or "0"
        rate = found.proved / found.wall_s
        print(f"| {form} | {found.proved} | {found.with_form} | {why} | {rate:.0f} |", flush=True)
        if found.example and form != "plain":
            examples.append(shown(form, *found.example))
    if args.show:
        print("", *examples, sep="\n")


if __name__ == "__main__":
    main()
