"""All kinds of constraints by name, and the drawing of some that an answer can meet together."""

import random
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from records.errors import ConfigError
from synth.gym.instructions import (
    data_forms,
    lengths,
    letters,
    markdown,
    nested,
    punctuation,
    shape,
    values,
    words,
)
from synth.gym.instructions.constraint import Constraint, compatible, kind_of

_MODULES: tuple[ModuleType, ...] = (
    *(lengths, words, letters, punctuation, markdown, data_forms, values, shape, nested),
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    module.__name__.rpartition(".")[2]: tuple(kind_of(kind) for kind in module.KINDS)
    for module in _MODULES
}
"""What is measured -> the kinds that measure it."""

KINDS: Mapping[str, type[Constraint]] = {
    kind_of(kind): kind for module in _MODULES for kind in module.KINDS
}
"""Name -> kind."""

GROUP_OF: Mapping[str, str] = {name: group for group, names in GROUPS.items() for name in names}

MOST_TRIES = 200
"""Combinations that are begun until one has the number of constraints that is asked for."""


def constraint_of(value: Mapping[str, Any]) -> Constraint:
    """The constraint that a task holds as JSON. ConfigError for a kind that there is not, and for
    parameters that are none of its."""
    name = str(value.get("kind"))
    if name not in KINDS:
        raise ConfigError(f"there is no kind of constraint {name!r}; kinds: {', '.join(KINDS)}")
    try:
        return KINDS[name].model_validate(value.get("params", {}))
    except ValidationError as error:
        raise ConfigError(f"parameters of {name}: {error}") from error


def drawn_together(
    rng: random.Random, number: int, *, names: Sequence[str] = tuple(KINDS)
) -> list[Constraint]:
    """So many constraints of different kinds that an answer can meet together, every kind as likely
    to come first as any other. ConfigError where the kinds of `names` do not go together."""
    for _ in range(MOST_TRIES):
        found: list[Constraint] = []
        for name in rng.sample(names, len(names)):
            if len(found) == number:
                return found
            drawn = KINDS[name].draw(rng)
            if go_together([*found, drawn]):
                found.append(drawn)
        if len(found) == number:
            return found
    raise ConfigError(f"no {number} of these constraints go together: {', '.join(names)}")


def go_together(constraints: Iterable[Constraint]) -> bool:
    """Whether an answer can meet all of them, as they say it themselves."""
    return compatible(constraint.demand() for constraint in constraints)


def summary_of(kind: type[Constraint]) -> str:
    """What a kind asks for, in one sentence."""
    return " ".join((kind.__doc__ or "").split())
