"""Which of the built-in scenes, wordings and seeds belong to which split: by their place in a list.

Of every five in a row the first three are learnt from, the fourth validates and the fifth is held
out. So no scene, wording or seed of one split is met in another, and a longer list moves none.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from synth.gym.core.environment import GymSplit

T = TypeVar("T")

_PLACES: Mapping[GymSplit, tuple[int, ...]] = {
    "train": (0, 1, 2),
    "validation": (3,),
    "heldout": (4,),
}

FOLDER = Path(__file__).parent


@cache
def built_in(name: str) -> Mapping[str, Any]:
    """The table in the file `name` beside this module."""
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))


def part_of(entries: Sequence[T], split: GymSplit) -> list[T]:
    """Those of the split, in their order; of five or more entries every split has some."""
    places = _PLACES[split]
    return [entry for place, entry in enumerate(entries) if place % 5 in places]
