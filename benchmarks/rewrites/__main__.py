"""What the checks of rewrites find in texts by other minds, and what they take for a change.

    python -m benchmarks.rewrites [tuning|reporting] [--show]
    python -m benchmarks.rewrites reporting --judge FILE --work FOLDER [--honest 160]

Parts are measured one by one and without repair, so that replacing a part by its source helps
nobody. `--show` prints what is missed and mistaken, of the tuning half alone. FILE is TOML with the
settings of the judge's role, which is asked about every changed part and about some faithful ones;
its answers are kept in FOLDER.
"""

import argparse
import asyncio
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measured import show
from benchmarks.rewrites import EXACT, RewrittenPart, texts_of
from records.digest import digest
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.render.intervals import wilson
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.fidelity.checks import asks_judge, fidelity_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.part_judge import PartToJudge, judged_parts
from synth.rephrasing.writing.instructions import instructions


def hard_reasons(part: RewrittenPart) -> list[str]:
    """Kinds of what code finds exact and wrong."""
    faults = exact_faults(part.source, part.rewrite)
    return list(dict.fromkeys(fault.kind for fault in faults))


_GROUPS: dict[str, Callable[[RewrittenPart], bool]] = {
    "honest": lambda part: part.change is None,
    "exact": lambda part: part.change in EXACT,
    "meaning": lambda part: part.change is not None and part.change not in EXACT,
}


def rate(hits: int, of: int) -> dict[str, Any]:
    low, high = wilson(hits, of)
    share = round(hits / of, 4) if of else None
    return {"hits": hits, "of": of, "share": share, "interval": [round(low, 4), round(high, 4)]}


def measure(parts: Sequence[RewrittenPart], half: str) -> list[tuple[RewrittenPart, list[str]]]:
    found = [(part, hard_reasons(part)) for part in parts]
    groups = {name: [one for one in found if is_in(one[0])] for name, is_in in _GROUPS.items()}
    for name, group in groups.items():
        by = Counter(reason for _, reasons in group for reason in reasons)
        hits = sum(bool(reasons) for _, reasons in group)
        show({"half": half, "group": name, **rate(hits, len(group)), "by": dict(by.most_common())})
    for name in ("exact", "meaning"):
        kinds = Counter(part.change for part, _ in groups[name])
        hit = Counter(part.change for part, reasons in groups[name] if reasons)
        print(name, ", ".join(f"{kind} {hit[kind]}/{n}" for kind, n in sorted(kinds.items())))
    return found


def asked_of(parts: Sequence[RewrittenPart], honest: int) -> list[RewrittenPart]:
    """All changed parts and so many faithful ones, mixed by the digests of their texts."""
    faithful = sorted(
        (part for part in parts if part.change is None), key=lambda part: digest(part.rewrite)
    )
    asked = [*(part for part in parts if part.change is not None), *faithful[:honest]]
    return sorted(asked, key=lambda part: digest("order", part.rewrite))


def measure_judge(parts: Sequence[RewrittenPart], half: str, judge: RoleConfig, work: Path) -> None:
    """Shares that the judge finds unfaithful: alone, and of what it is asked about by default."""
    styles = {**instructions("styles"), **instructions("maths")}
    forms = {name: one.text.partition("\n")[0] for name, one in styles.items()}

    async def ask() -> list[str]:
        work.mkdir(parents=True, exist_ok=True)
        async with Gateway({"judge": judge}) as gateway:
            with ShardJournal(work / "answers.sqlite") as journal:
                llm = LLM(gateway, journal, stage="rewrites", invocation_id="rewrites")
                asked = (
                    judged_parts(
                        llm,
                        [PartToJudge(1, part.source, part.rewrite)],
                        form=forms[part.style],
                        item=digest(part),
                        step="judge",
                    )
                    for part in parts
                )
                return [one.verdict for [one] in await asyncio.gather(*asked)]

    found = list(zip(parts, asyncio.run(ask()), strict=True))
    for name, is_in in _GROUPS.items():
        group = [(part, verdict == "unfaithful") for part, verdict in found if is_in(part)]
        for what, hits in (
            ("judge", [bad for _, bad in group]),
            ("chosen", [is_chosen(part) for part, _ in group]),
            ("judge of chosen", [bad and is_chosen(part) for part, bad in group]),
            ("code or judge", [bad or bool(hard_reasons(part)) for part, bad in group]),
        ):
            show({"half": half, "group": name, "by": what, **rate(sum(hits), len(group))})
    kinds = Counter(part.change for part, _ in found if part.change)
    missed = Counter(p.change for p, verdict in found if p.change and verdict == "faithful")
    print(
        "missed by the judge:", ", ".join(f"{k} {missed[k]}/{n}" for k, n in sorted(kinds.items()))
    )


def is_chosen(part: RewrittenPart) -> bool:
    """Whether the default settings ask the judge about it."""
    fidelity = fidelity_of(part.source, part.rewrite, kind=part.kind)
    return asks_judge(fidelity.columns(), FidelityConfig(), key=digest(part.source, part.rewrite))


def tell(found: Iterable[tuple[RewrittenPart, list[str]]]) -> None:
    for part, reasons in found:
        if (part.change is None) == bool(reasons):
            print(
                "MISTAKEN" if reasons else "MISSED", part.document, part.part, part.style, reasons
            )
            print(json.dumps({"source": part.source, "rewrite": part.rewrite, "what": part.what}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("half", choices=("tuning", "reporting"), nargs="?", default="tuning")
    parser.add_argument("--show", action="store_true", help="print what is missed and mistaken")
    parser.add_argument("--judge", type=Path, help="TOML file with the judge's role settings")
    parser.add_argument("--work", type=Path, help="folder that keeps the judge's answers")
    parser.add_argument("--honest", type=int, help="faithful parts for the judge (160)")
    given = parser.parse_args()
    if given.show and given.half == "reporting":
        parser.error("--show is for the tuning half: nobody reads the other one")
    if (given.judge is None) != (given.work is None):
        parser.error("--judge and --work go together")
    if given.honest is not None and given.judge is None:
        parser.error(
            "--honest says how many faithful parts the judge gets: give --judge and --work"
        )
    if given.judge:
        role = RoleConfig.model_validate(tomllib.loads(given.judge.read_text(encoding="utf-8")))
        measure_judge(
            asked_of(texts_of(given.half), given.honest or 160), given.half, role, given.work
        )
        return
    found = measure(texts_of(given.half), given.half)
    if given.show:
        tell(found)


if __name__ == "__main__":
    main()
