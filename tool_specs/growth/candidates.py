"""New rows of one entity: a seed row taken as the pattern, with values, references and dates of its
own. A candidate that breaks a rule is drawn again with less freedom, down to little more than the
pattern itself, which keeps the rules as the seed does.
"""

import re
from collections.abc import Sequence
from random import Random

from records.tables.splits import Split
from tool_specs.execution.state import EntityRow
from tool_specs.growth.moments import MomentMover, in_orders, kept_orders
from tool_specs.growth.near import near_duplicate
from tool_specs.growth.numbers import NumberMaker
from tool_specs.growth.relations import Relations, Rows, computed, single_refs
from tool_specs.growth.text_kinds import shape_of
from tool_specs.growth.texts import TextMaker
from tool_specs.language.domain_file import DomainFile, EntitySpec, FieldSpec

TWIN_SHARE = 0.01
"""Of the names of people: those that somebody else has, too."""

NEAR_SHARE = 0.03
"""Of names by which rows are known: those that differ from another's by a letter or a word."""

ANY_REF_SHARE = 0.3
"""How often a reference first tries any row, and not one grown from what the pattern refers to."""

OTHER_CHOICE_SHARE = 0.15
"""How often an enum or a boolean that no rule speaks of takes another value."""

FREEDOM = (3, 3, 3, 3, 2, 2, 2, 1, 1, 0, 0, 0)
"""Of the candidates for one row, in turn."""

_STATUS = re.compile(r"(^|_)(status|state|stage|phase|kind|type)$")


class RowSource:
    """What candidates of one entity are drawn from."""

    def __init__(
        self,
        name: str,
        file: DomainFile,
        seed: Rows,
        rows: Rows,
        *,
        relations: Relations,
        split: Split,
        factor: float,
        rng: Random,
    ) -> None:
        """`rows` holds all that has grown so far, and grows on; `factor` is by how much this entity
        grows."""
        self.name, self.spec = name, file.entities[name]
        self.relations, self._split, self._rng = relations, split, rng
        self._seed, self._rows = seed[name], rows
        self._refs = single_refs(self.spec) | _refs_by_value(self.spec, seed, name)
        patterns = list(self._seed.values())
        self._mover = MomentMover(self.spec, patterns, file.now)
        self._orders = kept_orders(patterns, self._mover.fields)
        text = " ".join(rule.that for rule in file.rules if rule.entity == name)
        self._ruled = frozenset(re.findall(rf"\b{name}\.(\w+)", text))
        self._fixed = frozenset(f.field for f in relations.formulas) | frozenset(
            t.field for t in relations.taken_over
        )
        self._texts = self._text_makers(patterns, factor)
        self._numbers = {
            field: NumberMaker(spec, [r[field] for r in patterns if r[field] is not None], split)
            for field, spec in self.spec.fields.items()
            if spec.type in ("integer", "number")
        }
        self._named: dict[str, list[str]] = {field: [] for field in self._texts}
        self._loose = self._loose_fields()
        self._weights = self._pattern_weights(patterns)
        self._patterns = [row[self.spec.key] for row in patterns]
        self._baskets = any(map(_has_amounts, self.spec.fields.values()))

    def _text_makers(self, patterns: Sequence[EntityRow], factor: float) -> dict[str, TextMaker]:
        makers: dict[str, TextMaker] = {}
        for field, spec in self.spec.fields.items():
            values = [r[field] for r in patterns if r[field] is not None]
            if spec.type != "string" or field in (self.spec.key, *self._refs) or not values:
                continue
            shape = shape_of(self.name, field, values, spec.like)
            longest = None if spec.max is None else int(spec.max)
            makers[field] = TextMaker(
                shape,
                values,
                self._split,
                longest=longest,
                least=int(spec.min or 0),
                factor=factor,
            )
        return makers

    def _loose_fields(self) -> list[str]:
        """Enums and booleans that nothing known to us hangs on."""
        return [
            field
            for field, spec in self.spec.fields.items()
            if spec.type in ("enum", "boolean")
            and field not in self._ruled | self._fixed
            and field != self.spec.lifecycle_field
            and not _STATUS.search(field)
            and not any(maker.shape.kind == "title" for maker in self._texts.values())
        ]

    def _pattern_weights(self, patterns: Sequence[EntityRow]) -> list[float]:
        """Rows at the end of their life are more than those under way, as in any table."""
        cycle = self.spec.lifecycle
        ends = set() if cycle is None else {m.to for m in cycle.moves}
        ends -= set() if cycle is None else {status for m in cycle.moves for status in m.from_}
        return [
            (0.25 + self._rng.expovariate(1.0))
            * (2.0 if cycle is not None and row[cycle.field] in ends else 1.0)
            for row in patterns
        ]

    @property
    def can_grow(self) -> bool:
        """Whether there are further rows that people could tell from those of the seed."""
        if not self._seed:
            return False
        return not self.spec.natural or any(self._is_open(f) for f in self.spec.natural)

    def _is_open(self, field: str) -> bool:
        spec = self.spec.fields[field]
        if spec.type in ("enum", "boolean"):
            return False
        maker = self._texts.get(field)
        return maker is None or maker.is_new

    @property
    def partitioned(self) -> frozenset[str]:
        """Fields whose grown values belong to one split each."""
        kept = self._ruled - frozenset(self.spec.natural)
        texts = {f for f, maker in self._texts.items() if maker.is_new and f not in kept}
        amounts = {f for f, maker in self._numbers.items() if maker.is_amount}
        return frozenset(texts if self._baskets else texts | amounts) - self._fixed

    def pattern(self) -> str:
        """The key of a seed row."""
        return self._rng.choices(self._patterns, self._weights)[0]

    def candidate(self, pattern: str, key: str, freedom: int, grown: "Kin") -> tuple[EntityRow, int]:
        """A row like the pattern, and by how many days it moved. It may break any rule yet."""
        row = dict(self._seed[pattern])
        row[self.spec.key] = key
        if freedom == 3:
            self._vary_gaps(row)
        self._refer(row, pattern, freedom, grown)
        days = self._move(row, pattern, freedom, grown)
        if freedom >= 1 and not self._baskets:
            self._count(row, freedom)
        if freedom == 3:
            self._choose(row)
        self._write(row, freedom)
        self._relate(row)
        return row, days

    def may_repeat(self, names: Sequence[str]) -> bool:
        """Whether rows may be known by these names twice: where they are names of people."""
        kinds = {self._texts[f].shape.kind for f in self.spec.natural if f in self._texts}
        return kinds == {"person"} and len(names) == len(self.spec.natural)

    def in_order(self, row: EntityRow) -> bool:
        return in_orders(row, self._orders)

    def keep(self, row: EntityRow) -> None:
        """The row has been taken: others may have a name like its own."""
        for field, names in self._named.items():
            if row[field] is not None:
                names.append(row[field])

    def _vary_gaps(self, row: EntityRow) -> None:
        """What is optional and no rule speaks of is missing at the seed's rate, in any row."""
        stamps = {m.stamp for m in self.spec.lifecycle.moves} if self.spec.lifecycle else set()
        for field, spec in self.spec.fields.items():
            free = spec.optional and field not in self._ruled | self._fixed | stamps
            if free and spec.type in ("string", "number", "integer") and self._rng.random() < 0.5:
                row[field] = self._seed[self._rng.choice(self._patterns)][field]

    def _refer(self, row: EntityRow, pattern: str, freedom: int, grown: "Kin") -> None:
        rng = self._rng
        for field, to in self._refs.items():
            if row[field] is None:
                continue
            unshared = field in self.relations.unshared
            if freedom or unshared:
                anyone = freedom == 3 and rng.random() < ANY_REF_SHARE
                row[field] = grown.of(to, row[field], rng, anyone=anyone, evenly=unshared)
        for field, spec in self.spec.fields.items():
            if spec.type == "list" and spec.of == "ref" and spec.to is not None and freedom:
                chosen = [grown.of(spec.to, k, rng, anyone=False, evenly=True) for k in row[field]]
                row[field] = list(dict.fromkeys(chosen))

    def _move(self, row: EntityRow, pattern: str, freedom: int, grown: "Kin") -> int:
        reach = self._mover.reach(row)
        days = 0
        if freedom >= 2:
            kin = (grown.moved_by(to, row[f]) for f, to in self._refs.items() if row[f] is not None)
            days = next((d for d in kin if d and reach.low <= d <= reach.high), 0)
            days = days or self._mover.days(row, self._rng, reach)
        if freedom:
            far = freedom == 3
            row |= self._mover.moved(row, days, self._rng, far=far, minutes=True)
        elif set(self._mover.fields) & set(self.spec.natural):
            row |= self._mover.moved(row, 0, self._rng, far=False, minutes=True)
        return days

    def _count(self, row: EntityRow, freedom: int) -> None:
        for field, maker in self._numbers.items():
            value = row[field]
            if value is None or field in self._fixed:
                continue
            if field in self.spec.natural and self.spec.fields[field].type == "integer":
                row[field] = maker.anywhere(self._rng, more=len(self._rows[self.name]))
            elif freedom >= 2 or field in self.spec.natural:
                row[field] = maker.near(value, self._rng)

    def _choose(self, row: EntityRow) -> None:
        for field in self._loose:
            if row[field] is None or self._rng.random() >= OTHER_CHOICE_SHARE:
                continue
            spec = self.spec.fields[field]
            row[field] = self._rng.choice(spec.values) if spec.values else not row[field]

    def _write(self, row: EntityRow, freedom: int) -> None:
        named = None
        for field, maker in sorted(self._texts.items(), key=_people_first):
            value, known = row[field], field in self.spec.natural
            if value is None or field in self._fixed or (field in self._ruled and not known):
                continue
            if not maker.is_new and (freedom < 3 or field not in self._choosable):
                continue
            like = maker.make(value, self._rng, named=named)
            if freedom == 3 and maker.is_new and not maker.shape.pooled:
                like = self._like_another(field, maker) or like
            row[field] = like
            named = named or (like if maker.shape.kind == "person" else None)

    @property
    def _choosable(self) -> frozenset[str]:
        return frozenset(self._texts) - self._ruled

    def _like_another(self, field: str, maker: TextMaker) -> str | None:
        """A name that some other row has, or nearly has; None for most rows."""
        names, draw = self._named[field], self._rng.random()
        person = maker.shape.kind == "person"
        if not names or draw >= NEAR_SHARE or maker.shape.kind not in ("person", "title"):
            return None
        other = self._rng.choice(names)
        if person and draw < TWIN_SHARE:
            return other
        near = near_duplicate(other, self._rng, person=person)
        return near if near is not None and maker.allows(near) else None

    def _relate(self, row: EntityRow) -> None:
        for field, ref, source in self.relations.taken_over:
            to = self.spec.fields[ref].to
            if row[field] is not None and row[ref] is not None and to is not None:
                row[field] = self._rows[to][row[ref]][source]
        if self._baskets:
            return
        for formula in reversed(self.relations.formulas):
            value = computed(formula, row, self.spec, self._rows)
            if value is not None and row[formula.field] is not None:
                row[formula.field] = value


class Kin:
    """Rows by the seed row that they were grown from, the seed row among them."""

    def __init__(self, seed: Rows, rng: Random) -> None:
        self._kin: dict[str, dict[str, list[str]]] = {
            name: {key: [key] for key in rows} for name, rows in seed.items()
        }
        self._all: dict[str, list[str]] = {name: list(rows) for name, rows in seed.items()}
        self._pattern: dict[str, dict[str, str]] = {n: {k: k for k in r} for n, r in seed.items()}
        self._days: dict[str, dict[str, int]] = {name: {} for name in seed}
        self._rng = rng

    def add(self, name: str, key: str, pattern: str, days: int) -> None:
        self._kin[name][pattern].append(key)
        self._all[name].append(key)
        self._pattern[name][key] = pattern
        self._days[name][key] = days

    def close(self, name: str) -> None:
        """The entity is complete: from here on, some of its rows are referred to more often than
        others, in an order that has nothing to do with their age."""
        for keys in self._kin[name].values():
            self._rng.shuffle(keys)
        self._rng.shuffle(self._all[name])

    def moved_by(self, name: str, key: str) -> int:
        return self._days[name].get(key, 0)

    def of(self, name: str, like: str, rng: Random, *, anyone: bool, evenly: bool) -> str:
        """A row grown from the same seed row as `like`, or anyone. Unless `evenly`, the first tenth
        of the rows gets about half of the references, as customers do orders."""
        pattern = self._pattern[name].get(like)
        if pattern is None:
            return like
        keys = self._all[name] if anyone else self._kin[name][pattern]
        draw = rng.random()
        return keys[int(len(keys) * (draw if evenly else draw**3.3))]


def _has_amounts(field: FieldSpec) -> bool:
    """Whether it lists parts with numbers, to which numbers of the row are likely to add up."""
    parts = (field.properties or {}).values()
    return field.type == "list" and any(p.type in ("integer", "number") for p in parts)


def _people_first(item: tuple[str, TextMaker]) -> bool:
    return item[1].shape.kind != "person"


def _refs_by_value(entity: EntitySpec, seed: Rows, name: str) -> dict[str, str]:
    """Text fields that hold ids of rows without saying so, by what the seed has."""
    found: dict[str, str] = {}
    for field, spec in entity.fields.items():
        held = [row[field] for row in seed[name].values() if row[field] is not None]
        if spec.type != "string" or field == entity.key or len(held) < 2:
            continue
        for other, rows in seed.items():
            if all(value in rows for value in held):
                found[field] = other
    return found

