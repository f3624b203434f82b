"""All figures of reinforcement learning, one benchmark after the other, as JSON lines.

    python benchmarks/rl_figures.py [--only families rollouts grpo] [--repeats 3] [--threads 2]
                                    [--tables FILE.md]

- `families`: environment steps a second of each family, without a model (`bench_families.py`);
- `rollouts`: tokens a second against episodes in flight, the share of time in which the model waits
  for environments, the way of the weights (`bench_rollouts.py`);
- `grpo`: seconds, tokens and rewards of GRPO here and with TRL (`bench_grpo.py`).

`--tables` writes them as the tables of `docs/results/rl_2core_202611.md` as well.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import bench_families, bench_grpo, bench_rollouts
from benchmarks.measured import machine, show
from benchmarks.rl_tables import tables

PARTS: Mapping[str, Callable[[Sequence[str]], Iterator[dict[str, Any]]]] = {
    "families": bench_families.measured,
    "rollouts": bench_rollouts.measured,
    "grpo": bench_grpo.measured,
}

OF_A_MODEL = ("rollouts", "grpo")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="that a model computes with")
    parser.add_argument("--tables", type=Path, help="a file for the figures in Markdown")
    options = parser.parse_args()
    measured: list[dict[str, Any]] = []
    for name in options.only:
        told = ["--repeats", str(options.repeats)]
        if name in OF_A_MODEL:
            told += ["--threads", str(options.threads)]
        began = time.perf_counter()
        for measurement in PARTS[name](told):
            show(measurement)
            measured.append(measurement)
        print(f"rl_figures: {name} took {time.perf_counter() - began:.0f} s", file=sys.stderr)
    if options.tables is not None:
        options.tables.write_text(tables(measured, machine()))


if __name__ == "__main__":
    main()
