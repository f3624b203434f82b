"""Recorded episodes as rows of a dataset, committed as a run would commit them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recorded_episodes import MODEL, RecordedEpisode
from records.digest import digest
from records.store.dataset import Dataset
from records.tables.columns import given_columns
from records.tables.schemas import Row
from records.tables.splits import own_split, split_of
from records.tables.tables import TABLES
from synth.engine.stages import KEPT
from synth.episode.sessions import session_id
from synth.episode.tools.calls import openai_tool

RUN = "recorded"


def write_episodes(folder: Path, episodes: Sequence[RecordedEpisode]) -> Dataset:
    """A new dataset of these episodes. A task is held out by its own digest, by its domain and by
    the tools that were called, as a task of a run is."""
    dataset = Dataset.create_or_open(folder)
    tables: dict[str, dict[Any, Row]] = {
        name: {} for name in ("domains", "tools", "agents", "tasks", "trajectories", "tool_calls")
    }
    for episode in episodes:
        for table, rows in _rows(episode).items():
            key = TABLES[table].primary_key
            tables[table].update({tuple(row[name] for name in key): row for row in rows})
    told = {name: list(rows.values()) for name, rows in tables.items()}
    first = {name: told.pop(name) for name in ("domains", "tools", "agents", "tasks")}
    dataset.commit(run_id=RUN, stage="tasks", shard=0, tables=first)
    items = {trajectory_id(episode): KEPT for episode in episodes}
    dataset.commit(run_id=RUN, stage="rollouts", shard=0, tables=told, items=items)
    return dataset


def trajectory_id(episode: RecordedEpisode, conversation: int = 0) -> str:
    return session_id(digest("recorded", episode.origin, episode.name), conversation)


def _rows(episode: RecordedEpisode) -> dict[str, list[Row]]:
    """By table; what several episodes share comes with each of them."""
    task_id = digest("recorded", "task", episode.origin, episode.task)
    agent_id = digest("recorded", "agent", [tool["tool_id"] for tool in episode.tools])
    called = {call["name"] for call in episode.calls}
    parents = [tool["split"] for tool in episode.tools if tool["name"] in called]
    parents += [episode.domain["split"]] if episode.domain else []
    split = split_of(own_split("task", task_id), parents)
    domain_id = episode.domain["domain_id"] if episode.domain else None
    shared = {"agent_id": agent_id, "domain_id": domain_id, "split": split}
    agent = _row(
        "agents",
        **shared,
        name=MODEL,
        tool_ids=[tool["tool_id"] for tool in episode.tools],
        system_prompt=_system(episode.messages),
        model=MODEL,
    )
    task = _row(
        "tasks",
        **shared,
        task_id=task_id,
        complexity="simple",
        variant=episode.variant,
        user_brief=_brief(episode),
        rubric=episode.rubric,
        user_tool_ids=[],
        model=MODEL,
    )
    trajectories = _trajectories(episode, {**shared, "task_id": task_id})
    calls = [
        _row("tool_calls", **call, trajectory_id=trajectory_id(episode), split=split)
        | {"session": _session_of(episode, call), "tool_id": _tool_id(episode, call)}
        for call in episode.calls
    ]
    return {
        "domains": [episode.domain] if episode.domain else [],
        "tools": list(episode.tools),
        "agents": [agent],
        "tasks": [task],
        "trajectories": trajectories,
        "tool_calls": calls,
    }


def _row(table: str, **values: Any) -> Row:
    """What is not known is null, or the table's default."""
    spec = TABLES[table]
    return dict.fromkeys(given_columns(spec)) | spec.defaults | values


def _brief(episode: RecordedEpisode) -> Row:
    """Without a persona no judge is told of it; it says how many conversations there are."""
    brief: Row = {"wishes": list(episode.wishes), "facts": []}
    count = len(episode.conversations)
    return brief | ({"sessions": [{"situation": ""}] * count} if count > 1 else {})


def _trajectories(episode: RecordedEpisode, shared: Mapping[str, Any]) -> list[Row]:
    """A row for each conversation."""
    tools = [openai_tool(tool) for tool in episode.offered]
    rows = []
    for number, messages in enumerate(episode.conversations):
        roles = [message["role"] for message in messages]
        calls = [c for c in episode.calls if _session_of(episode, c) == number]
        rows.append(
            _row(
                "trajectories",
                **shared,
                trajectory_id=trajectory_id(episode, number),
                episode_id=trajectory_id(episode),
                session=number,
                variant=episode.variant,
                attempt=0,
                messages=messages,
                tools=tools,
                num_messages=len(messages),
                num_turns=roles.count("assistant"),
                num_user_turns=roles.count("user"),
                num_tool_calls=len(calls),
                num_errors=sum(call["is_error"] for call in calls),
                num_recovered=0,
                executed_by=[],
                injected_outcomes=[c["injected_outcome"] for c in calls if c["injected_outcome"]],
                termination_reason="user_done",
                models={"agent": MODEL},
                prompt_versions={},
                token_counts={},
            )
        )
    return rows


def _session_of(episode: RecordedEpisode, call: Row) -> int:
    for number, messages in enumerate(episode.conversations):
        made = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
        if call["tool_call_id"] in made:
            return number
    raise ValueError(f"call {call['tool_call_id']} of {episode.name} stands in no message")


def _tool_id(episode: RecordedEpisode, call: Row) -> str | None:
    """None for a call of a note, or of a tool that there is not."""
    return next((t["tool_id"] for t in episode.tools if t["name"] == call["name"]), None)


def _system(messages: Sequence[Row]) -> str:
    return next((m["content"] for m in messages if m["role"] == "system"), "")
