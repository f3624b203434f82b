"""People's verdicts on criteria: out as a CSV file that a spreadsheet opens, back in as rows.

A line is a criterion of a trajectory. Labels decide only whether the judge may be called calibrated
(`Rates.is_calibrated`), so the judge's own verdict is not shown to whoever labels. Several people
may label one criterion: the majority counts, once, and how often they agree is published beside it.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.store.lease import hold
from records.tables.schemas import Row
from synth.judging.judge_rates import Rates, rates_of
from synth.judging.transcript import ANOTHER, instructions_of
from synth.render.foreign_text import visible
from synth.rubrics.criteria import JUDGED
from synth.rubrics.reading.messages import text_of
from synth.rubrics.standing import STANDING, USER_PART

COLUMNS = (
    "trajectory_id",
    "criterion_id",
    "kind",
    "criterion",
    "instructions",
    "conversation",
    "label",
    "labeller",
    "note",
)
LABELS = ("pass", "fail", "unsure")

TEXT_CHARS = 30_000
"""Of one cell: spreadsheets cut off above 32,767."""

MAX_BYTES = 200_000_000
"""Of a file that is read back."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'", "|", "%")
"""What makes a spreadsheet take a cell for a formula, and the mark that says that it is none."""


class Imported(NamedTuple):
    added: int
    changed: int
    same: int
    unlabelled: int
    """Lines whose label is empty."""
    refused: list[str]
    """Line, value and what is allowed."""


def export_labels(
    dataset: Dataset, out: Path, *, count: int = 100, kind: str = JUDGED, seed: int = 0
) -> int:
    """Write a file to be labelled, of verdicts of the newest gradings that have no label yet; the
    number of lines. ConfigError where there is none, or `out` exists."""
    if out.exists():
        raise ConfigError(f"{out} exists already; name another file")
    with dataset.connect() as db:
        found = db.execute(_TO_LABEL, [kind, USER_PART.id]).fetchall()
    if not found:
        raise ConfigError(f"{dataset.root} has no criterion of kind {kind!r} without a label")
    found.sort(key=lambda pair: digest("labels", seed, *pair))
    chosen = found[:count]
    with dataset.connect() as db:
        ids = sorted({trajectory_id for trajectory_id, _ in chosen})
        told = db.execute(_TEXTS, [ids]).fetchall()
    rubrics = {i: json.loads(rubric or "null") for i, rubric, _ in told}
    messages: dict[str, list[Any]] = {i: [] for i in rubrics}
    for i, _, part in told:  # an episode's conversations, in their order
        messages[i] += json.loads(part or "[]")
    added = _added_words(dataset)
    with out.open("x", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        for trajectory_id, criterion_id in chosen:
            criteria = (rubrics[trajectory_id] or {}).get("criteria", ())
            words = added | {c["id"]: c["words"] for c in criteria}
            texts = [
                trajectory_id,
                criterion_id,
                kind,
                words.get(criterion_id, ""),
                instructions_of(messages[trajectory_id]),
                _told(messages[trajectory_id]),
                "",
                "",
                "",
            ]
            writer.writerow([_cell(text) for text in texts])
    return len(chosen)


def import_labels(dataset: Dataset, path: Path) -> Imported:
    """Add the file's labels to the table `labels`.

    Good lines are added, bad ones told and left out, so nothing is lost; what is there already is
    not added again, and another label of the same labeller supersedes the first.
    """
    given, refused, unlabelled = _read(path, _known(dataset))
    stored = {_key(row): row for row in dataset.rows("labels")}
    new = {key: row for key, row in given.items() if key not in stored}
    changed = {key: row for key, row in given.items() if key in stored and row != stored[key]}
    if rows := [*new.values(), *changed.values()]:
        with hold(dataset, run_id="labels", what="synth label import"):
            dataset.commit(
                run_id="labels",
                stage="labels",
                shard=len(dataset.commits()),
                tables={"labels": rows},
                supersedes=bool(changed),
            )
    same = len(given) - len(new) - len(changed)
    return Imported(len(new), len(changed), same, unlabelled, refused)


_Known = Mapping[tuple[str, str], tuple[str, str]]
"""(trajectory, criterion) -> its kind and split."""


def _known(dataset: Dataset) -> _Known:
    with dataset.connect() as db:
        return {(t, c): (kind, split) for t, c, kind, split in db.execute(_VERDICTS).fetchall()}


def _key(row: Row) -> tuple[str, str, str]:
    return row["trajectory_id"], row["criterion_id"], row["labeller"]


def _read(path: Path, known: _Known) -> tuple[dict[tuple[str, str, str], Row], list[str], int]:
    given: dict[tuple[str, str, str], Row] = {}
    refused: list[str] = []
    unlabelled = 0
    for line, cells in _lines(path):
        if not cells["label"]:
            unlabelled += 1
            continue
        if problem := _problem(cells, known):
            refused.append(f"{line}: {problem}")
            continue
        kind, split = known[cells["trajectory_id"], cells["criterion_id"]]
        names = ("trajectory_id", "criterion_id", "labeller", "note")
        row = {name: cells[name] for name in names}
        row |= {"kind": kind, "label": cells["label"].lower(), "split": split}
        if (earlier := given.get(_key(row))) and earlier["label"] != row["label"]:
            words = f"label = {cells['label']!r}: the same labeller says {earlier['label']!r} above"
            refused.append(f"{line}: {words}")
            continue
        given[_key(row)] = row
    return given, refused, unlabelled


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Where the row is, for people, and its cells by column."""
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path} has {len(data)} bytes; at most {MAX_BYTES} are read")
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {error}") from error
    csv.field_size_limit(MAX_BYTES)
    # spreadsheets of some countries write semicolons
    head = text.split("\n", 1)[0]
    reader = csv.reader(
        io.StringIO(text), delimiter=";" if head.count(";") > head.count(",") else ","
    )
    names = [name.strip().lower() for name in next(reader, [])]
    needed = ("trajectory_id", "criterion_id", "label", "labeller")
    if missing := [name for name in needed if name not in names]:
        raise ConfigError(f"{path}: the first line lacks {', '.join(missing)}; it has {names}")
    try:
        for number, row in enumerate(reader, 2):
            if not any(cell.strip() for cell in row):
                continue
            cells = dict.fromkeys(COLUMNS, "") | dict(zip(names, row, strict=False))
            yield (
                f"line {reader.line_num} (row {number})",
                {name: _uncelled(text) for name, text in cells.items()},
            )
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.line_num}: {error}") from error


def _problem(cells: Mapping[str, str], known: _Known) -> str | None:
    if cells["label"].lower() not in LABELS:
        return f"label = {cells['label'][:100]!r}; allowed: {', '.join(LABELS)}, or nothing"
    if not cells["labeller"]:
        return "labeller is empty; say who labelled"
    if len(cells["labeller"]) > 100:
        return f"labeller = {cells['labeller'][:100]!r}...: at most 100 characters"
    if (cells["trajectory_id"], cells["criterion_id"]) not in known:
        pair = f"{cells['trajectory_id'][:100]!r}, criterion_id = {cells['criterion_id'][:100]!r}"
        return f"trajectory_id = {pair}: the dataset has no such verdict"
    return None


def label_rates(dataset: Dataset, grading_id: str) -> dict[str, Rates]:
    """The judge of a grading against people's labels, by kind. Each criterion of a trajectory
    counts once, however many labelled it: by what most of them say, `unsure` left out; a tie counts
    for nothing."""
    with dataset.connect() as db:
        found = db.execute(_AGREEMENT, [grading_id]).fetchall()
    kinds = sorted({kind for kind, _, _ in found})
    return {
        k: rates_of((label, passed) for kind, label, passed in found if kind == k) for k in kinds
    }


class Shared(NamedTuple):
    """Criteria that more than one person labelled with pass or fail."""

    num: int = 0
    agreed: int = 0
    """Those on which all of them say the same."""


def shared_labels(dataset: Dataset) -> dict[str, Shared]:
    """How well people agree with one another, by kind."""
    with dataset.connect() as db:
        return {kind: Shared(n, agreed) for kind, n, agreed in db.execute(_SHARED).fetchall()}


def _added_words(dataset: Dataset) -> dict[str, str]:
    """Of criteria that no rubric of a task has: standing ones, and those that a grading added."""
    words = {criterion.id: criterion.words for criterion in STANDING}
    for row in dataset.rows("runs", ["happened_at", "config"]):
        patch = ((row["config"] or {}).get("judging") or {}).get("rubric") or {}
        words |= {c["id"]: c["words"] for c in patch.get("add", ())}
    return words


def _told(messages: Iterable[Mapping[str, Any]]) -> str:
    """The conversation as people read one, or all of an episode."""
    lines: list[str] = []
    for message in messages:
        if message["role"] == "system":
            lines += [ANOTHER] * bool(lines)
            continue
        who = {"user": "USER", "assistant": "ASSISTANT", "tool": "RESULT"}.get(message["role"])
        text = text_of(message)
        if text:
            lines.append(f"{who}: {text}" if who else text)
        for call in message.get("tool_calls") or ():
            lines.append(f"CALL: {call['function']['name']} {call['function']['arguments']}")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    text = visible(text)[:TEXT_CHARS]
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text


def _uncelled(text: str) -> str:
    text = text.strip()
    return text[1:] if text.startswith("'") else text


_TO_LABEL = """
SELECT DISTINCT trajectory_id, criterion_id
FROM verdicts AS v JOIN trajectories USING (trajectory_id, grading_id)
WHERE v.kind = $1 AND v.checked_by = 'judge' AND v.criterion_id != $2
  AND (trajectory_id, criterion_id) NOT IN (SELECT (trajectory_id, criterion_id) FROM labels)
ORDER BY ALL"""

_TEXTS = """
SELECT coalesce(episode_id, trajectory_id) AS episode, rubric, messages
FROM trajectories JOIN tasks USING (task_id)
WHERE parent_call_id IS NULL AND list_contains($1, coalesce(episode_id, trajectory_id))
ORDER BY episode, session"""

_VERDICTS = """
SELECT trajectory_id, criterion_id, any_value(kind), any_value(split)
FROM verdicts GROUP BY ALL"""

_VOTES = """
SELECT trajectory_id, criterion_id, any_value(kind) AS kind,
  count(*) FILTER (label = 'pass') AS passes, count(*) FILTER (label = 'fail') AS fails
FROM labels GROUP BY trajectory_id, criterion_id"""

_AGREEMENT = f"""
SELECT v.kind, passes > fails, v.passed
FROM ({_VOTES}) JOIN verdicts AS v USING (trajectory_id, criterion_id)
WHERE v.grading_id = $1 AND v.checked_by = 'judge' AND passes != fails"""

_SHARED = f"""
SELECT kind, count(*), count(*) FILTER (passes = 0 OR fails = 0)
FROM ({_VOTES}) WHERE passes + fails > 1 GROUP BY kind"""
