"""What the gate `personal_data` finds of personal lines, and which honest ones it takes for such.

    python -m benchmarks.bench_personal_data [--show]

The files of `personal_data/` hold a line each that has personal data, or has none. Odd lines were
there to choose the rules on; even ones are reported alone. Numbers are invented: they have the form
and the check digits of their kind. `--show` prints the mistakes, of the odd lines alone.
"""

import argparse
from pathlib import Path

from benchmarks.measured import show
from synth.render.intervals import wilson
from synth.rephrasing.writing.personal_data import personal_data

FOLDER = Path(__file__).with_name("personal_data")


def lines_of(name: str, half: int) -> list[str]:
    """`half`: 0 for the lines that rules were chosen on, 1 for those that are reported."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[half::2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--show", action="store_true", help="print mistakes of the odd lines")
    given = parser.parse_args()
    for half, called in enumerate(("chosen on", "reported")):
        for name in ("personal", "honest"):
            found = [(line, personal_data(line)) for line in lines_of(name, half)]
            hits = sum(kind is not None for _, kind in found)
            low, high = wilson(hits, len(found))
            interval = [round(low, 3), round(high, 3)]
            show({"lines": name, "half": called, "found": hits, "of": len(found), "in": interval})
            if given.show and not half:
                for line, kind in found:
                    if (kind is None) == (name == "personal"):
                        print(name, kind, line)


if __name__ == "__main__":
    main()
