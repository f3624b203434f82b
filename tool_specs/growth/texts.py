"""Values for the text fields of grown rows: new ones of the seed's form, each of one split.

Every kind has ever longer forms to choose from, by `attempt`, so that a split never runs out of
values: a second word, then a number.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from records.tables.splits import Split
from tool_specs.growth.partition import fits
from tool_specs.growth.text_kinds import TextShape, words

TRIES = 400
"""Values that are looked at for one that the split may use; nine in ten belong to others."""

_COUNTED = re.compile(
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|alpha|beta|gamma|delta"
    "|left|right|[a-d]|i{1,3}|iv",
    re.IGNORECASE,
)


class NoValueError(Exception):
    """No text of the field's form fits its bounds and the split."""


class TextMaker:
    """The texts of one field, by the seed's: `values`, with repeats."""

    def __init__(
        self,
        shape: TextShape,
        values: Sequence[str],
        split: Split,
        *,
        longest: int | None = None,
        least: int = 0,
        factor: float = 1.0,
    ) -> None:
        """`factor`: how many times as many rows as the seed has; a pool of values grows by its
        root."""
        self.shape = shape
        self.split: Split = split
        self.values = list(values)
        self._least, self._longest = least, longest or 2000
        self._pool: list[str] = []
        self._pool_size = max(1, round(len(set(values)) * factor**0.5))
        self._ends = _end_that_varies(values)
        self._domains = [v.rsplit("@", 1)[-1] for v in values if "@" in v] or ["mail.example"]
        makers: dict[str, Callable[[str, int, Random], str]] = {
            "person": lambda template, attempt, rng: person(attempt, rng),
            "email": lambda template, attempt, rng: self._email(person(attempt, rng), attempt, rng),
            "phone": _phone,
            "town": lambda template, attempt, rng: _town(attempt, rng),
            "address": _address,
            "code": _code,
            "slug": _slug,
            "note": _note,
            "title": self._title,
        }
        self._maker = makers.get(shape.kind)

    @property
    def is_new(self) -> bool:
        """Whether the field gets values of its own, and not those of the seed."""
        return self._maker is not None

    def make(self, template: str, rng: Random, *, named: str | None = None) -> str:
        """A text in place of the template's; `named` is the person whom the row is about."""
        if self._maker is None:
            return rng.choice(self.values) if rng.random() < 0.2 else template
        if not self.shape.pooled:
            return self._new(template, rng, named)
        if len(self._pool) < self._pool_size:
            self._pool.append(self._new(template, rng, named))
        return self._pool[int(len(self._pool) * rng.random() ** 2)]

    def _new(self, template: str, rng: Random, named: str | None) -> str:
        assert self._maker is not None
        for attempt in range(TRIES):
            if named is not None and self.shape.kind == "email":
                text = self._email(named, attempt, rng)
            else:
                text = self._maker(template, attempt, rng)
            if self.allows(text):
                return text
        raise NoValueError(f"no {self.shape.kind} like {template!r} is left for {self.split}")

    def allows(self, text: str) -> bool:
        """Whether the text is new, fits the field, and belongs to the split."""
        return (
            self._least <= len(text) <= self._longest
            and fits(text, self.split)
            and text not in self.values
        )

    def _email(self, name: str, attempt: int, rng: Random) -> str:
        parts = re.sub(r"[^a-z ]", "", name.lower()).split() or ["desk"]
        forms = (".".join(parts), parts[0][0] + "." + parts[-1], parts[0] + "." + parts[-1][0])
        local = forms[rng.randrange(3) if attempt else 0]
        if attempt > 2:
            local += str(rng.randint(1, 99 if attempt < 12 else 9999))
        return f"{local}@{rng.choice(self._domains)}"

    def _title(self, template: str, attempt: int, rng: Random) -> str:
        thing = _thing(attempt, rng)
        first, *rest = template.split()
        if self._ends == "first" and rest:
            head = thing if first[:1].isupper() else thing.lower()
            return " ".join([head, *rest])
        if self._ends == "last" and rest:
            last = template.split()[-1]
            counted = last.isdigit() or _COUNTED.fullmatch(last) is not None
            end = str(rng.randint(10, 99 * 10 ** min(attempt // 8, 2))) if counted else thing
            return " ".join([*template.split()[:-1], end])
        return f"{template} {thing}" if template[:1].isupper() else f"{template} {thing.lower()}"


def person(attempt: int, rng: Random) -> str:
    first, last = rng.choice(words()["first_names"]), rng.choice(words()["last_names"])
    if attempt > 60:
        first = f"{first} {rng.choice(words()['first_names'])}"
    return f"{first} {last}"


def _thing(attempt: int, rng: Random) -> str:
    names = words()["things"]
    if attempt < 6:
        return rng.choice(names)
    two = f"{rng.choice(names)} {rng.choice(names)}"
    return two if attempt < 60 else f"{two} {rng.randint(2, 999)}"


def _town(attempt: int, rng: Random) -> str:
    towns = words()["towns"]
    if attempt < 40:
        return rng.choice(towns)
    return f"{rng.choice(towns)}-{rng.choice(words()['things'])}"


def _end_that_varies(values: Sequence[str]) -> str:
    """Which end tells the values apart: `first` where they share last words (two tents), `last`
    where they share first ones (rooms by number), else `neither`."""
    parts = [v.split() for v in dict.fromkeys(values) if len(v.split()) > 1]
    shared_last = sum(n for n in Counter(p[-1] for p in parts).values() if n > 1)
    shared_first = sum(n for n in Counter(p[0] for p in parts).values() if n > 1)
    if max(shared_first, shared_last) * 3 < len(parts):
        return "neither"
    return "first" if shared_last >= shared_first else "last"


def _phone(template: str, attempt: int, rng: Random) -> str:
    """Digits after the last 555 change, which no real number has there; then an extension."""
    start = template.rfind("555") + 3 if "555" in template else len(template) // 2
    text = template[:start] + _other_digits(template[start:], rng)
    return text if attempt < 8 else f"{text} ext. {rng.randint(2, 9 * 10 ** min(attempt // 8, 4))}"


def _other_digits(text: str, rng: Random) -> str:
    return re.sub(r"\d", lambda found: str(rng.randrange(10)), text)


def _code(template: str, attempt: int, rng: Random) -> str:
    """Other digits and, in time, letters; then more digits."""

    def other(found: re.Match[str]) -> str:
        run = found[0]
        length = len(run) + min(attempt // 6, 4)
        low = 10 ** (length - 1) if run[0] != "0" or length > len(run) else 0
        return f"{rng.randint(low, 10**length - 1):0{length}d}"

    runs = list(re.finditer(r"\d+", template))
    if not runs:
        return f"{template}{rng.randint(1, 10 ** (1 + min(attempt // 6, 6)))}"
    last = runs[-1]
    text = template[: last.start()] + other(last) + template[last.end() :]
    if attempt > 3 and re.fullmatch(r"[A-Z]{1,3}[ -].*", text):
        letters = re.match(r"[A-Z]+", text)
        assert letters is not None
        new = "".join(rng.choice("ABCDEFGHKLMNPRSTVWXZ") for _ in letters[0])
        text = new + text[letters.end() :]
    return text


def _slug(template: str, attempt: int, rng: Random) -> str:
    """Another first word; then a number before the last part."""
    thing = _thing(attempt, rng).lower().replace(" ", "-")
    found = re.search(r"[A-Za-z]{2,}", template)
    if found is None:
        return _code(template, attempt, rng)
    return template[: found.start()] + thing + template[found.end() :]


def _address(template: str, attempt: int, rng: Random) -> str:
    name = rng.choice(words()["things"] if rng.random() < 0.5 else words()["last_names"])
    street, number = f"{name} {rng.choice(words()['streets'])}", rng.randint(1, 160)
    text = f"{number} {street}" if template[:1].isdigit() else f"{street} {number}"
    return f"{text}, {rng.choice(words()['towns'])}" if "," in template else text


def _note(template: str, attempt: int, rng: Random) -> str:
    """The seed's note, and a clause on who knows or what is to come."""

    def clause() -> str:
        text = rng.choice(words()["clauses"])
        return text.format(town=rng.choice(words()["towns"]), person=person(0, rng))

    text = template.rstrip(".")
    for _ in range(1 + (attempt > 20)):
        text += f", {clause()}"
    return text + ("." if template.endswith(".") else "")
