"""Accepted trajectories as files for other trainers, with a dataset card.

`hf` is a folder that `datasets.load_dataset` reads: Parquet with messages and tools as Arrow JSON
columns (`datasets.Json()` there), so that objects of different shapes never fill each other with
nulls. Arguments of calls are objects in it: chat templates apply `tojson` to them and would encode
a string a second time. `openai` is JSON lines as OpenAI's own interfaces take them: arguments are
text, there are no keys but theirs, and `weight` is 0 on assistant messages without loss. Thoughts
of agents stay out unless they are asked for: as the field `reasoning_content`, which `hf` has room
for and OpenAI's form has not, or between marks in the content.

A row is exported when it was accepted, by a judge's word beside code's (what code alone accepted
needs a flag), may be trained on (held-out rows need a flag, and get splits of their own) and shows
only tools of known licence (others need a flag). The rest is counted by reason. Every row carries
what the judge's word on it is worth: in columns, and beside JSON lines, which take no key of ours,
in `marks.csv`. A sub-agent's conversation is a row of its own, exported with its episode's row.
The folder appears whole or not at all.
"""

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from records.digest import ordered_json
from records.errors import ConfigError, ItemError
from records.new_folder import new_folder
from records.store.dataset import Dataset
from records.tables.schemas import JSON, STR, STRS, Row
from records.tables.splits import SPLITS
from records.tables.tables import TABLES
from synth.judging.judge_report import JUDGE_MARK, calibrated_gradings
from synth.publish.dataset_card import Contents, write_card
from synth.publish.export_messages import (
    Reasoning,
    in_openai_form,
    num_text_arguments,
    num_thoughts,
    what_is_wrong,
    with_object_arguments,
    with_reasoning,
)

Format = Literal["hf", "openai"]

UNKNOWN = "unknown"
"""Licence of a tool that states none."""

FILE_ROWS = 50_000
"""Rows of one Parquet file: some hundred MB of conversations."""

BATCH_ROWS = 1_000
"""Rows in memory at once, and of a row group."""

_STORED = TABLES["trajectories"].schema
_AS_STORED = (
    "task_id",
    "server",
    "variant",
    "attempt",
    "seed",
    "num_messages",
    "num_turns",
    "num_user_turns",
    "num_tool_calls",
    "num_errors",
    "num_recovered",
    "executed_by",
    "injected_outcomes",
    "termination_reason",
    "outcome",
    "objective_reward",
    "models",
    "prompt_versions",
    "run_id",
    "episode_id",
    "session",
    "parent_call_id",
)
COLUMNS: dict[str, pa.DataType] = {
    "trajectory_id": STR,
    "split": STR,
    "messages": JSON,
    "tools": JSON,
    "train_turns": pa.list_(pa.bool_()),
    "weight": pa.float64(),
    "domain": STR,
    "category": STR,
    "complexity": STR,
    "score": pa.float64(),
    "tool_licenses": STRS,
    "judge_mark": STR,
    "decided_by": STR,
    "self_judged": pa.bool_(),
    **{name: _STORED.field(name).type for name in _AS_STORED},
}
"""Of the `hf` form, in order."""

MARKS = (
    "split",
    "trajectory_id",
    "judge_mark",
    "decided_by",
    "self_judged",
    "episode_id",
    "parent_call_id",
)
"""Columns of `marks.csv`: a line a row, in the order of the splits' files."""


class Exported(NamedTuple):
    out: str
    format: str
    rows: dict[str, int]
    """By split."""
    left_out: dict[str, int]
    """Trajectories of the dataset that were not exported, by reason."""
    text_arguments: int
    """Calls whose arguments are no JSON object: the text that the model wrote stands there."""
    thoughts: int
    """Messages of agents that carry their thought."""


def export_dataset(
    dataset: Dataset,
    out: Path,
    *,
    format: Format = "hf",
    include_heldout: bool = False,
    include_unknown_license: bool = False,
    include_code_alone: bool = False,
    reasoning: Reasoning = "none",
) -> Exported:
    """Write the folder `out`, which must not exist.

    ConfigError when nothing is left to export; ItemError, naming the trajectory, when an accepted
    conversation is one that no trainer could take. Nothing is written then.
    """
    if format not in ("hf", "openai"):
        raise ConfigError(f"format must be hf or openai, got {format!r}")
    if format == "openai" and reasoning == "field":
        raise ConfigError(
            "OpenAI's form has no field for thoughts; think writes them into the content, between "
            "<think> and </think>"
        )
    selection = select(
        dataset,
        include_heldout=include_heldout,
        include_unknown_license=include_unknown_license,
        include_code_alone=include_code_alone,
    )
    with new_folder(out) as folder, dataset.connect() as db:
        db.register("chosen", selection.table())
        write = _write_hf if format == "hf" else _write_openai
        written = write(folder, db, selection, reasoning)
        exported = Exported(
            out=str(out),
            format=format,
            rows={split: len(ids) for split, ids in selection.ids.items()},
            left_out=dict(selection.left_out),
            text_arguments=written.text_arguments,
            thoughts=written.thoughts,
        )
        contents = Contents(
            name=out.absolute().name,
            format=format,
            rows=exported.rows,
            left_out=exported.left_out,
            text_arguments=written.text_arguments,
            reasoning=reasoning,
            thoughts=written.thoughts,
            tools_by_license=dict(selection.tools),
            columns=COLUMNS if format == "hf" else {},
        )
        write_card(folder, dataset, db, contents)
    return exported


@dataclass
class Selection:
    """What will be exported, decided before any conversation is read."""

    ids: dict[str, list[str]] = field(default_factory=dict)
    """Trajectory ids by split, in the order in which they are written; no split is empty."""
    licenses: dict[str, list[str]] = field(default_factory=dict)
    """Of each chosen trajectory: the licences of the tools that it shows, sorted."""
    tools: Counter[str] = field(default_factory=Counter)
    """Number of different tools that chosen trajectories show, by licence."""
    left_out: Counter[str] = field(default_factory=Counter)
    calibrated: list[str] = field(default_factory=list)
    """Gradings whose judge may be called calibrated."""

    def table(self) -> pa.Table:
        chosen = [(i, split, at) for split, ids in self.ids.items() for at, i in enumerate(ids)]
        return pa.table(
            {
                "trajectory_id": pa.array([i for i, _, _ in chosen], STR),
                "chosen_split": pa.array([split for _, split, _ in chosen], STR),
                "place": pa.array([at for _, _, at in chosen], pa.int64()),
                "tool_licenses": pa.array([self.licenses[i] for i, _, _ in chosen], STRS),
            }
        )


def select(
    dataset: Dataset,
    *,
    include_heldout: bool,
    include_unknown_license: bool,
    include_code_alone: bool,
) -> Selection:
    """Every trajectory of the dataset, chosen or counted by the reason why it is not. A curation
    that did not note whose word decided leaves nothing out for that."""
    license_of = {t["tool_id"]: t["license"] for t in dataset.rows("tools", ["tool_id", "license"])}
    agents = dataset.rows("agents", ["agent_id", "tool_ids"])
    tools_of = {agent["agent_id"]: agent["tool_ids"] for agent in agents}
    with dataset.connect() as db:
        rows = db.execute(
            "SELECT trajectory_id, split, agent_id, accepted, decided_by FROM trajectories "
            "ORDER BY 1"
        ).fetchall()
    selection = Selection({split: [] for split in SPLITS}, calibrated=calibrated_gradings(dataset))
    shown: dict[str, str] = {}
    for trajectory_id, split, agent_id, accepted, decided_by in rows:
        # of an agent that the dataset does not hold nobody knows the tools
        tools = {i: license_of.get(i) or UNKNOWN for i in tools_of.get(agent_id, [f"? {agent_id}"])}
        if not accepted:
            selection.left_out["not_accepted"] += 1
        elif decided_by == "code" and not include_code_alone:
            selection.left_out["code_alone"] += 1
        elif split != "train" and not include_heldout:
            selection.left_out["held_out"] += 1
        elif UNKNOWN in tools.values() and not include_unknown_license:
            selection.left_out["unknown_license"] += 1
        else:
            selection.ids[split].append(trajectory_id)
            selection.licenses[trajectory_id] = sorted(set(tools.values()))
            shown |= tools
    selection.tools = Counter(shown.values())
    selection.ids = {split: ids for split, ids in selection.ids.items() if ids}
    if not selection.ids:
        raise ConfigError(nothing_left("trajectory", dataset, selection.left_out))
    return selection


_LET_IN = {
    "flagged": "--include-flagged",
    "code_alone": "--include-code-alone",
    "held_out": "--include-heldout",
    "unknown_license": "--include-unknown-license",
}
"""Reason for which a row is left out -> the option that lets it in."""


def nothing_left(what: str, dataset: Dataset, left_out: Mapping[str, int]) -> str:
    """The error where no `what` of a dataset is left to export, with the options that would help;
    `left_out`: how many by reason."""
    counts = ", ".join(f"{n} {reason}" for reason, n in left_out.items()) or "there is none"
    advice = [option for reason, option in _LET_IN.items() if reason in left_out]
    return f"no {what} of {dataset.root} can be exported: {counts}" + (
        f"; to let some in, add {' or '.join(advice)}" if advice else ""
    )


@dataclass
class _Written:
    """Counts of what was written."""

    reasoning: Reasoning
    text_arguments: int = 0
    thoughts: int = 0

    def messages(self, row: Row) -> list[dict[str, Any]]:
        """The row's messages with their thoughts as told, counted."""
        self.text_arguments += num_text_arguments(row["messages"])
        self.thoughts += num_thoughts(row["messages"], self.reasoning)
        return with_reasoning(row["messages"], self.reasoning)


def _write_hf(
    folder: Path, db: duckdb.DuckDBPyConnection, selection: Selection, reasoning: Reasoning
) -> _Written:
    """Parquet files named as `load_dataset` expects."""
    (folder / "data").mkdir()
    written = _Written(reasoning)
    schema = pa.schema(list(COLUMNS.items()))
    for split, ids in selection.ids.items():
        num_files = -(-len(ids) // FILE_ROWS)
        for index in range(num_files):
            path = folder / "data" / f"{split}-{index:05d}-of-{num_files:05d}.parquet"
            # a handle of ours: its errors carry the system's number, and it can be synced
            with path.open("wb") as handle:
                with pq.ParquetWriter(handle, schema, compression="zstd") as parquet:
                    for rows in _rows(
                        db, split, index * FILE_ROWS, FILE_ROWS, selection.calibrated
                    ):
                        for row in rows:
                            objects = with_object_arguments(written.messages(row))
                            row["messages"] = ordered_json(objects)  # as the model wrote them
                        parquet.write_table(_table(rows, schema))
                handle.flush()
                os.fsync(handle.fileno())
    return written


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    arrays = []
    for column in schema:
        values = [row[column.name] for row in rows]
        if column.type == JSON:
            arrays.append(pa.ExtensionArray.from_storage(JSON, pa.array(values, STR)))
        else:
            arrays.append(pa.array(values, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_openai(
    folder: Path, db: duckdb.DuckDBPyConnection, selection: Selection, reasoning: Reasoning
) -> _Written:
    """One JSON-lines file a split, and the marks."""
    written = _Written(reasoning)
    marks: list[list[Any]] = []
    for split, ids in selection.ids.items():
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as handle:
            for rows in _rows(db, split, 0, len(ids), selection.calibrated):
                for row in rows:
                    marks.append([row[name] for name in MARKS])
                    own = in_openai_form(written.messages(row), row["train_turns"])
                    line: Row = {"messages": own}
                    if tools := json.loads(row["tools"] or "[]"):  # an empty list is refused
                        line["tools"] = tools
                    # ASCII: some readers split lines at characters that JSON leaves as they are
                    handle.write(json.dumps(line) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
    with (folder / "marks.csv").open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([MARKS, *marks])
        handle.flush()
        os.fsync(handle.fileno())
    return written


def _rows(
    db: duckdb.DuckDBPyConnection, split: str, start: int, count: int, calibrated: list[str]
) -> Iterator[list[Row]]:
    """The split's rows from place `start` on, in order, some at a time; messages parsed."""
    # a relation, because rows of `execute` are copied once more on their way to Arrow
    chosen = db.sql(_CHOSEN, params=[split, start, start + count, calibrated])
    for batch in chosen.to_arrow_reader(BATCH_ROWS):
        rows = batch.to_pylist()
        for row in rows:
            row["messages"] = json.loads(row["messages"] or "[]")
            if wrong := what_is_wrong(row["messages"]):
                raise ItemError(
                    "untrainable",
                    f"trajectory {row['trajectory_id']} was accepted and {wrong}; "
                    "nothing was exported",
                )
        yield rows


_CHOSEN = f"""
SELECT t.trajectory_id, t.split, t.messages, t.tools, t.train_turns, 1.0::DOUBLE AS weight,
  chosen.tool_licenses, t.score, {JUDGE_MARK} AS judge_mark, t.decided_by, t.self_judged,
  d.name AS domain, d.category, k.complexity, {", ".join(f"t.{name}" for name in _AS_STORED)}
FROM chosen
JOIN trajectories AS t USING (trajectory_id)
LEFT JOIN domains AS d USING (domain_id)
LEFT JOIN tasks AS k ON k.task_id = t.task_id
WHERE chosen_split = $1 AND place >= $2 AND place < $3
ORDER BY place"""
