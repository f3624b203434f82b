"""The command: `python -m benchmarks.rl_proof --help`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import rl_proof
from benchmarks.proof.seed_run import SeedRun
from benchmarks.rl_proof.page import arms_page, page
from benchmarks.rl_proof.runs import BASE, OPEN_PROMPTS, SCORING_MINUTES, Arm, ArmRun
from records.files import write_atomic
from trainer.evaluation.scoring import SCORES

BUDGET_MINUTES = 75.0

ARM_MINUTES = 30.0

PAGE, ARMS_PAGE = "rl.md", "rl_arms.md"

SCORINGS: Mapping[str, Sequence[str]] = {"free": (), "constrained": ("constrained=true",)}

ARM_SCORINGS: Mapping[str, Sequence[str]] = {
    "free": ("tasks=40", 'splits=["heldout_values", "heldout_task"]')
}

SHORT_SCORING = ("tasks=2", 'complexities=["simple"]')

WHOLE = Arm("whole", "the whole algorithm")

ARMS = (
    Arm("whole-arm", "the whole algorithm"),
    Arm(
        "no-budget",
        "without budget control",
        ("learning.budget.default.penalty=0.0",),
    ),
    Arm("no-decay", "without the decay of temperature", ('learning.temperature.shape="constant"',)),
    Arm("no-ptx", "without the PTX loss", ("good=[]", "learning.ptx.weight=0.0")),
    Arm(
        "critic",
        "with the critic's reward for open prompts",
        ("critic.enabled=true", f'gym.families.open.files=[{{path="{OPEN_PROMPTS}"}}]'),
    ),
)
"""The first is what the others are compared with."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rl_proof",
        description=rl_proof.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seed_folder", type=Path, help="of the proof, such as data/proof/seed-0")
    parser.add_argument(
        "--budget-minutes",
        type=float,
        default=BUDGET_MINUTES,
        help="learning and scoring together: fewer take fewer iterations and score all the same",
    )
    parser.add_argument("--arms", action="store_true", help="compare the parts of the algorithm")
    parser.add_argument("--arm-minutes", type=float, default=ARM_MINUTES, help="learning of an arm")
    parser.add_argument("--short", action="store_true", help="minutes: shows that each part works")
    args = parser.parse_args()
    proof = _proof_of(parser, args.seed_folder, short=args.short)
    extra = SHORT_SCORING if args.short else ()
    if args.arms:
        runs = [ArmRun(proof, arm, minutes=args.arm_minutes, short=args.short) for arm in ARMS]
        for run in runs:
            run.run({name: (*own, *extra) for name, own in ARM_SCORINGS.items()})
        text, path = (
            arms_page(runs, minutes=args.arm_minutes, short=args.short),
            args.seed_folder / ARMS_PAGE,
        )
    else:
        minutes = args.budget_minutes - SCORING_MINUTES
        run = ArmRun(proof, WHOLE, minutes=minutes, short=args.short)
        run.run({name: (*own, *extra) for name, own in SCORINGS.items()})
        text, path = page(run, short=args.short), args.seed_folder / PAGE
    write_atomic(path, text.encode())
    print(text)


def _proof_of(parser: argparse.ArgumentParser, folder: Path, *, short: bool) -> SeedRun:
    name, _, seed = folder.resolve().name.partition("-")
    if name != "seed" or not seed.isdecimal() or not (folder / "scores" / BASE / SCORES).exists():
        parser.error(
            f"{folder} is no finished seed of the proof (a folder seed-N with scores/{BASE}); "
            "make one: python -m benchmarks.proof --out data/proof"
        )
    return SeedRun(folder, int(seed), budget_min=0.0, short=short)


if __name__ == "__main__":
    main()
