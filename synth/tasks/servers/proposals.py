"""Goals as the generator proposes them: what it is asked for, and what a definition would say of
them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from records.digest import digest
from sandboxes.mcp.servers import GoalCall, GoalTwin, ServerGoal
from synth.llm.structured import object_schema
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.servers.looking import CALL

FORMS = ("plain", "chosen", "described", "for_each", "conditional")
MAX_CALLS = 12
"""Of one goal."""

TEXT = {"type": "string", "minLength": 1, "maxLength": 600}
LABEL = {"type": "string", "minLength": 1, "maxLength": 80}


def schema_of_goals(count: int) -> dict[str, Any]:
    calls_of_twin = {"type": "array", "items": CALL, "maxItems": MAX_CALLS}
    goal = {
        "goal": TEXT,
        "form": {"enum": list(FORMS)},
        "calls": {"type": "array", "items": CALL, "minItems": 1, "maxItems": MAX_CALLS},
        "said": _list_of({"value": {"type": ["string", "number", "boolean"]}, "label": LABEL}),
        "told": _list_of({"call": {"type": "integer", "minimum": 0}, "label": LABEL}),
        "seen_by": {"type": "array", "items": CALL, "maxItems": 2},
        "twin": object_schema(dict.fromkeys(("before", "calls"), calls_of_twin)),
    }
    goals = {"type": "array", "items": object_schema(goal), "maxItems": count}
    return object_schema({"goals": goals})


TOLD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goals": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "fault": {"type": "string"},
                    "told": {"type": "array", "items": {"type": "string"}},
                    "other_fits": {"type": "boolean"},
                },
                "required": ["number", "fault", "told", "other_fits"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["goals"],
    "additionalProperties": False,
}


def _list_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": object_schema(properties)}


def goal_from(proposed: Mapping[str, Any]) -> ServerGoal:
    """The goal as a definition would have it, without what its execution shows."""
    calls = [GoalCall.model_validate(call) for call in proposed["calls"]]
    return ServerGoal(
        id=f"g_{digest('server_goal', proposed)[:12]}",
        wish=proposed["goal"],
        form=proposed["form"],
        twin=_twin(proposed),
        calls=tuple(calls),
        labels=dict(_labels(proposed)),
        seen_by=tuple(GoalCall.model_validate(call) for call in proposed["seen_by"]),
    )


def _twin(proposed: Mapping[str, Any]) -> GoalTwin | None:
    twin = proposed["twin"]
    if proposed["form"] == "plain" or not (twin["before"] and twin["calls"]):
        return None
    return GoalTwin.model_validate(twin)


def _labels(proposed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(CALL.PARAMETER, what people call it) of the arguments that the person says."""
    said = [(one["value"], bare_label(one["label"])) for one in proposed["said"]]
    for at, call in enumerate(proposed["calls"]):
        for param, argument in call["arguments"].items():
            values = list(plain_values(argument))
            for value, label in said:
                if any(_same(value, part) for part in values):
                    yield f"{at}.{param}", label
                    break


def bare_label(label: str) -> str:
    """Without an article in front, which sentences bring themselves."""
    return _ARTICLE.sub("", label.strip(), count=1)


_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)", re.IGNORECASE)


def _same(said: Any, value: Any) -> bool:
    return said == value and isinstance(said, bool) == isinstance(value, bool)
