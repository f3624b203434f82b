"""Small rows of each shape, written for these tests after the documentation of each."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find_boat",
            "description": "Find a boat by its name.",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "Its name."}},
                "required": ["name"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "rent_boat",
            "description": "Rent a boat for some hours.",
            "parameters": {
                "type": "object",
                "properties": {"boat_id": {"type": "string"}, "hours": {"type": "integer"}},
                "required": ["boat_id", "hours"],
            },
        },
    },
]
FOUND = '{"boat_id": "B-17", "status": "free"}'
ASKED = "Is the Heron free?"
ANSWER = "Yes, the Heron (B-17) is free."


def call(name: str, arguments: Mapping[str, Any], call_id: str | None = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return ({"id": call_id} if call_id else {}) | {"type": "function", "function": function}


def openai(**changed: Any) -> dict[str, Any]:
    """A line of a fine-tuning file."""
    messages = [
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("find_boat", {"name": "Heron"})],
        },
        {"role": "tool", "tool_call_id": "c1", "content": FOUND},
        {"role": "assistant", "content": ANSWER},
    ]
    return {"messages": messages, "tools": TOOLS, "parallel_tool_calls": False} | changed


def toucan(**changed: Any) -> dict[str, Any]:
    """A row of a model's subset: every column is text."""
    declared = "<|im_system|>tool_declare<|im_middle|>[...]<|im_end|>"
    messages = [
        {"role": "system", "content": declared},
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": "",
            "function_call": {"name": "find_boat", "arguments": '{"name": "Heron"}'},
        },
        {"role": "function", "name": "find_boat", "content": FOUND},
        {"role": "assistant", "content": ANSWER},
    ]
    return {
        "uuid": "0001",
        "subset_name": "single-turn-original",
        "messages": json.dumps(messages),
        "question": ASKED,
        "available_tools": json.dumps(TOOLS),
        "target_tools": "find_boat",
        "question_quality_assessment": "{}",
        "response_quality_assessment": '{"completeness": {"score": 5}}',
        "metadata": "{}",
    } | changed


def toucan_selection(**changed: Any) -> dict[str, Any]:
    """A row of the selection for training: two calls at once, as dicts of Python."""
    rented = {"name": "rent_boat", "arguments": '{"boat_id": "B-17", "hours": 3}'}
    found = {"name": "find_boat", "arguments": '{"name": "Heron"}'}
    messages = [
        {"role": "user", "content": "Rent B-17 for 3 hours, and look up the Heron."},
        {"role": "tool_call", "content": str(rented)},
        {"role": "tool_call", "content": str(found)},
        {"role": "tool_response", "content": '{"rental": "R-9"}'},
        {"role": "tool_response", "content": FOUND},
        {"role": "assistant", "content": "Rented as R-9. The Heron is B-17."},
    ]
    return {
        "uuid": "0002",
        "subset_name": "multi-turn",
        "question": "...",
        "target_tools": "rent_boat, find_boat",
        "tools": json.dumps(TOOLS),
        "messages": json.dumps(messages),
    } | changed


def sharegpt(**changed: Any) -> dict[str, Any]:
    """A row of LLaMA-Factory, and of APIGen-MT."""
    called = {"name": "find_boat", "arguments": {"name": "Heron"}}
    return {
        "conversations": [
            {"from": "human", "value": ASKED},
            {"from": "function_call", "value": json.dumps(called)},
            {"from": "observation", "value": FOUND},
            {"from": "gpt", "value": ANSWER},
        ],
        "system": "You rent boats.",
        "tools": json.dumps([tool["function"] for tool in TOOLS]),
    } | changed


def simulation(number: int = 0, **changed: Any) -> dict[str, Any]:
    """One of tau2-bench, in which the user has a tool of its own."""
    messages = [
        {"role": "assistant", "content": "Hi! How can I help you?"},
        {"role": "user", "content": f"{ASKED} ({number})"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "k1",
                    "name": "find_boat",
                    "arguments": {"name": "Heron"},
                    "requestor": "assistant",
                }
            ],
        },
        {"id": "k1", "role": "tool", "content": FOUND, "requestor": "assistant", "error": False},
        {"role": "assistant", "content": ANSWER},
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u1", "name": "look_out", "arguments": {}, "requestor": "user"}],
        },
        {"id": "u1", "role": "tool", "content": "rain", "requestor": "user", "error": False},
        {"role": "user", "content": "###STOP###"},
    ]
    return {
        "id": f"s{number}",
        "task_id": "7",
        "trial": number,
        "seed": 5,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "messages": messages,
    } | changed


def results(*simulations: dict[str, Any], **environment: Any) -> dict[str, Any]:
    """A results file of tau2-bench."""
    return {
        "timestamp": "2026-11-01T00:00:00",
        "info": {
            "num_trials": len(simulations),
            "agent_info": {"implementation": "llm_agent", "llm": "model-a"},
            "user_info": {"implementation": "user_simulator", "llm": "model-u"},
            "environment_info": {"domain_name": "boats", "policy": "Rent only what is free."}
            | environment,
        },
        "tasks": [{"id": "7", "description": {"purpose": '}]"{['}}],
        "simulations": list(simulations),
    }


def lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
