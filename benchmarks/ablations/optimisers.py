"""(a) How many steps Muon needs for the loss that AdamW ends with, learning rates swept for both.

Losses within a run do not compare with losses at the end of a shorter one, whose rate has decayed:
so Muon is trained anew for shares of the steps, each with its whole schedule. Its rate is the best
of the sweep over all steps and is not swept again, which favours AdamW a little.
"""

from itertools import pairwise

from benchmarks.ablations.cells import Cell, Done, Result
from benchmarks.ablations.learning import Plan, learn
from benchmarks.ablations.plots import Figure
from benchmarks.ablations.prose import Prose

TITLE = "Muon against AdamW"

STEPS = 600
GRID = (1.5e-3, 3e-3, 6e-3, 1.2e-2)
FURTHER = 3
"""Times that the grid grows by a factor of two towards a best rate at its edge."""
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
OPTIMISERS = ("muon", "adamw")


def wanted(plan: Plan, scale: float, done: Done) -> list[Cell]:
    """All that are known to be needed so far; more once these are done."""
    plan = plan.scaled(STEPS, scale)
    sweeps = {name: _sweep(plan, name, done) for name in OPTIMISERS}
    cells = [cell for sweep in sweeps.values() for cell in sweep]
    if all(cell.name in done for cell in cells):
        best = min(sweeps["muon"], key=lambda cell: done[cell.name][1]["loss"])
        cells += [_cell(plan, "muon", _plan(best).peak_lr, share) for share in SHARES]
    return cells


def run(cell: Cell, prose: Prose) -> Result:
    return learn(_plan(cell), prose.train, prose.held_out)[1]


def section(seeds: dict[int, Done]) -> str:
    lines = ["| seed | optimiser | peak lr | steps | held-out loss |", "|---|---|---|---|---|"]
    for seed, done in seeds.items():
        for cell, result in done.values():
            plan = _plan(cell)
            name = "Muon" if plan.optimizer.muon else "AdamW"
            lines.append(
                f"| {seed} | {name} | {plan.peak_lr:g} | {plan.steps} | {result['loss']:.4f} |"
            )
    return "\n".join([*(f"- Seed {s}: {_verdict(done)}" for s, done in seeds.items()), "", *lines])


def figures(seeds: dict[int, Done]) -> list[Figure]:
    made: list[Figure] = []
    for seed, done in seeds.items():
        runs = [(_plan(cell), result["loss"]) for cell, result in done.values()]
        whole = max(plan.steps for plan, _ in runs)
        lines = {
            name: sorted(
                (p.peak_lr, loss)
                for p, loss in runs
                if p.optimizer.muon == (name == "muon") and p.steps == whole
            )
            for name in OPTIMISERS
        }
        made.append(Figure(f"Loss after {whole} steps, seed {seed}", "peak lr", lines, log_x=True))
    return made


def _verdict(done: Done) -> str:
    runs = [(_plan(cell), result["loss"]) for cell, result in done.values()]
    whole = max(plan.steps for plan, _ in runs)
    muon, adamw = (
        min(
            ((p, loss) for p, loss in runs if p.optimizer.muon == own and p.steps == whole),
            key=lambda run: run[1],
        )
        for own in (True, False)
    )
    points = sorted(
        (p.steps, loss) for p, loss in runs if p.optimizer.muon and p.peak_lr == muon[0].peak_lr
    )
    needed = steps_to(points, adamw[1])
    if needed is not None:
        words = f"Muon ends at AdamW's loss with {needed / whole:.2f} of its steps"
    elif points[0][1] <= adamw[1]:
        words = f"Muon is below AdamW's loss with {points[0][0] / whole:.2f} of its steps already"
    else:
        words = "Muon does not reach AdamW's loss"
    return (
        f"{words}. With {whole} steps AdamW ends at {adamw[1]:.4f} (peak lr "
        f"{adamw[0].peak_lr:g}), Muon at {muon[1]:.4f} (peak lr {muon[0].peak_lr:g})."
    )


def steps_to(points: list[tuple[int, float]], target: float) -> float | None:
    """Where the line through (steps, loss) first crosses the target from above; None where not."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 > target >= y1:
            return x0 + (y0 - target) / (y0 - y1) * (x1 - x0)
    return None


def _sweep(plan: Plan, name: str, done: Done) -> list[Cell]:
    """The grid, and what lies beyond it while its best is at an edge."""
    rates = list(GRID)
    for _ in range(FURTHER):
        cells = {rate: _cell(plan, name, rate) for rate in rates}
        if any(cell.name not in done for cell in cells.values()):
            break
        losses = {rate: done[cell.name][1]["loss"] for rate, cell in cells.items()}
        best = min(losses, key=lambda rate: losses[rate])
        if best == rates[0]:
            rates.insert(0, best / 2)
        elif best == rates[-1]:
            rates.append(best * 2)
        else:
            break
    return [_cell(plan, name, rate) for rate in rates]


def _cell(plan: Plan, name: str, rate: float, share: float = 1.0) -> Cell:
    optimizer = plan.optimizer.model_copy(update={"muon": name == "muon"})
    steps = max(1, round(plan.steps * share))
    own = plan.at(optimizer=optimizer, peak_lr=rate, steps=steps)
    title = f"{name}-lr{rate:g}-{steps}steps"
    return Cell(
        ablation="optimisers",
        name=title,
        seed=plan.seed,
        settings={"plan": own.model_dump(mode="json")},
    )


def _plan(cell: Cell) -> Plan:
    return Plan.model_validate(cell.settings["plan"])
