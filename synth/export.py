"""Accepted trajectories as files for other trainers, with a dataset card.

`hf` is Parquet for `datasets.load_dataset`. `messages` and `tools` are Arrow JSON columns: Arrow
structs would give every call the keys of every other call, filled with nulls. Arguments are
objects there, because chat templates apply `tojson` to them and would encode text a second time;
text that the model wrote and that is no JSON object stays text. `openai` is JSON lines of the wire
form, where arguments are always text.

The folder appears under its name once it is whole, or not at all.
"""

import io
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from records.errors import ConfigError
from records.files import write_atomic
from records.schemas import JSON, Row
from records.splits import SPLITS
from records.store import Dataset
from synth.dataset_card import card

Format = Literal["hf", "openai"]

ROWS_PER_FILE = 2_000
"""Some tens of megabytes in memory, some megabytes on disk."""

UNKNOWN = "unknown"

_COLUMNS = {
    "trajectory_id": pa.utf8(),
    "split": pa.utf8(),
    "domain": pa.utf8(),
    "server": pa.utf8(),
    "category": pa.utf8(),
    "variant": pa.utf8(),
    "complexity": pa.utf8(),
    "messages": JSON,
    "tools": JSON,
    "train_turns": pa.list_(pa.bool_()),
    "num_messages": pa.int64(),
    "num_user_turns": pa.int64(),
    "num_tool_calls": pa.int64(),
    "num_errors": pa.int64(),
    "outcome": pa.utf8(),
    "score": pa.float64(),
    "objective_reward": pa.float64(),
    "agent_model": pa.utf8(),
    "user_model": pa.utf8(),
    "license": pa.utf8(),
}
SCHEMA = pa.schema(list(_COLUMNS.items()))
"""Of the `hf` format."""


class Exported(NamedTuple):
    path: str
    format: str
    rows: int
    splits: dict[str, int]
    left_out: dict[str, int]
    """Accepted trajectories that were not written, by reason: rows + left_out = accepted."""
    licenses: dict[str, int]


@dataclass
class Counts:
    """What the card and the metadata say of the rows that were written."""

    splits: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    models: dict[str, Counter[str]] = field(default_factory=dict)
    """Role -> model -> rows."""
    prompts: dict[str, Counter[str]] = field(default_factory=dict)
    """Prompt -> version -> rows."""

    def add(self, row: Row) -> None:
        self.splits[row["split"]] += 1
        self.licenses[row["license"]] += 1
        for found, column in ((self.models, "models"), (self.prompts, "prompt_versions")):
            for name, value in json.loads(row[column] or "{}").items():
                found.setdefault(name, Counter())[str(value)] += 1


def export_dataset(
    dataset: Dataset,
    out: Path,
    *,
    format: Format,
    include_heldout: bool = False,
    include_unknown_license: bool = False,
) -> Exported:
    """Write the accepted trajectories into the new folder `out`.

    Held-out rows come in splits of their own, and only when asked for; so do rows with a tool
    whose licence nobody knows. Raises ConfigError for a folder that has something in it, and where
    nothing is left to write.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there already and not empty; export into a new folder")
    counts = Counts()
    rows = _chosen(dataset, counts, include_heldout, include_unknown_license)
    temporary = out.with_name(f".{out.name}.tmp-{secrets.token_hex(6)}")
    try:
        writer = _write_parquet if format == "hf" else _write_lines
        files = writer(temporary, rows)
        if not counts.splits:
            raise ConfigError(_nothing(dataset, counts))
        metadata = _metadata(dataset, counts, format, files)
        text = card(dataset, counts=metadata, columns=SCHEMA.names)
        write_atomic(temporary / "README.md", text.encode())
        lines = json.dumps(metadata, indent=2, ensure_ascii=False, default=str)
        write_atomic(temporary / "metadata.json", f"{lines}\n".encode())
        temporary.rename(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Exported(
        path=str(out),
        format=format,
        rows=counts.splits.total(),
        splits=dict(counts.splits),
        left_out=dict(counts.left_out),
        licenses=dict(counts.licenses),
    )


def fault(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a conversation cannot be trained on in this form, or None."""
    if not messages or messages[-1].get("role") != "assistant" or messages[-1].get("tool_calls"):
        return "no_closing_message"
    open_calls: set[Any] = set()
    previous = None
    for message in messages:
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return "result_without_call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "call_without_result"
        elif role == previous == "user":
            return "two_user_turns"
        calls = [call.get("id") for call in message.get("tool_calls") or ()]
        if len(set(calls)) < len(calls):
            return "repeated_call_id"
        open_calls.update(calls)
        previous = role
    return None


def openai_messages(
    messages: Sequence[Mapping[str, Any]], train_turns: Sequence[bool]
) -> list[dict[str, Any]]:
    """The wire form: its keys only, and weight 0 on the agent's turns that carry no loss."""
    written = []
    for message, trained in zip(messages, train_turns, strict=True):
        kept = {k: message[k] for k in _WIRE_KEYS[message["role"]] if message.get(k) is not None}
        if message["role"] == "assistant" and not trained:
            kept["weight"] = 0
        written.append({"role": message["role"]} | kept)
    return written


_WIRE_KEYS = {
    "system": ("content",),
    "user": ("content",),
    "assistant": ("content", "refusal", "tool_calls"),
    "tool": ("tool_call_id", "content"),
}


def template_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The form that chat templates take: arguments as objects where they are objects."""
    return [
        {**message, "tool_calls": [_with_object(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else dict(message)
        for message in messages
    ]


def _with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        value = None
    value = value if isinstance(value, dict) else arguments
    return {**call, "function": {**call["function"], "arguments": value}}


def _chosen(
    dataset: Dataset, counts: Counts, include_heldout: bool, include_unknown_license: bool
) -> Iterator[Row]:
    """Accepted rows by split and id that are to be written; the others are counted."""
    with dataset.connect() as db:
        cursor = db.execute(_ACCEPTED, [list(SPLITS)])
        names = [column[0] for column in cursor.description or ()]
        while batch := cursor.fetchmany(200):
            for values in batch:
                row = dict(zip(names, values, strict=True))
                row["messages"] = json.loads(row["messages"])
                row["license"] = " AND ".join(row["licenses"] or [UNKNOWN])
                if row["split"] != "train" and not include_heldout:
                    reason = "held_out"
                elif UNKNOWN in row["license"].split() and not include_unknown_license:
                    reason = "unknown_license"
                else:
                    reason = fault(row["messages"])
                if reason:
                    counts.left_out[reason] += 1
                else:
                    counts.add(row)
                    yield row


def _shards(rows: Iterator[Row]) -> Iterator[tuple[str, list[Row]]]:
    """(split, rows) of one file each; the rows come sorted by split."""
    shard: list[Row] = []
    for row in rows:
        if shard and (len(shard) == ROWS_PER_FILE or row["split"] != shard[0]["split"]):
            yield shard[0]["split"], shard
            shard = []
        shard.append(row)
    if shard:
        yield shard[0]["split"], shard


def _write_parquet(folder: Path, rows: Iterator[Row]) -> dict[str, list[str]]:
    """`data/train-00000-of-00002.parquet`; how many there are is known at the end."""
    written: dict[str, list[Path]] = {}
    for split, shard in _shards(rows):
        paths = written.setdefault(split, [])
        paths.append(folder / "data" / f"{split}-{len(paths):05d}.parquet")
        buffer = io.BytesIO()
        pq.write_table(_table(shard), buffer, compression="zstd")
        write_atomic(paths[-1], buffer.getvalue())
    files: dict[str, list[str]] = {}
    for split, paths in written.items():
        for path in paths:
            named = path.with_name(f"{path.stem}-of-{len(paths):05d}.parquet")
            path.rename(named)
            files.setdefault(split, []).append(str(named.relative_to(folder)))
    return files


def _table(rows: list[Row]) -> pa.Table:
    given = [row | {"messages": json_text(template_messages(row["messages"]))} for row in rows]
    return pa.Table.from_pylist(
        [{name: row[name] for name in SCHEMA.names} for row in given], schema=SCHEMA
    )


def _write_lines(folder: Path, rows: Iterator[Row]) -> dict[str, list[str]]:
    """`train.jsonl`, one for each split."""
    files: dict[str, list[str]] = {}
    folder.mkdir(parents=True)
    for split, shard in _shards(rows):
        with (folder / f"{split}.jsonl").open("a", encoding="utf-8") as lines:
            for row in shard:
                messages = openai_messages(row["messages"], row["train_turns"])
                example = {"messages": messages, "tools": json.loads(row["tools"])}
                lines.write(json_text(example) + "\n")
        files[split] = [f"{split}.jsonl"]
    return files


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _metadata(
    dataset: Dataset, counts: Counts, format: Format, files: dict[str, list[str]]
) -> dict[str, Any]:
    started = [row for row in dataset.rows("runs") if row["event"] == "started"]
    newest = max(started, key=lambda row: row["happened_at"], default=None)
    return {
        "format": format,
        "dataset": dataset.root.name,
        "rows": counts.splits.total(),
        "splits": dict(counts.splits),
        "left_out": dict(counts.left_out),
        "licenses": dict(counts.licenses),
        "models": {role: dict(models) for role, models in counts.models.items()},
        "prompt_versions": {name: dict(found) for name, found in counts.prompts.items()},
        "files": files,
        "run_ids": sorted({commit.run_id for commit in dataset.commits()}),
        "config": newest["config"] if newest else None,
    }


def _nothing(dataset: Dataset, counts: Counts) -> str:
    if not counts.left_out:
        return f"nothing to export: {dataset.root} has no accepted trajectories"
    reasons = ", ".join(f"{n} {reason}" for reason, n in counts.left_out.most_common())
    return (
        f"nothing to export: {reasons}; --include-heldout and --include-unknown-license take in "
        "the first two kinds"
    )


_ACCEPTED = """
WITH licensed AS (
  SELECT agent_id, list_sort(list_distinct(list(coalesce(license, 'unknown')))) AS licenses
  FROM (SELECT agent_id, unnest(tool_ids) AS tool_id FROM agents) LEFT JOIN tools USING (tool_id)
  GROUP BY agent_id)
SELECT t.trajectory_id, t.split, d.name AS domain, t.server,
  coalesce(d.category, 'mcp') AS category, t.variant, k.complexity,
  t.messages::VARCHAR AS messages, t.tools::VARCHAR AS tools, t.train_turns,
  t.num_messages, t.num_user_turns, t.num_tool_calls, t.num_errors, t.outcome, t.score,
  t.objective_reward, json_extract_string(t.models, '$.agent') AS agent_model,
  json_extract_string(t.models, '$.user') AS user_model,
  t.models::VARCHAR AS models, t.prompt_versions::VARCHAR AS prompt_versions, licenses
FROM trajectories AS t
LEFT JOIN domains AS d USING (domain_id)
LEFT JOIN tasks AS k USING (task_id)
LEFT JOIN licensed ON licensed.agent_id = t.agent_id
WHERE t.accepted
ORDER BY list_position($1, t.split), t.trajectory_id"""
