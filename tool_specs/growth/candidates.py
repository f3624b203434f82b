"""New rows of one entity: a seed row taken as the pattern, with values, references and dates of its
own. A candidate that breaks a rule is drawn again with less freedom, down to little more than the
pattern itself, which keeps the rules as the seed does.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random

from records.tables.splits import Split
from tool_specs.execution.state import EntityRow
from tool_specs.growth.baskets import Rows, fill
from tool_specs.growth.kin import Kin
from tool_specs.growth.moments import MomentMover, in_orders, kept_orders
from tool_specs.growth.near import near_duplicate
from tool_specs.growth.numbers import NumberMaker
from tool_specs.growth.relations import Relations, TakenOver, computed, single_refs
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

SKEWED_ATTEMPTS = 2
"""Candidates that refer to what many refer to; later ones look for whatever is free."""

FREEDOM = (3, 3, 3, 3, 2, 2, 2, 1, 1, 0, 0, -1)
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
        levels: Mapping[str, int],
        split: Split,
        factor: float,
        rng: Random,
    ) -> None:
        """`rows` holds all that has grown so far, and grows on; `factor` is by how much this entity
        grows."""
        self.name, self.spec = name, file.entities[name]
        self.relations, self._rng = relations, rng
        self._split: Split = split
        self._seed, self._all_seed, self._rows = seed[name], seed, rows
        refs = single_refs(self.spec) | _refs_by_value(self.spec, seed, name)
        # what refers to much comes first, since it tells most of the rest
        self._refs = dict(sorted(refs.items(), key=lambda item: -levels[item[1]]))
        self._agreements: dict[str, list[TakenOver]] = {}
        for taken in relations.taken_over:
            if self.spec.fields[taken.field].type == "ref":
                self._agreements.setdefault(taken.ref, []).append(taken)
        self._pattern_now = ""
        patterns = list(self._seed.values())
        self._mover = MomentMover(self.spec, patterns, file.now)
        self._orders = kept_orders(patterns, self._mover.fields)
        text = " ".join(rule.that for rule in file.rules if rule.entity == name)
        self._ruled = frozenset(re.findall(rf"\b{name}\.(\w+)", text))
        self._fixed = frozenset(
            [f.field for f in relations.derivations]
            + [t.field for t in relations.taken_over if len(t.sources) == 1]
            + ([relations.basket.total] if relations.basket else [])
        )
        self._texts = self._text_makers(patterns, factor)
        self._numbers = {
            field: NumberMaker(spec, [r[field] for r in patterns if r[field] is not None], split)
            for field, spec in self.spec.fields.items()
            if spec.type in ("integer", "number")
        }
        self._named: dict[tuple[str, str], list[str]] = {}
        self._same_for: dict[tuple[str, str], str] = {}
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
            if field in self.relations.same_for:
                shape = shape._replace(pooled=False)
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

    def candidate(self, pattern: str, key: str, attempt: int, grown: Kin) -> tuple[EntityRow, int]:
        """A row like the pattern, and by how many days it moved. It may break any rule yet."""
        freedom = FREEDOM[attempt]
        row = dict(self._seed[pattern])
        row[self.spec.key] = key
        self._pattern_now = pattern
        if freedom == 3:
            self._vary_gaps(row)
        self._refer(row, attempt, grown)
        days = self._move(row, freedom, grown)
        if freedom > 0 and not self._baskets:
            self._count(row, freedom)
        if freedom == 3:
            self._choose(row)
        self._write(row, pattern, freedom)
        self._relate(row, grown)
        return row, days

    def may_repeat(self, names: Sequence[str]) -> bool:
        """Whether rows may be known by these names twice: where they are names of people."""
        kinds = {self._texts[f].shape.kind for f in self.spec.natural if f in self._texts}
        return kinds == {"person"} and len(names) == len(self.spec.natural)

    def in_order(self, row: EntityRow) -> bool:
        return in_orders(row, self._orders)

    def keep(self, row: EntityRow, pattern: str) -> None:
        """The row has been taken: others may have a name like its own, or the same address."""
        for field, maker in self._texts.items():
            if row[field] is None or not maker.is_new:
                continue
            alike = "" if maker.shape.kind == "person" else pattern
            self._named.setdefault((field, alike), []).append(row[field])
            if (ref := self.relations.same_for.get(field)) is not None and row[ref] is not None:
                self._same_for.setdefault((field, row[ref]), row[field])

    def _vary_gaps(self, row: EntityRow) -> None:
        """What is optional and no rule speaks of is missing at the seed's rate, in any row."""
        stamps = {m.stamp for m in self.spec.lifecycle.moves} if self.spec.lifecycle else set()
        for field, spec in self.spec.fields.items():
            free = spec.optional and field not in self._ruled | self._fixed | stamps
            if free and spec.type in ("string", "number", "integer") and self._rng.random() < 0.5:
                row[field] = self._seed[self._rng.choice(self._patterns)][field]

    def _refer(self, row: EntityRow, attempt: int, grown: Kin) -> None:
        """References, of which some follow from others: a release is of its build's site."""
        rng, freedom = self._rng, FREEDOM[attempt]
        set_: set[str] = set()
        for field, to in self._refs.items():
            if row[field] is None:
                continue
            unshared = field in self.relations.unshared
            if freedom > 0 or (freedom == 0 and (unshared or field in self.spec.natural)):
                anyone = freedom == 3 and rng.random() < ANY_REF_SHARE
                evenly = unshared or attempt >= SKEWED_ATTEMPTS
                if field not in set_:
                    agreed = [
                        (t.sources[0], row[t.field])
                        for t in self._agreements.get(field, ())
                        if t.field in set_ and len(t.sources) == 1
                    ]
                    row[field] = grown.of(
                        to, row[field], rng, anyone=anyone, evenly=evenly, agreed=agreed
                    )
                self._follow(row, field, to, set_)
            set_.add(field)
        for field, spec in self.spec.fields.items():
            if spec.type == "list" and spec.of == "ref" and spec.to is not None and freedom > 0:
                chosen = [grown.of(spec.to, k, rng, anyone=False, evenly=True) for k in row[field]]
                row[field] = list(dict.fromkeys(chosen))

    def _follow(self, row: EntityRow, ref: str, to: str, set_: set[str]) -> None:
        """Other references of the row that the row named by `ref` tells."""
        target = self._rows[to][row[ref]]
        for agreement in self._agreements.get(ref, ()):
            if row[agreement.field] is not None and agreement.field not in set_:
                source = self._source_of(agreement, row)
                if target[source] is not None:
                    row[agreement.field] = target[source]
                    set_.add(agreement.field)

    def _source_of(self, agreement: TakenOver, row: EntityRow) -> str:
        """Which of the sources the pattern's value was taken from."""
        pattern = self._seed[self._pattern_now]
        to = self.spec.fields[agreement.ref].to or ""
        target = self._all_seed[to][pattern[agreement.ref]]
        held = pattern[agreement.field]
        return next((s for s in agreement.sources if target[s] == held), agreement.sources[0])

    def _move(self, row: EntityRow, freedom: int, grown: Kin) -> int:
        reach = self._mover.reach(row)
        days = 0
        if freedom >= 2 and self._mover.is_over(row):
            kin = (grown.moved_by(to, row[f]) for f, to in self._refs.items() if row[f] is not None)
            days = next((d for d in kin if d and reach.low <= d <= reach.high), 0)
        if freedom >= 2 and not days:
            days = self._mover.days(row, self._rng, reach)
        if freedom > 0:
            far = freedom == 3
            row |= self._mover.moved(row, days, self._rng, far=far, minutes=True)
        elif freedom == 0 and set(self._mover.fields) & set(self.spec.natural):
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

    def _write(self, row: EntityRow, pattern: str, freedom: int) -> None:
        named = None
        for field, maker in sorted(self._texts.items(), key=_people_first):
            value, known = row[field], field in self.spec.natural
            if value is None or field in self._fixed or (field in self._ruled and not known):
                continue
            if not maker.is_new and (freedom < 3 or field in self._ruled):
                continue
            ref = self.relations.same_for.get(field)
            same = self._same_for.get((field, row[ref] or "")) if ref is not None else None
            like = same or maker.make(value, self._rng, named=named)
            if freedom == 3 and maker.is_new and not maker.shape.pooled:
                like = self._like_another(field, maker, pattern) or like
            row[field] = like
            named = named or (like if maker.shape.kind == "person" else None)

    def _like_another(self, field: str, maker: TextMaker, pattern: str) -> str | None:
        """A name that some other row has, or nearly has; None for most rows. Things are named like
        things of their pattern."""
        person, draw = maker.shape.kind == "person", self._rng.random()
        names = self._named.get((field, "" if person else pattern))
        if not names or draw >= NEAR_SHARE or maker.shape.kind not in ("person", "title"):
            return None
        other = self._rng.choice(names)
        if person and draw < TWIN_SHARE:
            return other
        near = near_duplicate(other, self._rng, person=person)
        return near if near is not None and maker.allows(near) else None

    def _relate(self, row: EntityRow, grown: Kin) -> None:
        for field, ref, sources in self.relations.taken_over:
            to = self.spec.fields[ref].to
            if self.spec.fields[field].type == "ref" or row[ref] is None or to is None:
                continue
            value = self._rows[to][row[ref]][sources[0]]
            row[field] = row[field] if row[field] is None or value is None else value
        if self.relations.basket is not None:
            fill(row, self.relations.basket, self._rows, grown.sibling, self._rng)
        if self._baskets:
            return
        for derivation in reversed(self.relations.derivations):
            value = computed(derivation, row, self.spec, self._rows)
            if value is not None and row[derivation.field] is not None:
                row[derivation.field] = value


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
