"""A grown seed: the state that a task starts from where that is not the seed of the domain's file.

A task's `initial_state` names it under `GROWN`, which is no name of an entity; everything else
there is a patch on it. The state follows from the name alone, so its rows are stored nowhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from records.errors import ConfigError
from records.tables.splits import Split
from tool_specs.execution.invariants import Invariants
from tool_specs.execution.state import State
from tool_specs.growth.growing import grow
from tool_specs.language.domain_file import DomainFile
from tool_specs.language.statements import Spec

GROWN = "$grown"

GROWTH_VERSION = 1
"""Of how seeds grow. Another version grows other rows under the same name."""

MIN_ROWS, MAX_ROWS = 10, 50_000

KEPT_STATES = 8
"""In a process, the latest used: one of 10,000 rows takes some 20 MB."""

SMALL_ROWS, KEPT_SMALL = 200, 256
"""States of at most so many rows, of which more are kept: at most 100 MB in all."""


class GrownSeed(Spec):
    """Names a grown state of a domain."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int = Field(ge=MIN_ROWS, le=MAX_ROWS)
    """Of all entities together, the seed's among them."""
    number: int = Field(default=0, ge=0)
    """Seeds grown to one size differ by it."""
    split: Split = "train"
    """No text or amount that grows for one split grows for another."""
    version: int = GROWTH_VERSION
    hash: str | None = None
    """Of the state, before the patch: what a replay has to come to. None: not grown yet."""

    def named(self, state: State) -> dict[str, Any]:
        """As a task's `initial_state` holds it."""
        return self.model_copy(update={"hash": state.hash}).model_dump(mode="json")


def grown_seed_of(initial_state: Mapping[str, Any] | None) -> GrownSeed | None:
    """The grown seed that a task's initial state names; None for the seed of the file.

    Raises ConfigError for a name that is none.
    """
    named = (initial_state or {}).get(GROWN)
    if named is None:
        return None
    try:
        return GrownSeed.model_validate(named)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, (GROWN, *problem["loc"])))
        raise ConfigError(f"initial_state.{place}: {problem['msg']}") from None


@dataclass(frozen=True)
class Ground:
    """What a domain's seed grows from."""

    key: str
    """The same for the same content."""
    file: DomainFile = field(compare=False)
    seed: State = field(compare=False)
    invariants: Invariants = field(compare=False)

    def grown(self, name: GrownSeed) -> State:
        """The state, which must not be changed: environments start from snapshots of it.

        Raises ConfigError for a seed grown by another version, or to another hash.
        """
        if name.version != GROWTH_VERSION:
            raise ConfigError(
                f"{self.file.domain}: its seed was grown by version {name.version}, "
                f"and this is version {GROWTH_VERSION}"
            )
        kept = _small_state if name.rows <= SMALL_ROWS else _large_state
        state = kept(self, name.rows, name.number, name.split)
        if name.hash not in (None, state.hash):
            raise ConfigError(
                f"{self.file.domain}: its seed of {name.rows} rows has the hash {name.hash}, "
                f"and what grows of this domain has {state.hash}"
            )
        return state


def _state_of(ground: Ground, rows: int, number: int, split: Split) -> State:
    file, seed = ground.file, ground.seed
    grown = grow(file, seed, ground.invariants, rows=rows, number=number, split=split)
    return State.of(grown.rows, file.now)


_large_state = lru_cache(maxsize=KEPT_STATES)(_state_of)
_small_state = lru_cache(maxsize=KEPT_SMALL)(_state_of)
