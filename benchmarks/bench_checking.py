"""How fast rewrites are checked: everything that code reads of a part and its rewrite, one core.

    python -m benchmarks.bench_checking [--repeats 3] [--profile]

Over the faithful parts of `rewrites/tuning.txt`, in MB of source text a second of processor time.
Each step is timed by itself, and all of them together in turn, as a run calls them. What was read
of texts is forgotten before each pass; stems of words stay, as they do over a run. `--profile`
prints the functions that most of the time goes to.
"""

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from functools import _lru_cache_wrapper

from benchmarks.measured import show, spread
from benchmarks.rewrites import RewrittenPart, texts_of
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.fidelity.checks import fidelity_of
from synth.rephrasing.fidelity.language import language_of
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.gates import gates_of

GATES = gates_of(RephraseConfig().gates)

MOST_TEXTS = 512
"""Entries of the largest cache whose keys are texts or parts of one."""

Step = Callable[[RewrittenPart], object]


def _told(part: RewrittenPart) -> object:
    return language_of(part.source), language_of(part.rewrite)


def _gated(part: RewrittenPart) -> object:
    return [gate(part.rewrite) for _, gate in GATES]


STEPS: dict[str, Step] = {
    "exact_faults": lambda part: exact_faults(part.source, part.rewrite),
    "fidelity_of": lambda part: fidelity_of(part.source, part.rewrite, kind=part.kind),
    "language_of": _told,
    "gates": _gated,
}


def _everything(part: RewrittenPart) -> object:
    return [step(part) for step in STEPS.values()]


def forget_texts() -> None:
    """Empties what keeps readings of texts; tables of words, which are larger, stay."""
    for name, module in list(sys.modules.items()):
        for function in vars(module).values() if name.startswith("synth.rephrasing") else ():
            if isinstance(function, _lru_cache_wrapper):
                size = function.cache_parameters()["maxsize"]
                if size is not None and size <= MOST_TEXTS:
                    function.cache_clear()


def seconds(step: Step, parts: list[RewrittenPart]) -> float:
    forget_texts()
    begun = time.process_time()
    for part in parts:
        step(part)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    parts = [part for part in texts_of("tuning") if part.change is None]
    mb = sum(len(part.source.encode()) for part in parts) / 1e6
    _everything(parts[0])  # models and tables are loaded once in a run
    took = {
        name: [seconds(step, parts) for _ in range(given.repeats)]
        for name, step in (*STEPS.items(), ("together", _everything))
    }
    total = min(took["together"])
    for name, own in took.items():
        speed = spread([mb / one for one in own], 3)
        show({"step": name, "mb": round(mb, 3), "mb_per_s": speed, "share": min(own) / total})
    if given.profile:
        profile = cProfile.Profile()
        profile.runcall(seconds, _everything, parts)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
