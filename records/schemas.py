"""One explicit Arrow schema per table. A row is a plain dict with exactly the table's columns.

Column order is schema order. Append columns with a default (`TableSpec.defaults`); a column that
changes meaning gets a new name. Open-ended structures (messages, arguments, schemas) are Arrow
JSON columns, text on disk, because Arrow structs fill missing keys with nulls and so corrupt
them; a row holds them as Python values, and the store encodes and decodes. No column is named by
a word that SQL reserves, so that queries need no quotes.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised when a column's meaning changes. Stored on every row."""

Row = dict[str, Any]

JSON = pa.json_(pa.utf8())
STR, INT, FLOAT, BOOL = pa.utf8(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRS = pa.list_(pa.utf8())


@dataclass(frozen=True, slots=True)
class TableSpec:
    name: str
    primary_key: tuple[str, ...]
    schema: pa.Schema
    content: bool
    """Content is what the run's identity decides, compared byte for byte; the rest is measured."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Values of appended columns for rows written before they existed."""
    owner: str | None = None
    """Table whose row these rows describe, named by its key among their key columns: when a
    retried item supersedes the owner's row, the rows of the old attempt go with it."""


def _table(
    name: str,
    primary_key: tuple[str, ...],
    columns: dict[str, pa.DataType],
    *,
    content: bool,
    owner: str | None = None,
    defaults: dict[str, Any] | None = None,
) -> TableSpec:
    """Every table carries `run_id` and `schema_version`, which the store fills in."""
    columns = columns | {"run_id": STR, "schema_version": pa.int32()}
    schema = pa.schema(list(columns.items()))
    return TableSpec(name, primary_key, schema, content, defaults or {}, owner)


TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        _table(
            "domains",
            ("domain_id",),
            {
                "domain_id": STR,
                "name": STR,
                "title": STR,
                "category": STR,
                "parent_id": STR,
                "description": STR,
                "entities": JSON,
                "seed_state": JSON,
                "policy": JSON,
                "split": STR,
                "clock": STR,
                "rules": JSON,
                "field_order": JSON,
            },
            content=True,
        ),
        _table(
            "tools",
            ("tool_id",),
            {
                "tool_id": STR,
                "name": STR,
                "source": STR,
                "category": STR,
                "domain_id": STR,
                "server": STR,
                "description": STR,
                "input_schema": JSON,
                "output_schema": JSON,
                "annotations": JSON,
                "semantics_json": JSON,
                "evolve_op": STR,
                "generation": INT,
                "parent_id": STR,
                "spec_hash": STR,
                "license": STR,
                "drop_reason": STR,
                "split": STR,
                "params": JSON,
                "proof": JSON,
            },
            content=True,
        ),
        _table(
            "proposals",
            ("item_id", "number"),
            {
                "item_id": STR,
                "number": INT,
                "operator": STR,
                "batch": INT,
                "domain_id": STR,
                "category": STR,
                "model": STR,
                "prompt_version": STR,
                "name": STR,
                "parents": STRS,
                "first_reason": STR,
                "drop_reason": STR,
                "problems": STRS,
                "repaired": BOOL,
                "tool_id": STR,
                "semantics_key": STR,
                "skeleton": STR,
                "split": STR,
            },
            content=True,
        ),
        _table(
            "agents",
            ("agent_id",),
            {
                "agent_id": STR,
                "name": STR,
                "domain_id": STR,
                "server": STR,
                "tool_ids": STRS,
                "capability": STR,
                "expertise": STR,
                "behaviour": STR,
                "system_prompt": STR,
                "model": STR,
                "prompt_version": STR,
                "split": STR,
            },
            content=True,
        ),
        _table(
            "personas",
            ("persona_id",),
            {
                "persona_id": STR,
                "name": STR,
                "background": STR,
                "communication_style": STR,
                "preferences": STRS,
                "patience": INT,
                "reveals": STR,
                "model": STR,
                "prompt_version": STR,
                "split": STR,
            },
            content=True,
        ),
        _table(
            "tasks",
            ("task_id",),
            {
                "task_id": STR,
                "agent_id": STR,
                "persona_id": STR,
                "domain_id": STR,
                "server": STR,
                "complexity": STR,
                "num_steps": INT,
                "variant": STR,
                "user_brief": JSON,
                "rubric": JSON,
                "reference_plan": JSON,
                "initial_state": JSON,
                "solvable": BOOL,
                "token_budget": INT,
                "max_turns": INT,
                "seed": INT,
                "model": STR,
                "prompt_version": STR,
                "split": STR,
                "user_tool_ids": STRS,
                "num_dependencies": INT,
                "num_hidden": INT,
                "num_rules": INT,
                "num_distractors": INT,
                "proof": JSON,
            },
            content=True,
            defaults={"user_tool_ids": []},
        ),
        _table(
            "trajectories",
            ("trajectory_id",),
            {
                "trajectory_id": STR,
                "task_id": STR,
                "agent_id": STR,
                "persona_id": STR,
                "domain_id": STR,
                "server": STR,
                "variant": STR,
                "attempt": INT,
                "seed": INT,
                "messages": JSON,
                "tools": JSON,
                "num_messages": INT,
                "num_turns": INT,
                "num_user_turns": INT,
                "num_tool_calls": INT,
                "num_errors": INT,
                "num_recovered": INT,
                "fidelities": STRS,
                "injected_outcomes": STRS,
                "termination_reason": STR,
                "outcome": STR,
                "objective_reward": FLOAT,
                "state_hash_initial": STR,
                "state_hash_final": STR,
                "models": JSON,
                "prompt_versions": JSON,
                "token_counts": JSON,
                "error": STR,
                "split": STR,
                "user_faults": JSON,
            },
            content=True,
            defaults={"user_faults": []},
        ),
        _table(
            "tool_calls",
            ("trajectory_id", "call_index"),
            {
                "trajectory_id": STR,
                "turn": INT,
                "call_index": INT,
                "tool_call_id": STR,
                "tool_id": STR,
                "name": STR,
                "fidelity": STR,
                "arguments": JSON,
                "observation": STR,
                "is_error": BOOL,
                "error_code": STR,
                "breaches": STRS,
                "injected_outcome": STR,
                "state_hash_before": STR,
                "state_hash_after": STR,
                "state_diff": JSON,
                "split": STR,
                "actor": STR,
                "recovered": BOOL,
            },
            content=True,
            owner="trajectories",
            defaults={"actor": "agent"},
        ),
        _table(
            "simulations",
            ("trajectory_id", "call_index"),
            {
                "trajectory_id": STR,
                "call_index": INT,
                "tool_id": STR,
                "model": STR,
                "prompt_version": STR,
                "repairs": INT,
                "failed": BOOL,
                "changed_fields": INT,
                "state_match": BOOL,
                "observation_match": BOOL,
                "error_match": BOOL,
                "split": STR,
            },
            content=True,
            owner="trajectories",
        ),
        _table(
            "verdicts",
            ("grading_id", "trajectory_id", "criterion_id", "checked_by"),
            {
                "grading_id": STR,
                "trajectory_id": STR,
                "criterion_id": STR,
                "kind": STR,
                "checked_by": STR,
                "mandatory": BOOL,
                "weight": FLOAT,
                "passed": BOOL,
                "score": FLOAT,
                "evidence": STR,
                "checker_version": STR,
                "split": STR,
                "quote": STR,
                "supported": BOOL,
            },
            content=True,
            owner="trajectories",
        ),
        _table(
            "calibration",
            ("grading_id", "trajectory_id", "plant", "criterion_id"),
            {
                "grading_id": STR,
                "trajectory_id": STR,
                "plant": STR,
                "criterion_id": STR,
                "kind": STR,
                "channel": STR,
                "expected": BOOL,
                "code_passed": BOOL,
                "judge_passed": BOOL,
                "supported": BOOL,
                "evidence": STR,
                "quote": STR,
                "detail": STR,
                "checker_version": STR,
                "split": STR,
            },
            content=True,
            owner="trajectories",
        ),
        _table(
            "curation",
            ("curation_id", "trajectory_id"),
            {
                "curation_id": STR,
                "trajectory_id": STR,
                "grading_id": STR,
                "accepted": BOOL,
                "drop_reason": STR,
                "score": FLOAT,
                "train_turns": pa.list_(pa.bool_()),
                "split": STR,
                "judge_standing": STR,
            },
            content=True,
            owner="trajectories",
        ),
        _table(
            "labels",
            ("trajectory_id", "criterion_id", "labeller"),
            {
                "trajectory_id": STR,
                "criterion_id": STR,
                "labeller": STR,
                "kind": STR,
                "label": STR,
                "note": STR,
                "split": STR,
            },
            content=False,
            owner="trajectories",
        ),
        _table(
            "llm_calls",
            ("call_id",),
            {
                "call_id": STR,
                "invocation_id": STR,
                "stage": STR,
                "item_id": STR,
                "role": STR,
                "step": STR,
                "attempt": INT,
                "model": STR,
                "request_hash": STR,
                "prompt_tokens": INT,
                "completion_tokens": INT,
                "cost_usd": FLOAT,
                "latency_s": FLOAT,
                "cache_hit": BOOL,
                "status": STR,
                "started_at": TIME,
            },
            content=False,
        ),
        _table(
            "timings",
            ("invocation_id", "stage", "shard", "name"),
            {
                "invocation_id": STR,
                "stage": STR,
                "shard": INT,
                "name": STR,
                "seconds": FLOAT,
                "count": INT,
            },
            content=False,
        ),
        _table(
            "stages",
            ("invocation_id", "stage", "shard"),
            {
                "invocation_id": STR,
                "stage": STR,
                "shard": INT,
                "requested": INT,
                "kept": INT,
                "dropped": INT,
                "failed": INT,
                "reasons": JSON,
                "items": JSON,
            },
            content=False,
        ),
        _table(
            "runs",
            ("invocation_id", "event"),
            {
                "invocation_id": STR,
                "event": STR,
                "command": STR,
                "config": JSON,
                "versions": JSON,
                "happened_at": TIME,
                "status": STR,
                "detail": STR,
                "cost_usd": FLOAT,
                "host": STR,
            },
            content=False,
        ),
    )
}
"""Every table of a dataset by name."""
