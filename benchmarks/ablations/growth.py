"""(b) QK-Clip on and off while attention logits are made to grow.

Growth is forced: a learning rate several times too hot and no weight decay. At this size logits do
not explode by themselves, so this shows what the clip does when they grow, not that they would.
"""

from benchmarks.ablations.cells import Cell, Done, Result
from benchmarks.ablations.learning import WATCHED, Plan, learn
from benchmarks.ablations.plots import Figure
from benchmarks.ablations.prose import Prose

TITLE = "QK-Clip under forced growth of attention logits"

STEPS = 300
HOT_LR = 3e-2
TAUS = (WATCHED, 40.0, 20.0, 10.0)


def wanted(plan: Plan, scale: float, _done: Done) -> list[Cell]:
    hot = plan.scaled(STEPS, scale).at(
        peak_lr=HOT_LR, optimizer=plan.optimizer.model_copy(update={"weight_decay": 0.0})
    )
    return [
        Cell(
            ablation="growth",
            name=_name(tau),
            seed=plan.seed,
            settings={"plan": hot.at(qk_clip_tau=tau).model_dump(mode="json")},
        )
        for tau in TAUS
    ]


def run(cell: Cell, prose: Prose) -> Result:
    return learn(Plan.model_validate(cell.settings["plan"]), prose.train, prose.held_out)[1]


def section(seeds: dict[int, Done]) -> str:
    lines = [
        f"Peak lr {HOT_LR:g}, weight decay 0. The largest logit is that of any head, before the",
        "clip of its step: one step's growth beyond tau is seen.",
        "",
        "| seed | clip | held-out loss | largest logit | heads clipped in all | skipped steps |",
        "|---|---|---|---|---|---|",
    ]
    for seed, done in seeds.items():
        for name, (_, result) in done.items():
            top = max(value for _, value in result["max_logit"])
            lines.append(
                f"| {seed} | {name} | {result['loss']:.4f} | {top:.1f} | "
                f"{result['clipped_heads']} | {result['skipped']} |"
            )
    first = next(iter(seeds.values()))
    for curve, words in (("max_logit", "Largest logit of each stretch"), ("held_out_loss", "Loss")):
        lines += ["", f"{words}, first seed:", "", *_curves(first, curve)]
    return "\n".join(lines)


def figures(seeds: dict[int, Done]) -> list[Figure]:
    drawn = (("Largest attention logit", "max_logit", True), ("Loss", "held_out_loss", False))
    return [
        Figure(
            f"{words}, seed {seed}",
            "steps",
            {name: [(x, y) for x, y in result[curve]] for name, (_, result) in done.items()},
            log_y=log,
        )
        for seed, done in seeds.items()
        for words, curve, log in drawn
    ]


def _curves(done: Done, curve: str) -> list[str]:
    """A line for each step that is told, a column for each cell."""
    columns = [dict(map(tuple, result[curve])) for _, result in done.values()]
    lines = [
        "| step | " + " | ".join(done) + " |",
        "|---" * (1 + len(columns)) + "|",
    ]
    lines += [
        f"| {step:g} | " + " | ".join(f"{column[step]:g}" for column in columns) + " |"
        for step in columns[0]
    ]
    return lines


def _name(tau: float) -> str:
    return "off" if tau == WATCHED else f"tau{tau:g}"
