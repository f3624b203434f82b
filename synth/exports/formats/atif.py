"""The form `atif`: one document of the Agent Trajectory Interchange Format for each conversation.

The documents are of version 1.7. A step of the agent has its calls, and the results that follow it
as its observation. Arguments are objects there: text that is none stands in the call's `extra`.
Each of an episode's conversations is a document; they share the `session_id`.
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from records.tables.schemas import JSON, STR, Row
from synth.exports.formats.columns import ABOUT
from synth.exports.formats.form import ExportFormat, ExportPart, FormatOptions, WrittenExport
from synth.exports.formats.messages import learnt_turns, object_arguments, tools_in

ATIF_VERSION = "ATIF-v1.7"

_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}

_COLUMNS = {
    "schema_version": STR,
    "session_id": STR,
    "trajectory_id": STR,
    "agent": JSON,
    "steps": JSON,
    "final_metrics": JSON,
    "extra": JSON,
}

_IN_EXTRA = tuple(name for name in ABOUT if name != "trajectory_id")


def _row(row: Row, _: FormatOptions) -> Row:
    models = json.loads(row["models"] or "{}")
    agent = {
        "name": row["agent_name"] or row["agent_id"] or "agent",
        "version": version("agentic-synth"),
        "model_name": models.get("agent"),
        "tool_definitions": tools_in(row["tools"]),
    }
    steps: list[Row] = []
    learnt = learnt_turns(row["messages"], row["train_turns"])
    for message, is_learnt in zip(row["messages"], learnt, strict=True):
        if message["role"] == "tool":
            observation = steps[-1].setdefault("observation", {"results": []})
            observation["results"].append(_result(message))
        else:
            steps.append({"step_id": len(steps) + 1, **_step(message, is_learnt=is_learnt)})
    return {
        "schema_version": ATIF_VERSION,
        "session_id": row["episode_id"] or row["trajectory_id"],
        "trajectory_id": row["trajectory_id"],
        "agent": {name: value for name, value in agent.items() if value is not None},
        "steps": steps,
        "final_metrics": {"total_steps": len(steps), **_tokens(row["token_counts"])},
        "extra": {name: row[name] for name in _IN_EXTRA if row[name] is not None},
    }


def _step(message: Mapping[str, Any], *, is_learnt: bool) -> Row:
    source = _SOURCES[message["role"]]
    step: Row = {"source": source, "message": message["content"] or ""}
    if thought := message.get("reasoning_content"):
        step["reasoning_content"] = thought
    if calls := message.get("tool_calls"):
        step["tool_calls"] = [_call(call) for call in calls]
    extra: Row = {} if source != "agent" or is_learnt else {"train": False}
    if message["role"] == "developer":
        extra["role"] = "developer"
    if "refusal" in message:
        extra["refusal"] = message["refusal"]
    return step | ({"extra": extra} if extra else {})


def _call(call: Mapping[str, Any]) -> Row:
    function = call["function"]
    arguments = object_arguments(function["arguments"])
    made: Row = {"tool_call_id": call["id"], "function_name": function["name"]}
    if isinstance(arguments, str):
        return made | {"arguments": {}, "extra": {"arguments_as_written": arguments}}
    return made | {"arguments": arguments}


def _result(message: Mapping[str, Any]) -> Row:
    result: Row = {"source_call_id": message["tool_call_id"], "content": message["content"]}
    return result | ({"extra": {"name": message["name"]}} if message.get("name") else {})


def _tokens(stored: str | None) -> Row:
    """Of the agent's model."""
    counts = json.loads(stored or "{}").get("agent", {})
    names = {"total_prompt_tokens": "prompt", "total_completion_tokens": "completion"}
    return {name: counts[own] for name, own in names.items() if own in counts}


def _load(written: WrittenExport) -> tuple[str, str]:
    path = json.dumps(f"{written.name}/{written.files(written.splits[0])}")
    return "python", (
        "from atif import Trajectory\n\n"
        f"rows = [Trajectory.model_validate_json(line) for line in open({path})]"
    )


ATIF = ExportFormat(
    name="atif",
    title="documents of the Agent Trajectory Interchange Format, one a line",
    file_types=("jsonl", "parquet"),
    parts=(
        ExportPart(
            "default",
            "conversations",
            _COLUMNS,
            _row,
            {
                "schema_version": "Version of ATIF",
                "session_id": "Conversations of one episode share it",
                "agent": "Name, model and tools of the agent",
                "steps": "Messages; calls with their results; `extra.train` is false on steps that "
                "carry no loss",
                "final_metrics": "Numbers of steps and of tokens",
                "extra": "Task, split, score and what the judge's word is worth",
            },
        ),
    ),
    load=_load,
    reasoning=("none", "field", "think"),
)
