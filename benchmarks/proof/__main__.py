"""The command: `python -m benchmarks.proof --help`."""

import argparse
from pathlib import Path

from benchmarks import proof
from benchmarks.proof.report import report
from benchmarks.proof.seed_run import SeedRun
from records.files import write_atomic

PAGE = "proof.md"

BUDGET_MINUTES = 90.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.proof",
        description=proof.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1, help="runs with seeds 0, 1, ...")
    parser.add_argument(
        "--budget-minutes",
        type=float,
        default=BUDGET_MINUTES,
        help="of each seed: fewer than 90 take fewer training steps and check all the same",
    )
    parser.add_argument("--out", type=Path, default=Path("data/proof"))
    parser.add_argument("--short", action="store_true", help="minutes: shows that each part works")
    args = parser.parse_args()
    if args.seeds < 1:
        parser.error(f"--seeds {args.seeds}: at least 1")
    done: list[SeedRun] = []
    text = ""
    for seed in range(args.seeds):
        folder = args.out / f"seed-{seed}"
        run = SeedRun(folder, seed, budget_min=args.budget_minutes, short=args.short)
        run.run()
        done.append(run)
        text = report(done, short=args.short)  # after each: a later one may be stopped
        write_atomic(args.out / PAGE, text.encode())
    print(text)


if __name__ == "__main__":
    main()
