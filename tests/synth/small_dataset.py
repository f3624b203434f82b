"""A small dataset written by hand: trajectories of two tasks in one domain, and one MCP server."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from records.store.commits import ItemStatus
from records.store.dataset import Dataset
from records.tables.schemas import Row
from tests.records.rows import row

KEPT = ItemStatus("kept", None)
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MODEL = "offline-model"

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}.",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "limit": {"type": "integer"}},
            },
        },
    }
    for name in ("find_boats", "rent_boat")
]
RUBRIC = {
    "pass_threshold": 0.7,
    "criteria": [
        {"id": "goal", "kind": "state", "words": "The boat is rented.", "weight": 2.0},
        {"id": "told", "kind": "communicate", "words": "The price is told.", "weight": 1.0},
    ],
}


def call(call_id: str, name: str, arguments: str) -> Row:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def conversation(text: str = "Please rent me the boat Heron.") -> list[Row]:
    """Two calls in parallel, one that failed and was made again, a closing message."""
    return [
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": text},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Look it up first.",
            "tool_calls": [
                call("call_0", "find_boats", '{"name": "Heron"}'),
                call("call_1", "rent_boat", '{"name": "Heron", "limit": 3}'),
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_0",
            "name": "find_boats",
            "content": '{"boats":[1]}',
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "rent_boat", "content": "rate limited"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call("call_2", "rent_boat", '{"name": "Heron"}')],
        },
        {"role": "tool", "tool_call_id": "call_2", "name": "rent_boat", "content": '{"ok":true}'},
        {"role": "assistant", "content": "Done, it costs 20 EUR."},
    ]


def trajectory(trajectory_id: str, messages: Sequence[Row] | None = None, **values: Any) -> Row:
    messages = conversation() if messages is None else messages
    asked = [c for m in messages for c in m.get("tool_calls", ())]
    given = {
        "trajectory_id": trajectory_id,
        "task_id": "task-1",
        "agent_id": "agent-1",
        "domain_id": "domain-1",
        "variant": "normal",
        "attempt": 0,
        "seed": 7,
        "messages": list(messages),
        "tools": TOOLS,
        "num_messages": len(messages),
        "num_turns": sum(m["role"] == "assistant" for m in messages),
        "num_user_turns": sum(m["role"] == "user" for m in messages),
        "num_tool_calls": len(asked),
        "num_errors": 1,
        "num_recovered": 1,
        "executed_by": ["state_machine"],
        "injected_outcomes": ["rate_limit"],
        "termination_reason": "user_done",
        "outcome": "passed",
        "objective_reward": 1.0,
        "models": {"agent": MODEL, "user": MODEL},
        "prompt_versions": {"agent": "v1"},
        "token_counts": {},
        "split": "train",
        "user_faults": [],
    }
    return row("trajectories", **(given | values))


def calls_of(one: Row) -> list[Row]:
    spoken = [m for m in one["messages"] if m["role"] == "assistant"]
    asked = [(turn, c) for turn, m in enumerate(spoken, 1) for c in m.get("tool_calls", ())]
    answers = {m["tool_call_id"]: m["content"] for m in one["messages"] if m["role"] == "tool"}
    return [
        row(
            "tool_calls",
            trajectory_id=one["trajectory_id"],
            turn=turn,
            call_index=index,
            tool_call_id=c["id"],
            tool_id=c["function"]["name"],
            name=c["function"]["name"],
            executed_by="state_machine",
            arguments=c["function"]["arguments"],
            observation=answers.get(c["id"], ""),
            is_error=answers.get(c["id"]) == "rate limited",
            error_code="rate_limited" if answers.get(c["id"]) == "rate limited" else None,
            injected_outcome="rate_limit" if answers.get(c["id"]) == "rate limited" else None,
            policy_violations=[],
            state_diff=[],
            split=one["split"],
            actor="agent",
            recovered=True if answers.get(c["id"]) == "rate limited" else None,
        )
        for index, (turn, c) in enumerate(asked)
    ]


def graded(one: Row, *, accepted: bool, reason: str | None, train_turns: list[bool]) -> list[Row]:
    """The verdicts of code and judge on both criteria; a judge who passes everything."""
    verdicts = [
        row(
            "verdicts",
            grading_id="grading-1",
            trajectory_id=one["trajectory_id"],
            criterion_id=criterion,
            kind=kind,
            checked_by=checked_by,
            mandatory=True,
            weight=1.0,
            passed=passed,
            score=float(passed),
            evidence=f"{checked_by} looked at {criterion}",
            split=one["split"],
        )
        for criterion, kind in (("goal", "state"), ("told", "communicate"))
        for checked_by, passed in (("code", accepted or criterion == "told"), ("judge", True))
    ]
    decision = row(
        "curation",
        curation_id="curation-1",
        trajectory_id=one["trajectory_id"],
        grading_id="grading-1",
        accepted=accepted,
        drop_reason=reason,
        score=1.0 if accepted else 0.4,
        train_turns=train_turns,
        split=one["split"],
    )
    return [*verdicts, decision]


def tool_row(tool_id: str, license_: str | None) -> Row:
    return row(
        "tools",
        tool_id=tool_id,
        name=tool_id,
        source="synthetic",
        domain_id="domain-1",
        license=license_,
        split="train",
    )


def llm_call(call_id: str, role: str, model: str, *, cost: float) -> Row:
    return row(
        "llm_calls",
        call_id=call_id,
        invocation_id="invocation-1",
        stage="rollouts",
        role=role,
        model=model,
        prompt_tokens=100,
        completion_tokens=20,
        cost_usd=cost,
        latency_s=0.25,
        cache_hit=False,
        status="ok",
        started_at=START,
    )


def write_dataset(
    root: Path,
    trajectories: Sequence[tuple[Row, str | None]],
    *,
    model: str = MODEL,
    license_: str | None = "Apache-2.0",
    domain: str = "boats",
    words: str = "The boat is rented.",
) -> Dataset:
    """A dataset of trajectories, each with the reason why it was rejected, None for accepted."""
    dataset = Dataset.create_or_open(root)
    criteria = [RUBRIC["criteria"][0] | {"words": words}, RUBRIC["criteria"][1]]
    shared: dict[str, list[Row]] = {
        "domains": [
            row("domains", domain_id="domain-1", name=domain, category="smart_home", split="train")
        ],
        "tools": [tool_row("find_boats", "Apache-2.0"), tool_row("rent_boat", license_)],
        "agents": [
            row("agents", agent_id="agent-1", tool_ids=["find_boats", "rent_boat"], model=model)
        ],
        "tasks": [
            row(
                "tasks",
                task_id="task-1",
                agent_id="agent-1",
                complexity="simple",
                variant="normal",
                rubric=RUBRIC | {"criteria": criteria},
                model=model,
                split="train",
            )
        ],
        "llm_calls": [llm_call("call-1", "agent", model, cost=0.5)],
        "runs": [
            row("runs", invocation_id="invocation-1", event="started", happened_at=START),
            row(
                "runs",
                invocation_id="invocation-1",
                event="ended",
                happened_at=START + timedelta(hours=2),
            ),
        ],
    }
    dataset.commit(run_id="run-1", stage="tasks", shard=0, tables=shared, items={"task-1": KEPT})
    made = [one for one, _ in trajectories]
    calls = [c for one in made for c in calls_of(one)]
    statuses = {one["trajectory_id"]: KEPT for one in made}
    dataset.commit(
        run_id="run-1",
        stage="rollouts",
        shard=0,
        tables={"trajectories": made, "tool_calls": calls},
        items=statuses | {"lost": ItemStatus("failed", "infra_error", words)},
    )
    judged = [
        (one, graded(one, accepted=reason is None, reason=reason, train_turns=_trained(one)))
        for one, reason in trajectories
    ]
    dataset.commit(
        run_id="run-1",
        stage="grading",
        shard=0,
        tables={
            "verdicts": [v for _, rows in judged for v in rows[:-1]],
            "curation": [rows[-1] for _, rows in judged],
        },
    )
    plan = dataset.plan_path("run-1", "rollouts")
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps([[*statuses, "lost", "waiting"]]))
    return dataset


def _trained(one: Row) -> list[bool]:
    return [m["role"] == "assistant" for m in one["messages"]]
