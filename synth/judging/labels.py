"""People's verdicts on criteria: out as a CSV file that a spreadsheet opens, back in as rows.

A line is a criterion of a trajectory. Labels decide only whether the judge may be called calibrated
(`Rates.is_calibrated`), so the judge's own verdict is not shown to whoever labels in a file. Who
labels in the browser sees it: those labels say so (`verdict_shown`) and are counted apart wherever
the number of labels stands. Several people may label one criterion: the majority counts, once, and
how often they agree is published beside it.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from records.digest import digest
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.store.lease import hold
from records.store.waiting import lines_waiting, say_later, taken, waiting_path
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


def import_labels(dataset: Dataset, path: Path | None) -> Imported:
    """Add the file's labels to the table `labels`, after those that wait in the dataset; of no
    file, those alone.

    Good lines are added, bad ones told and left out, so nothing is lost; what is there already is
    not added again, and another label of the same labeller supersedes the first.
    """
    waited = Imported(0, 0, 0, 0, [])
    if lines_waiting(waiting_path(dataset.root, "labels")):
        with hold(dataset, run_id="labels", what="synth label import"):
            waited = commit_waiting_labels(dataset)
    if path is None:
        return waited
    given, refused, unlabelled = _read(path, _known(dataset))
    with hold(dataset, run_id="labels", what="synth label import"):
        added, changed, same = _add(dataset, given)
    return Imported(
        waited.added + added,
        waited.changed + changed,
        waited.same + same,
        unlabelled,
        [*waited.refused, *refused],
    )


def label_later(dataset: Dataset, db: duckdb.DuckDBPyConnection, label: Mapping[str, Any]) -> None:
    """Write down a label for the next writer to commit; ConfigError for one that is wrong.

    `label`: `trajectory_id`, `criterion_id`, `label`, `labeller`, `note`, and `verdict_shown`:
    whether the labeller had the verdict before the eyes. `db`: views that hold its verdicts.
    """
    if problem := _problem(label, _known_in(db, [label["trajectory_id"]])):
        raise ConfigError(problem)
    names = ("trajectory_id", "criterion_id", "label", "labeller", "note", "verdict_shown")
    say_later(waiting_path(dataset.root, "labels"), {name: label[name] for name in names})


def labels_waiting(dataset: Dataset) -> list[Row]:
    """Those that no writer has committed yet, oldest first."""
    found = map(_waiting_label, lines_waiting(waiting_path(dataset.root, "labels")))
    return [row for row in found if row is not None]


def commit_waiting_labels(dataset: Dataset) -> Imported:
    """Commit the labels that wait, for whoever holds the dataset; the last word of a labeller on a
    criterion counts. What cannot be a label of this dataset any more is told, and kept beside them
    in `labels_refused.jsonl`."""
    path, refused = waiting_path(dataset.root, "labels"), []
    with taken(path) as lines:
        known = _known(dataset) if lines else {}
        given: dict[tuple[str, str, str], Row] = {}
        for number, line in enumerate(lines, 1):
            row = _waiting_label(line)
            problem = _problem(row, known) if row else "it is no label"
            if row is None or problem:
                refused.append(f"{path.name}, line {number}: {problem}")
                say_later(waiting_path(dataset.root, "labels_refused"), {"line": line})
                continue
            kind, split = known[row["trajectory_id"], row["criterion_id"]]
            given[_key(row)] = row | {"kind": kind, "split": split}
        added, changed, same = _add(dataset, given)
    return Imported(added, changed, same, 0, refused)


def _waiting_label(line: str) -> Row | None:
    """The label, or None for a line that `label_later` has not written."""
    try:
        said = json.loads(line)
        texts = {name: str(said[name]) for name in _SAID}
        return texts | {
            "label": texts["label"].lower(),
            "verdict_shown": said["verdict_shown"] is True,
        }
    except (ValueError, KeyError, TypeError):
        return None


_SAID = ("trajectory_id", "criterion_id", "labeller", "label", "note")


def _add(dataset: Dataset, given: Mapping[tuple[str, str, str], Row]) -> tuple[int, int, int]:
    """How many are new, changed and there already. Whoever calls holds the dataset."""
    stored = {_key(row): row for row in dataset.rows("labels")} if given else {}
    new = {key: row for key, row in given.items() if key not in stored}
    changed = {key: row for key, row in given.items() if key in stored and row != stored[key]}
    if rows := [*new.values(), *changed.values()]:
        dataset.commit(
            run_id="labels",
            stage="labels",
            shard=len(dataset.commits()),
            tables={"labels": rows},
            supersedes=bool(changed),
        )
    return len(new), len(changed), len(given) - len(new) - len(changed)


_Known = Mapping[tuple[str, str], tuple[str, str]]
"""(trajectory, criterion) -> its kind and split."""


def _known(dataset: Dataset) -> _Known:
    with dataset.connect() as db:
        return _known_in(db)


def _known_in(db: duckdb.DuckDBPyConnection, trajectory_ids: Sequence[str] | None = None) -> _Known:
    """Of these trajectories; of all unless some are named."""
    found = db.execute(_VERDICTS, [trajectory_ids]).fetchall()
    return {(t, c): (kind, split) for t, c, kind, split in found}


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
        row: Row = {name: cells[name] for name in names}
        row |= {"kind": kind, "label": cells["label"].lower(), "split": split}
        row |= {"verdict_shown": False}
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


def _problem(cells: Mapping[str, Any], known: _Known) -> str | None:
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


def label_rates(db: duckdb.DuckDBPyConnection, grading_id: str) -> dict[str, Rates]:
    """The judge of a grading against people's labels, by kind. Each criterion of a trajectory
    counts once, however many labelled it: by what most of them say, `unsure` left out; a tie counts
    for nothing."""
    found = _voted(db, grading_id)
    kinds = sorted({kind for kind, *_ in found})
    return {
        k: rates_of((label, passed) for kind, label, passed, _ in found if kind == k) for k in kinds
    }


def labels_in_view(db: duckdb.DuckDBPyConnection, grading_id: str) -> Counter[str]:
    """How many of what `label_rates` counts only people labelled who had the verdict in view."""
    return Counter(kind for kind, *_, in_view in _voted(db, grading_id) if in_view)


def _voted(db: duckdb.DuckDBPyConnection, grading_id: str) -> list[tuple[str, bool, bool, bool]]:
    return db.execute(_AGREEMENT, [grading_id]).fetchall()


class Shared(NamedTuple):
    """Criteria that more than one person labelled with pass or fail."""

    num: int = 0
    agreed: int = 0
    """Those on which all of them say the same."""


def shared_labels(db: duckdb.DuckDBPyConnection) -> dict[str, Shared]:
    """How well people agree with one another, by kind."""
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
FROM verdicts WHERE $1::VARCHAR[] IS NULL OR list_contains($1::VARCHAR[], trajectory_id)
GROUP BY ALL"""

_VOTES = """
SELECT trajectory_id, criterion_id, any_value(kind) AS kind,
  count(*) FILTER (label = 'pass') AS passes, count(*) FILTER (label = 'fail') AS fails,
  bool_and(verdict_shown) FILTER (label != 'unsure') AS in_view
FROM labels GROUP BY trajectory_id, criterion_id"""

_AGREEMENT = f"""
SELECT v.kind, passes > fails, v.passed, in_view
FROM ({_VOTES}) JOIN verdicts AS v USING (trajectory_id, criterion_id)
WHERE v.grading_id = $1 AND v.checked_by = 'judge' AND passes != fails"""

_SHARED = f"""
SELECT kind, count(*), count(*) FILTER (passes = 0 OR fails = 0)
FROM ({_VOTES}) WHERE passes + fails > 1 GROUP BY kind"""
