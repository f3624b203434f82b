"""What every kind of constraint has, and which constraints an answer can meet together.

A constraint is a model of its parameters; its kind's name is that of its class in snake case. It is
drawn by a seed, says itself in one of several wordings, and checks any text.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, Self

from records.config import Config
from synth.gym.instructions.answer import AnswerText

AnswerUnit = Literal["words", "sentences", "paragraphs", "lines", "characters"]

_NOTHING: frozenset[str] = frozenset()
_NO_COUNTS: Mapping[AnswerUnit, int] = MappingProxyType({})


class Demand(NamedTuple):
    """What a constraint leaves of the freedom of those beside it."""

    takes: frozenset[str] = _NOTHING
    """What it decides alone, such as `end`: no other may."""
    needs: frozenset[str] = _NOTHING
    """What an answer that meets it has: `prose`, `digit`, `letter:e`, `mark:,` and so on."""
    bars: frozenset[str] = _NOTHING
    """What such an answer does not have."""
    least: Mapping[AnswerUnit, int] = _NO_COUNTS
    """Of a unit, how many the answer has at least."""
    most: Mapping[AnswerUnit, int] = _NO_COUNTS
    """Of a unit, how many it has at most."""
    uses: Mapping[AnswerUnit, int] = _NO_COUNTS
    """Of a unit, how many it has for this constraint, beside those for others."""


def compatible(demands: Iterable[Demand]) -> bool:
    """Whether an answer can meet all of them: nothing is decided twice or both needed and barred,
    and what one allows `most` has room for the greatest `least` and all `uses` of the others. On
    the safe side: some that an artful answer could meet are refused."""
    known = list(demands)
    taken = [what for demand in known for what in demand.takes]
    if len(taken) != len(set(taken)):
        return False
    for at, demand in enumerate(known):
        if any(demand.bars & other.needs for i, other in enumerate(known) if i != at):
            return False
        others = [*known[:at], *known[at + 1 :]]
        for unit, most in demand.most.items():
            least = max((other.least.get(unit, 0) for other in others), default=0)
            if least + sum(other.uses.get(unit, 0) for other in others) > most:
                return False
    return True


def together(*demands: Demand) -> Demand:
    """What all of them demand, as one."""
    units: tuple[AnswerUnit, ...] = ("words", "sentences", "paragraphs", "lines", "characters")
    return Demand(
        takes=_NOTHING.union(*(demand.takes for demand in demands)),
        needs=_NOTHING.union(*(demand.needs for demand in demands)),
        bars=_NOTHING.union(*(demand.bars for demand in demands)),
        least={u: max(d.least.get(u, 0) for d in demands) for u in units},
        most={
            u: min(d.most[u] for d in demands if u in d.most)
            for u in units
            if any(u in d.most for d in demands)
        },
        uses={u: sum(d.uses.get(u, 0) for d in demands) for u in units},
    )


def features(*names: str) -> frozenset[str]:
    """Names as `Demand` holds them."""
    return frozenset(names)


LONG_WORD = 7
"""Letters up to which a word is short enough wherever long ones are barred."""


def spelled(*texts: str) -> frozenset[str]:
    """What an answer has that has these English words: their letters, and English."""
    letters = {sign for text in texts for sign in text.lower() if sign.isalpha()}
    is_long = any(len(word) > LONG_WORD for text in texts for word in text.split())
    return features(
        "english", *(f"letter:{letter}" for letter in letters), *(["long words"] if is_long else [])
    )


class Constraint(Config, ABC):
    """A constraint on the form of an answer."""

    wordings: ClassVar[tuple[str, ...]]
    """Templates of the sentence that says it; names in braces are those of `shown`."""

    held_by_rest: ClassVar[bool] = False
    """Whether it asks for something to be there, so that what was copied from the question, or
    says how well the answer complies, does not count."""

    @classmethod
    @abstractmethod
    def draw(cls, rng: random.Random) -> Self:
        """One with parameters by the seed."""

    @abstractmethod
    def met(self, answer: AnswerText) -> bool:
        """Whether the answer meets it. Total: any text may come, and time is linear in it."""

    @abstractmethod
    def demand(self) -> Demand:
        """What it leaves of the freedom of others."""

    def shown(self) -> Mapping[str, object]:
        """What wordings may name: the parameters, as people read them."""
        return {name: _shown(getattr(self, name)) for name in type(self).model_fields}

    def words(self, variant: int) -> str:
        """The sentence that asks for it; any number picks one of the wordings."""
        return self.wordings[variant % len(self.wordings)].format_map(dict(self.shown()))


def kind_of(constraint: type[Constraint]) -> str:
    """`WordsAtLeast` as `words_at_least`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", constraint.__name__).lower()


def listed(words: Iterable[str]) -> str:
    """Words in quotation marks, as people list them."""
    quoted = [f'"{word}"' for word in words]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]


def _shown(value: object) -> object:
    return listed(map(str, value)) if isinstance(value, tuple) else value
