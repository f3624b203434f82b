"""Made-up texts that say things twice: what a young model learns to copy from what it has read.

Shortest first, because attention to what was read is found in short texts and kept in long ones:
echoes (a few words, and the same again), facts (some statements and a record of them), files
(records of several things, which are then asked for) and orders (declared functions, one of which
does what is asked, or none does). Words, names, ids, numbers and dates are drawn, so nothing can be
known by heart. No tool, domain or conversation of the datasets is in them.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.chat.declarations import declare
from records.files import write_atomic
from trainer.data.tokenizer import Tokenizer

ONSETS, NUCLEI, FIELDS = map(
    str.split,
    (
        "b br c ch d dr f g gr h j k l m n p pr qu r s st t tr v w z",
        "a e i o u ai ea ie ou",
        "name title place owner code colour size price on until phone mail street note kind count "
        "weight length state number reference address amount day person item label level rate text",
    ),
)
CODAS = ("l", "m", "n", "r", "s", "t", "nd", "rt", "", "", "", "", "")

Value = str | int | float


def words_of(tokenizer: Tokenizer) -> list[str]:
    """Those of its tokens that are letters alone."""
    spelt = (tokenizer.decode([number]).strip() for number in range(tokenizer.size))
    return sorted({token for token in spelt if re.fullmatch(r"[A-Za-z]{2,}", token)})


def echoes(count: int, words: Sequence[str], seed: int = 0) -> Iterator[str]:
    """Four to ten of the words and numbers, two or three times."""
    rng = random.Random(f"{seed} echoes")
    for _ in range(count):
        line = " ".join(
            rng.choice(words) if rng.random() < 0.8 else str(rng.randrange(100))
            for _ in range(rng.randrange(4, 11))
        )
        yield " ".join([line] * rng.choice((2, 2, 3)))


def drills(count: int, seed: int = 0) -> Iterator[str]:
    rng = random.Random(f"{seed} drills")
    kinds = rng.choices((_repeated, _stated, _file, _order), weights=(5, 9, 3, 5), k=count)
    return (kind(rng) for kind in kinds)


def _word(rng: random.Random) -> str:
    syllables = rng.choice((1, 2, 2, 3))
    parts = (rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS) for _ in range(syllables))
    return "".join(parts)


def drawn_name(rng: random.Random) -> str:
    return " ".join(_word(rng).capitalize() for _ in range(rng.choice((1, 2, 2, 3))))


def drawn_id(rng: random.Random) -> str:
    letters = "".join(rng.choices("ABCDEFGHJKLMNPRSTUVWXZ", k=rng.choice((1, 2, 2, 3))))
    return f"{letters}-{rng.randrange(10 ** rng.choice((2, 3, 4))):03d}"


def drawn_date(rng: random.Random) -> str:
    return f"20{rng.randrange(20, 30)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def drawn_words(rng: random.Random) -> str:
    return " ".join(_word(rng) for _ in range(rng.randrange(2, 6)))


VALUES: tuple[Callable[[random.Random], Value], ...] = (
    drawn_name,
    drawn_name,
    drawn_name,
    drawn_id,
    drawn_id,
    drawn_date,
    lambda rng: rng.randrange(1000),
    lambda rng: round(rng.uniform(0, 500), 2),
    drawn_words,
    lambda rng: f"{_word(rng)}@{_word(rng)}.example",
    lambda rng: f"555-{rng.randrange(10_000):04d}",
)


def _field(rng: random.Random) -> str:
    first = rng.choice(FIELDS) if rng.random() < 0.7 else _word(rng)
    return f"{_word(rng)}_{first}" if rng.random() < 0.3 else first


def _record(rng: random.Random, fields: list[str]) -> dict[str, Value]:
    return {field: rng.choice(VALUES)(rng) for field in fields}


def _repeated(rng: random.Random) -> str:
    values = [str(rng.choice(VALUES)(rng)) for _ in range(rng.randrange(2, 9))]
    line = rng.choice((" ", ", ", "\n", " | ", "', '")).join(values)
    return "\n".join([line] * rng.choice((2, 2, 3)))


STATEMENTS = ("The {} is {}.", "{}: {}", "the {} should be {},", "{} {}")


def _stated(rng: random.Random) -> str:
    """Statements, and a record of some of them; or the other way round."""
    fields = list(dict.fromkeys(_field(rng) for _ in range(rng.randrange(1, 5))))
    record = _record(rng, fields)
    if rng.random() < 0.5:
        record[f"{_word(rng)}_id"] = drawn_id(rng)
    said = " ".join(
        rng.choice(STATEMENTS).format(field.replace("_", " "), record[field])
        for field in rng.sample(list(record), len(record))
    )
    wanted = rng.sample(list(record), rng.randrange(1, len(record) + 1))
    parts = [said, json.dumps({field: record[field] for field in wanted})]
    return "\n".join(parts if rng.random() < 0.7 else reversed(parts))


def _file(rng: random.Random) -> str:
    thing = _word(rng)
    fields = list(dict.fromkeys(_field(rng) for _ in range(rng.randrange(2, 6))))
    records = [
        {f"{thing}_id": drawn_id(rng)} | _record(rng, fields) for _ in range(rng.randrange(1, 6))
    ]
    parts = [_told(rng, thing, records)]
    for _ in range(rng.randrange(2, 5)):
        record = rng.choice(records)
        parts.append(rng.choice((_as_json, _in_words, _looked_up))(rng, thing, record))
    return "\n".join(parts)


def _told(rng: random.Random, thing: str, records: list[dict[str, Value]]) -> str:
    if rng.random() < 0.5:
        return json.dumps({f"{thing}s": records})
    return "\n".join(_in_words(rng, thing, record) for record in records)


def _in_words(rng: random.Random, thing: str, record: Mapping[str, Value]) -> str:
    said = [
        f"the {thing} {field.replace('_', ' ')} is {_spoken(record[field])}" for field in record
    ]
    return f"For one {thing}, {', '.join(said[:-1])} and {said[-1]}."


def _spoken(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) and " " in value else str(value)


def _as_json(rng: random.Random, thing: str, record: Mapping[str, Value]) -> str:
    chosen = rng.sample(list(record), rng.randrange(1, len(record) + 1))
    given = ", ".join(f"{field} {_spoken(record[field])}" for field in chosen)
    return f"{given}: {json.dumps({field: record[field] for field in chosen})}"


def _looked_up(rng: random.Random, thing: str, record: Mapping[str, Value]) -> str:
    known, wanted = rng.sample(list(record), 2)
    asked = f"Which {wanted} has the {thing} with {known} {_spoken(record[known])}?"
    return f"{asked} {json.dumps({wanted: record[wanted]})}"


NO_FUNCTION = "None of them can do that."


class _Function(NamedTuple):
    verb: str
    noun: str
    parameters: dict[str, Callable[[random.Random], Value]]

    @property
    def name(self) -> str:
        return f"{self.verb}_{self.noun}"

    @property
    def wish(self) -> str:
        return f"{self.verb} the {self.noun}"

    def declared(self, rng: random.Random) -> dict[str, Any]:
        properties = {
            name: {
                "type": "string" if isinstance(example := draw(rng), str) else "number",
                "description": f"Its {name.replace('_', ' ')}, such as {example}.",
            }
            for name, draw in self.parameters.items()
        }
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        about = f"{self.wish.capitalize()}. Returns {rng.choice(FIELDS)}."
        function = {"name": self.name, "description": about, "parameters": schema}
        return {"type": "function", "function": function}


def _order(rng: random.Random) -> str:
    """What is asked is done by one of the functions; or by none, one time in four."""
    verbs = [_word(rng) for _ in range(3)]
    nouns = [_word(rng) for _ in range(3)]
    functions: list[_Function] = []
    for _ in range(rng.randrange(2, 5)):
        names = [_field(rng) for _ in range(rng.randrange(1, 4))]
        parameters = {name: rng.choice(VALUES) for name in names}
        functions.append(_Function(rng.choice(verbs), rng.choice(nouns), parameters))
    functions = list({function.name: function for function in functions}.values())
    wanted = rng.choice(functions)
    there = functions if rng.random() < 0.75 else [f for f in functions if f is not wanted]
    arguments = {name: draw(rng) for name, draw in wanted.parameters.items()}
    said = " and ".join(f"the {k.replace('_', ' ')} is {v}" for k, v in arguments.items())
    done = f"{wanted.name} {json.dumps(arguments)}" if wanted in there else NO_FUNCTION
    declared = declare([function.declared(rng) for function in there], "typescript")
    return f"{declared}\n\nPlease {wanted.wish}; {said}.\n{done}"


def write_texts(path: Path, texts: Iterator[str]) -> None:
    """As JSON lines with the column `text`."""
    write_atomic(path, "".join(json.dumps({"text": text}) + "\n" for text in texts).encode())
