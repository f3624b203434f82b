"""A dataset with several attempts at its tasks, some of which the agent failed."""

from pathlib import Path
from typing import Any

from records.store.dataset import Dataset
from records.tables.schemas import Row
from tests.synth.publish.judged import curate, decision
from tests.synth.small_dataset import TOOLS, call, conversation, trajectory, write_dataset

ODD = "Is \U0001f6f6 \u2028 free?"
"""Words with a letter that some readers take for the end of a line."""


def failed_conversation(said: str = "Please rent me the boat Heron.") -> list[Row]:
    """As `conversation`, up to the agent's second message, where it gives up."""
    return [*conversation(said)[:5], {"role": "assistant", "content": "It is rented."}]


def write_attempts(root: Path) -> Dataset:
    """`good` and `bad` are a pair; the user of `other` words its request differently; `odd` failed
    through its environment; `broken` ends with a result."""
    rows: dict[str, tuple[list[Row], str | None, dict[str, Any]]] = {
        "good": (conversation(), None, {}),
        "bad": (failed_conversation(), "failed_state", {"score": 0.2}),
        "odd": (failed_conversation(), "failed_state", {"attributed_to": "environment"}),
        "better": (conversation("Rent it."), None, {"task_id": "task-2"}),
        "other": (failed_conversation("Rent Heron."), "failed_state", {"task_id": "task-2"}),
        "alone": (conversation(ODD), None, {"task_id": "task-3"}),
        "broken": (conversation()[:-1], "failed_state", {"task_id": "task-3"}),
    }
    dataset = write_dataset(
        root,
        [
            (trajectory(name, messages, task_id=more.get("task_id", "task-1")), reason)
            for name, (messages, reason, more) in rows.items()
        ],
    )
    curate(
        dataset,
        [
            decision(
                name,
                reason,
                score=more.get("score", 0.5),
                attributed_to=None if reason is None else more.get("attributed_to", "agent"),
                failed_criterion=None if reason is None else "goal",
                train_turns=[m["role"] == "assistant" for m in messages],
            )
            for name, (messages, reason, more) in rows.items()
        ],
    )
    return dataset


def write_example(root: Path) -> Dataset:
    """Two short attempts at one task: `a`, which was accepted, and `b`, which the agent failed. A
    row of each format made of them stands in docs/exports.md."""
    asked = [
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": "Is the boat Heron free?"},
    ]
    found = {"role": "tool", "tool_call_id": "call_0", "name": "find_boats", "content": "[1]"}
    good = [
        *asked,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call("call_0", "find_boats", '{"name": "Heron", "limit": 3}')],
        },
        found,
        {"role": "assistant", "content": "Yes, it is free."},
    ]
    bad = [*asked, {"role": "assistant", "content": "No, it is not."}]
    rows = [
        (trajectory(name, messages, tools=TOOLS[:1]), reason)
        for name, messages, reason in (("a", good, None), ("b", bad, "failed_state"))
    ]
    dataset = write_dataset(root, rows)
    flags = {"train_turns": [False, False, True, False, True]}
    failed = {"train_turns": flags["train_turns"][:3], "attributed_to": "agent", "score": 0.0}
    failed |= {"failed_criterion": "goal"}
    curate(dataset, [decision("a", None, **flags), decision("b", "failed_state", **failed)])
    return dataset
