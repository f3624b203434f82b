"""What the checks of rewrites find in texts by other minds, and what they take for a change.

    python -m benchmarks.rewrites [tuning|reporting] [--show]

Parts are measured one by one and without repair, so that replacing a part by its source helps
nobody. `--show` prints what is missed and mistaken, of the tuning half alone.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.measured import show
from benchmarks.rewrites import EXACT, RewrittenPart, texts_of
from synth.render.intervals import wilson
from synth.rephrasing.exact.faults import exact_faults


def hard_reasons(part: RewrittenPart) -> list[str]:
    """Kinds of what code finds exact and wrong."""
    faults = exact_faults(part.source, part.rewrite)
    return list(dict.fromkeys(fault.kind for fault in faults))


def rate(hits: int, of: int) -> dict[str, Any]:
    low, high = wilson(hits, of)
    share = round(hits / of, 4) if of else None
    return {"hits": hits, "of": of, "share": share, "interval": [round(low, 4), round(high, 4)]}


def measure(parts: Sequence[RewrittenPart], half: str) -> list[tuple[RewrittenPart, list[str]]]:
    found = [(part, hard_reasons(part)) for part in parts]
    groups = {
        "honest": [one for one in found if one[0].change is None],
        "exact": [one for one in found if one[0].change in EXACT],
        "meaning": [one for one in found if one[0].change and one[0].change not in EXACT],
    }
    for name, group in groups.items():
        by = Counter(reason for _, reasons in group for reason in reasons)
        hits = sum(bool(reasons) for _, reasons in group)
        show({"half": half, "group": name, **rate(hits, len(group)), "by": dict(by.most_common())})
    for name in ("exact", "meaning"):
        kinds = Counter(part.change for part, _ in groups[name])
        hit = Counter(part.change for part, reasons in groups[name] if reasons)
        print(name, ", ".join(f"{kind} {hit[kind]}/{n}" for kind, n in sorted(kinds.items())))
    return found


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
    given = parser.parse_args()
    if given.show and given.half == "reporting":
        parser.error("--show is for the tuning half: nobody reads the other one")
    found = measure(texts_of(given.half), given.half)
    if given.show:
        tell(found)


if __name__ == "__main__":
    main()
