"""(c) More experts at the same number that answer: equal active size, equal tokens.

The report has 8 experts answer and finds losses fall with the number of experts at equal compute.
Here 2 answer, and an expert sees few tokens a step, which works against many experts.
"""

from benchmarks.ablations.cells import Cell, Done, Result
from benchmarks.ablations.learning import Plan, learn
from benchmarks.ablations.plots import Figure
from benchmarks.ablations.prose import Prose
from trainer.model.config import TransformerConfig
from trainer.model.size import size_of

TITLE = "Sparsity at equal active size"

STEPS = 400
EXPERTS = (8, 16, 32)
RATES = (3e-3, 6e-3, 1.2e-2)


def wanted(plan: Plan, scale: float, _done: Done) -> list[Cell]:
    plan = plan.scaled(STEPS, scale)
    return [
        Cell(
            ablation="sparsity",
            name=f"{experts}experts-lr{rate:g}",
            seed=plan.seed,
            settings={"plan": _plan(plan, experts, rate).model_dump(mode="json")},
        )
        for experts in EXPERTS
        for rate in RATES
    ]


def run(cell: Cell, prose: Prose) -> Result:
    return learn(Plan.model_validate(cell.settings["plan"]), prose.train, prose.held_out)[1]


def section(seeds: dict[int, Done]) -> str:
    lines = [
        "The best of the learning rates " + ", ".join(f"{rate:g}" for rate in RATES) + ".",
        "",
        "| seed | experts (2 answer) | parameters | active | tokens an expert and step | lr "
        "| held-out loss | busiest expert over its share |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, done in seeds.items():
        for experts in EXPERTS:
            own = [(c, r) for c, r in done.values() if _of(c).shape.num_experts == experts]
            cell, result = min(own, key=lambda pair: pair[1]["loss"])
            plan = _of(cell)
            size = size_of(plan.shape)
            each = plan.step_tokens * plan.shape.experts_per_token // experts
            lines.append(
                f"| {seed} | {experts} | {size.total:,} | {size.active:,} | {each} | "
                f"{plan.peak_lr:g} | {result['loss']:.4f} | {result['load_excess']:.2f} |"
            )
    return "\n".join(lines)


def figures(seeds: dict[int, Done]) -> list[Figure]:
    lines = {
        f"seed {seed}, lr {rate:g}": sorted(
            (_of(cell).shape.num_experts, result["loss"])
            for cell, result in done.values()
            if _of(cell).peak_lr == rate
        )
        for seed, done in seeds.items()
        for rate in RATES
    }
    return [Figure("Held-out loss", "experts", lines, log_x=True)]


def _plan(plan: Plan, experts: int, rate: float) -> Plan:
    """Twice the rows of a step, so that an expert has something to learn from."""
    other = plan.shape.model_dump() | {"num_experts": experts, "routed_scale": 0.0}
    return plan.at(shape=TransformerConfig.model_validate(other), peak_lr=rate, rows=2 * plan.rows)


def _of(cell: Cell) -> Plan:
    return Plan.model_validate(cell.settings["plan"])
