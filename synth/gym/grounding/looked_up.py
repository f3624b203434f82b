"""Questions on the records that a dataset's tools returned, made and answered by code.

A question asks for one or two fields of a record that the results show, or for a field or a record
that they do not. Only values of which the results leave no doubt are asked for.
"""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from records.errors import ConfigError
from records.seeds import rng_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.gym.core.environment import GymSplit
from synth.gym.grounding.settings import GroundingDataset
from synth.gym.maths.splits import SplitShares, placed
from synth.rubrics.statements.known import KnownRecords, is_id, label_of, parsed
from synth.rubrics.values import moment_of, same_value, squeezed

MOST_ASKED = 2
"""Questions on the results of one episode."""

LONGEST_VALUE = 60
"""Characters of a text that is asked for."""

DAY = len("2026-11-29")
"""Characters of a date without a time."""

TWO_FIELDS = 0.4
"""Share of the answerable questions that ask for two fields."""

_ONE = (
    "What is the {fields} of {record}?",
    "Which {which} does {record} have?",
    "Tell me the {fields} of {record}.",
    "I need the {fields} of {record}. What does it say?",
)
_COLUMNS = (
    *("trajectory_id", "call_index", "name", "arguments", "observation", "is_error"),
    *("injected_outcome", "split"),
)


class LookedUp(NamedTuple):
    """One question."""

    split: GymSplit
    tool: str
    """That returned what is asked for, or the last result where nothing is there."""
    tags: tuple[str, ...]
    body: dict[str, Any]


class _Record(NamedTuple):
    name: str
    """Its id, as it is written."""
    values: dict[str, Any]
    """Of the fields that can be asked for."""
    tool: str


def questions_on(config: GroundingDataset, *, seed: int, shares: SplitShares) -> list[LookedUp]:
    """In the order of the episodes, each question in one split alone. ConfigError for a folder that
    is no dataset, or whose results show no record to ask about."""
    dataset = Dataset.open(config.path)
    rows = sorted(
        dataset.rows("tool_calls", _COLUMNS), key=lambda r: (r["trajectory_id"], r["call_index"])
    )
    episodes = [list(own) for _, own in groupby(rows, key=lambda row: row["trajectory_id"])]
    fields = sorted({name for own in episodes for one in _records(own) for name in one.values})
    found: list[LookedUp] = []
    splits: dict[str, GymSplit] = {}
    # what is held out comes first, so that no question of it is learnt from
    for own in sorted(episodes, key=lambda own: own[0]["split"] == "train"):
        rng = rng_of(f"grounding-{seed}", own[0]["trajectory_id"])
        for asked in _asked(own, config, fields, rng):
            question = asked.body["question"]
            of_train = placed(question, shares).split
            split: GymSplit = of_train if own[0]["split"] == "train" else "heldout"
            if splits.setdefault(question, split) == split:
                found.append(asked._replace(split=split))
        if len(found) >= config.tasks:
            break
    if not found:
        raise ConfigError(
            f"gym.families.grounding.datasets: the results in {config.path} show no record with an "
            "id of its own; name another dataset, or raise results or most_chars"
        )
    return found[: config.tasks]


def _asked(
    calls: Sequence[Row], config: GroundingDataset, fields: Sequence[str], rng: random.Random
) -> Iterator[LookedUp]:
    shown = _shown(calls, config)
    records = _records(shown)
    if not records:
        return
    results = [{"name": row["name"], "result": parsed(row["observation"])} for row in shown]
    corpus = squeezed(json.dumps(results, ensure_ascii=False, default=str))
    for record in rng.sample(records, min(MOST_ASKED, len(records))):
        names: list[str] = []
        kind = "lookup"
        asked = record.name
        if rng.random() < config.unanswerable:
            missing = [name for name in fields if squeezed(label_of(name)) not in corpus]
            if missing and rng.random() < 0.5:
                kind, names = "missing_field", [rng.choice(missing)]
            elif other := _unheard(record.name, corpus, rng):
                kind, asked, names = "missing_record", other, [rng.choice([*record.values])]
        if kind == "lookup":
            count = 2 if len(record.values) > 1 and rng.random() < TWO_FIELDS else 1
            names = rng.sample([*record.values], count)
        if not names:
            continue
        labels = [label_of(name) for name in names]
        question = rng.choice(_ONE).format(
            fields=" and the ".join(labels), which=" and which ".join(labels), record=asked
        )
        is_there = kind == "lookup"
        body = {
            "question": question,
            "documents": [],
            "results": results,
            "answerable": is_there,
            "answers": [str(record.values[name]) for name in names] if is_there else [],
            "record": asked if is_there else None,
            "fields": names if is_there else [],
            "missing": None if is_there else label_of(names[0]),
        }
        tags = (f"kind:{kind}", f"level:{len(names)}")
        yield LookedUp("train", record.tool, tags, body)


def _shown(calls: Sequence[Row], config: GroundingDataset) -> list[Row]:
    """The last results of an episode that succeeded, as many as there is room for."""
    left = config.most_chars
    shown: list[Row] = []
    for row in reversed(calls):
        if row["is_error"] or row["injected_outcome"] or len(shown) == config.results:
            continue
        if isinstance(parsed(row["observation"]), dict | list) and len(row["observation"]) <= left:
            left -= len(row["observation"])
            shown.append(row)
    return shown[::-1]


def _records(calls: Sequence[Row]) -> list[_Record]:
    """Those that the results tell apart, with the fields whose value is in no doubt."""
    found: list[_Record] = []
    as_calls = [row | {"arguments": {}, "state_diff": None} for row in calls]
    known = KnownRecords([], as_calls)
    for own, rows in known.of_record.items():
        values = {}
        for field in dict.fromkeys(name for row in rows for name in row.values):
            now = known.now_of(own, field)
            if now and _can_be_asked(now[-1]) and all(same_value(now[-1], one) for one in now):
                values[field] = now[-1]
        name = next(v for v in rows[0].values.values() if isinstance(v, str) and v.lower() == own)
        if values:
            tool = rows[0].source.removesuffix(" returned")
            found.append(_Record(name, values, tool))
    return found


def _can_be_asked(value: Any) -> bool:
    if isinstance(value, str):
        # a day with its time is retold in two values, which code cannot tell are one
        is_moment = len(value) > DAY and moment_of(value) is not None
        return 0 < len(value) <= LONGEST_VALUE and not is_id(value) and not is_moment
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unheard(name: str, corpus: str, rng: random.Random) -> str | None:
    """An id of the same make that stands nowhere."""
    for _ in range(20):
        other = "".join(str(rng.randrange(10)) if c.isdigit() else c for c in name)
        if squeezed(other) not in corpus:
            return other
    return None
