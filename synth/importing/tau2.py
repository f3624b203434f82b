"""Results of tau2-bench: simulations of its tasks, as its `results.json` has them.

The file holds no system prompt: the domain's policy, which it has, stands in its place. What a user
did with tools of its own is no part of what the agent saw, and is told beside it. The user's last
words, with which a simulation is ended, are left out, as those of ours are.
"""

from collections.abc import Mapping
from typing import Any

from records.errors import ItemError
from synth.episode.endings import Reason
from synth.importing.conversation import CallByUser, ForeignConversation
from synth.importing.messages import IS_ERROR, call_of, json_text, list_of, message_of, shown

_ENDS: Mapping[str, Reason] = {
    "user_stop": "user_done",
    "agent_stop": "agent_done",
    "max_steps": "max_turns",
    "too_many_errors": "max_turns",
    "timeout": "max_turns",
    "agent_error": "format_error",
    "user_error": "user_error",
    "infrastructure_error": "infra_error",
    "unexpected_error": "infra_error",
}
"""What ended a simulation -> our word for it; of any other end nobody here knows."""

_TOLD = (
    "reward_info",
    "termination_reason",
    "trial",
    "seed",
    "duration",
    "agent_cost",
    "user_cost",
)
"""Members of a simulation that are kept as given."""


def tau2(row: Mapping[str, Any], about: Mapping[str, Any]) -> ForeignConversation:
    """A simulation; `about`: the results' `info`, as far as the file has it."""
    given = _flat(list_of(row.get("messages"), "messages"))
    environment = _object(about.get("environment_info"))
    domain, policy = environment.get("domain_name"), environment.get("policy")
    is_own = {place: _is_users(message) for place, message in enumerate(given)}
    messages = [_message(m, place) for place, m in enumerate(given) if not is_own[place]]
    end = row.get("termination_reason")
    reason = _ENDS.get(end) if isinstance(end, str) else None
    while reason == "user_done" and messages and messages[-1]["role"] == "user":
        messages.pop()
    lacks = []
    if not any(message["role"] == "system" for message in messages):
        lacks.append("system_prompt")
        if isinstance(policy, str) and policy.strip():
            messages.insert(0, {"role": "system", "content": policy})
    place = domain if isinstance(domain, str) else ""
    json_text(place, "domain_name of the results")
    return ForeignConversation(
        format="tau2",
        messages=messages,
        tools=_tools(environment.get("tool_defs")),
        source=f"tau2-{place}" if place else "tau2",
        row_id=None if row.get("id") is None else str(row["id"]),
        task=(place, str(row["task_id"])) if row.get("task_id") is not None else None,
        attempt=_whole(row.get("trial")) or 0,
        seed=_whole(row.get("seed")),
        models=_models(about),
        end=reason,
        user_calls=_user_calls(given),
        given={name: row[name] for name in _TOLD if row.get(name) is not None},
        lacks=lacks,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: Any) -> int | None:
    """None for what no column holds; it stays in what is told of the row."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and abs(value) < 1 << 63 else None


def _flat(messages: list[Any]) -> list[Any]:
    """Results that one message holds, as messages."""
    found: list[Any] = []
    for place, message in enumerate(messages):
        if isinstance(message, Mapping) and message.get("tool_messages") is not None:
            found += list_of(message["tool_messages"], f"tool_messages of message {place}")
        else:
            found.append(message)
    return found


def _is_users(message: Any) -> bool:
    """Whether it tells nothing but what the user did by itself."""
    if not isinstance(message, Mapping):
        return False
    if message.get("role") == "tool":
        return message.get("requestor") == "user"
    return message.get("role") == "user" and bool(message.get("tool_calls"))


def _message(given: Any, place: int) -> dict[str, Any]:
    if isinstance(given, Mapping) and (given.get("is_audio") or given.get("audio_path")):
        raise ItemError("not_text", f"message {place} is spoken, not written")
    message = message_of(given, place)
    if message["role"] == "tool":
        message[IS_ERROR] = bool(given.get("error"))
        if isinstance(given.get("id"), str):
            message["tool_call_id"] = given["id"]
    return message


def _user_calls(given: list[Any]) -> list[CallByUser]:
    results = {
        m["id"]: m
        for m in given
        if isinstance(m, Mapping)
        and m.get("role") == "tool"
        and m.get("requestor") == "user"
        and isinstance(m.get("id"), str)
    }
    found, turn = [], 0
    for place, message in enumerate(given):
        if not isinstance(message, Mapping):
            continue
        turn += message.get("role") == "assistant"
        if message.get("role") == "user" and message.get("tool_calls"):
            what = f"message {place}"
            for one in list_of(message["tool_calls"], f"tool_calls of {what}", "bad_call"):
                call = call_of(one, what)
                result = results.get(call.get("id", ""))
                told = None if result is None else result.get("content")
                is_text = told is None or isinstance(told, str)
                observation = told if is_text else json_text(told, f"the result of {what}")
                is_error = None if result is None else bool(result.get("error"))
                found.append(
                    CallByUser(turn=turn, call=call, observation=observation, is_error=is_error)
                )
    return found


def _models(info: Mapping[str, Any]) -> dict[str, str]:
    places = {"agent": "agent_info", "user": "user_info"}
    found = {role: _object(info.get(place)).get("llm") for role, place in places.items()}
    return {role: model for role, model in found.items() if isinstance(model, str) and model}


def _tools(defined: Any) -> list[Any] | None:
    """Signatures by name, in the form of OpenAI's tools; None where the results have none, as by
    default."""
    if not defined:
        return None
    if not isinstance(defined, Mapping):
        raise ItemError("bad_tools", f"tool_defs is {shown(defined)}, not an object")
    return [
        {"name": name, "description": one.get("doc") or "", "parameters": one.get("params") or {}}
        for name, one in ((name, _object(one)) for name, one in defined.items())
    ]
