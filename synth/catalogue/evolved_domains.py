"""Evolved domains of a dataset as a run uses them: rebuilt from rows, when they are asked for.

A run sees the tools that were there when it began. More of them, evolved meanwhile or between two
invocations, change none of its agents and tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from records.digest import digest
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.domain import Domain

ALL = "evolved"
"""In a run's `domains`: all evolved domains of its dataset; `evolved:NAME` is one of them."""

_BUILT = 64
"""Domains kept built, of about a hundred compiled tools each."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A domain's rows, equal where its tools are the same."""

    key: str
    row: Row
    tools: Sequence[Row]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and other.key == self.key


class EvolvedDomains(Mapping[str, Domain]):
    """By domain_id; each with all its tools, hand-written ones included."""

    def __init__(self, domains: Mapping[str, Row], tools: Mapping[str, Sequence[Row]]) -> None:
        self._places = {
            place: _Place(digest(place, [t["tool_id"] for t in own]), domains[place], own)
            for place, own in tools.items()
        }

    @property
    def tools(self) -> dict[str, Row]:
        """By tool_id."""
        return {t["tool_id"]: t for place in self._places.values() for t in place.tools}

    def __getitem__(self, domain_id: str) -> Domain:
        return _built(self._places[domain_id])

    def __contains__(self, domain_id: object) -> bool:  # the default would build the domain
        return domain_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Domains(Mapping[str, Domain]):
    """Evolved domains and others by domain_id; of one that is both, the evolved form."""

    def __init__(self, evolved: EvolvedDomains, others: Mapping[str, Domain]) -> None:
        self._evolved = evolved
        self._others = others

    def __getitem__(self, domain_id: str) -> Domain:
        return (self._evolved if domain_id in self._evolved else self._others)[domain_id]

    def __contains__(self, domain_id: object) -> bool:  # the default would build the domain
        return domain_id in self._evolved or domain_id in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._evolved, *self._others]))

    def __len__(self) -> int:
        return len(dict.fromkeys(self))


@lru_cache(maxsize=_BUILT)
def _built(place: _Place) -> Domain:
    return domain_of_rows(place.row, place.tools)


def is_evolved(name: str) -> bool:
    """Whether an entry of a run's `domains` means evolved ones."""
    return name == ALL or name.startswith(f"{ALL}:")


def evolved_domains(dataset: Dataset, names: Sequence[str], *, run_id: str) -> EvolvedDomains:
    """The evolved domains that `names` (entries of a run's `domains`) ask for.

    Raises ConfigError for one that the dataset does not hold.
    """
    wanted = [name for name in names if is_evolved(name)]
    if not wanted:
        return EvolvedDomains({}, {})
    began = next((c.number for c in dataset.commits() if c.run_id == run_id), None)
    there = dataset.ids("tools", before=began)
    evolved = {row["tool_id"]: row["domain_id"] for row in dataset.rows("proposals", _MADE)}
    places = {place for tool, place in evolved.items() if tool in there}
    rows = {r["domain_id"]: r for r in dataset.rows("domains") if r["domain_id"] in places}
    known = {row["name"] for row in rows.values()}
    for name in wanted:
        if name.removeprefix(f"{ALL}:") not in known | {ALL} or not rows:
            near = ", ".join(sorted(known)[:10]) or "none"
            raise ConfigError(
                f"domains: {name!r} is not in the dataset {dataset.root}; evolved domains there: "
                f"{near}; `synth tools evolve` makes them"
            )
    if ALL not in wanted:
        rows = {p: row for p, row in rows.items() if f"{ALL}:{row['name']}" in wanted}
    tools: dict[str, list[Row]] = {place: [] for place in rows}
    for row in dataset.rows("tools"):
        if row["tool_id"] in there and row["domain_id"] in rows and not row["drop_reason"]:
            tools[row["domain_id"]].append(row)
    return EvolvedDomains(rows, tools)


_MADE = ["item_id", "number", "tool_id", "domain_id"]
