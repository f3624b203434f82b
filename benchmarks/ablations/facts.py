"""A made-up town: people, four facts of each, and ways to tell them. All of it hangs on a seed.

A rewrite is by rule: the facts in another order, each in another of ten phrasings (`town.yaml`). A
language model would rewrite more freely; this stands in for one.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from records.seeds import rng_of

_TOWN: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("town.yaml").read_text())

VALUES: dict[str, Sequence[str]] = {k: own["values"] for k, own in _TOWN["kinds"].items()}
"""Possible values of each kind of fact."""


class Person(NamedTuple):
    name: str
    facts: dict[str, str]
    practised: bool
    """Whether questions about this one are among the texts, to teach what a question is."""


def people(count: int, seed: int) -> list[Person]:
    """Every other one is practised."""
    rng = rng_of("facts", "people", seed)
    names: dict[str, None] = {}
    while len(names) < count:
        names[f"{_word(rng)} {_word(rng)}"] = None
    return [
        Person(name, {kind: rng.choice(values) for kind, values in VALUES.items()}, n % 2 == 0)
        for n, name in enumerate(names)
    ]


def raw(person: Person) -> str:
    """The one text that there is of a person: facts in a fixed order, phrasings by lot."""
    return _told(person, list(VALUES), rng_of(person.name, "raw"))


def rewritten(person: Person, number: int) -> str:
    """Rewrite `number`: order and phrasings anew."""
    rng = rng_of(person.name, "rewrite", number)
    return _told(person, rng.sample(list(VALUES), len(VALUES)), rng)


def question(person: Person, kind: str) -> str:
    """In words that no telling has; the answer is the value."""
    return _TOWN["kinds"][kind]["question"].format(who=person.name)


def _told(person: Person, kinds: Sequence[str], rng: Random) -> str:
    sentences = [
        rng.choice(_TOWN["kinds"][kind]["phrases"]).format(
            who=person.name, value=person.facts[kind]
        )
        for kind in kinds
    ]
    return " ".join(sentences)


def _word(rng: Random) -> str:
    return "".join(rng.sample(_TOWN["syllables"], 2)).capitalize()
