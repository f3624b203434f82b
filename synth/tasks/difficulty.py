"""How often tasks are solved, and which of them are made harder or easier.

A task that an agent passes more often than the target rate gets a harder child, one that it passes
less often an easier one. What a child is hangs on its parent, the operator and the round alone, so
that a run that goes on comes to the same children.
"""

from collections.abc import Callable, Iterable, Sequence
from math import comb
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.seeds import rng_of
from records.tables.schemas import Row
from synth.engine.context import RunContext

DERIVATION_VERSION = 1
"""Raised when the same parent, operator and round would give another task."""

DERIVATION = "derivation"
"""Name of the stage that derives tasks."""

Operator = Literal["more_tools", "less_said", "longer", "fewer_tools", "more_said", "shorter"]

HARDER: tuple[Operator, ...] = ("more_tools", "less_said", "longer")
EASIER: tuple[Operator, ...] = ("fewer_tools", "more_said", "shorter")


class DifficultyConfig(Config):
    """Rounds in which tasks are made harder or easier by how often the run's agent passes them."""

    rounds: int = Field(default=0, ge=0, le=16)
    """Rounds after the first attempts: each derives a task from every task of the round before
    whose pass rate is not the target. 0: nothing is measured or derived."""
    target: float = Field(default=0.5, ge=0.0, le=1.0)
    """Pass rate above which a task is made harder, and below which it is made easier."""
    operators: dict[Operator, float] = Field(
        default=dict.fromkeys((*HARDER, *EASIER), 1.0), min_length=1
    )
    """Weight of each operator among those of its direction that a task can have. `more_tools`,
    `less_said` and `longer` make a task harder, `fewer_tools`, `more_said` and `shorter` easier;
    one that is not named is not used."""
    added_tools: int = Field(default=8, ge=1, le=64)
    """Tools of other domains that `more_tools` puts beside those of the agent."""

    @model_validator(mode="after")
    def _weights(self) -> Self:
        if any(weight <= 0 for weight in self.operators.values()):
            raise ValueError(f"weights of operators must be above 0, got {self.operators}")
        return self


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate of the chance that one of k attempts passes, from c passes in n attempts:
    1 - C(n-c, k) / C(n, k), without bias (Chen et al. 2021, arXiv:2107.03374). 1 <= k <= n."""
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Estimate of the chance that k attempts all pass: C(c, k) / C(n, k), without bias (Yao et al.
    2024, arXiv:2406.12045). 1 <= k <= n."""
    return comb(c, k) / comb(n, k)


class DerivedTask(NamedTuple):
    """A task to be derived."""

    item_id: str
    """Becomes the task's id."""
    parent: str
    operator: Operator
    round: int


def plan_derivations(
    measured: Iterable[Row],
    config: DifficultyConfig,
    *,
    can_have: Callable[[str, Operator], bool],
) -> list[DerivedTask]:
    """What is derived from rows of `difficulty`, in their order.

    `can_have`: whether a task, by its id, can have an operator. A task that is faulty, that no
    attempt measures, that has the target rate or no operator left gets no child.
    """
    found = []
    for row in measured:
        number = row["round"] + 1
        if number > config.rounds or row["fault"] or not row["n"]:
            continue
        rate = row["c"] / row["n"]
        if rate == config.target:
            continue
        task_id = row["task_id"]
        direction = HARDER if rate > config.target else EASIER
        own: list[Operator] = [
            o for o in direction if o in config.operators and can_have(task_id, o)
        ]
        if not own:
            continue
        weights = [config.operators[operator] for operator in own]
        operator = rng_of(task_id, "operator", number).choices(own, weights)[0]
        extra = [config.added_tools] if operator == "more_tools" else []
        item_id = digest("derived", DERIVATION_VERSION, task_id, operator, number, *extra)
        found.append(DerivedTask(item_id, task_id, operator, number))
    return found


def tasks_of(run: RunContext[Any]) -> list[str]:
    """Ids of the run's tasks: those that were planned first, then those derived from them."""
    # a plan from before may hold more tasks than are asked for now
    own = list(run.ids_of("tasks")[: run.config.num_tasks])
    return [*own, *_derived(run)] if run.config.difficulty.rounds else own


def _derived(run: RunContext[Any]) -> Sequence[str]:
    try:
        return run.ids_of(DERIVATION)
    except ConfigError:  # no round has come to it yet
        return ()
