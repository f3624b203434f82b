"""A task at the clinic's front desk, played by hand: the environment of the tests of episodes."""

import json
from collections.abc import Sequence
from typing import Any

from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.episode.environment import EnvironmentStep, EpisodeConfig, EpisodeEnvironment
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.episode.users.user import Scene, UserTurn
from tool_specs.domains.catalogue import domain_id, tool_rows
from tool_specs.domains.domain import load_domains

DOMAIN = load_domains(["clinic_desk"])[0]
TOOLS = tool_rows(DOMAIN)
QUIET = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"success": 1.0}))
"""Nothing is injected."""

AGENT: Row = {
    "agent_id": "agent",
    "tool_ids": [tool["tool_id"] for tool in TOOLS],
    "system_prompt": "You are the front desk of a clinic.",
}
PERSONA: Row = {
    "persona_id": "persona",
    "name": "Ingrid Solheim",
    "background": "A retired teacher.",
    "communication_style": "brief and polite",
    "preferences": ["short answers"],
    "patience": 3,
    **TABLES["personas"].defaults,
}
RUBRIC = {
    "pass_threshold": 0.7,
    "criteria": [
        {
            "id": "goal",
            "kind": "state",
            "words": "The appointment on March 4 is cancelled because of travel.",
            "weight": 3.0,
            "mandatory": True,
            "check": {
                "changes": [
                    {
                        "op": "update",
                        "entity": "appointment",
                        "id": "AP-1004",
                        "match": {"status": "cancelled", "cancel_reason": "travel"},
                    },
                    {
                        "op": "update",
                        "entity": "slot",
                        "id": "SL-1008",
                        "match": {"status": "free"},
                    },
                ]
            },
        },
        {
            "id": "policy",
            "kind": "policy",
            "words": "Nothing is cancelled on the day itself.",
            "weight": 1.0,
            "mandatory": True,
            "check": {"rules": ["no_same_day_cancel"]},
        },
        {"id": "closing", "kind": "format", "words": "Closes.", "weight": 1.0, "mandatory": False},
        {"id": "tone", "kind": "nl", "words": "Friendly.", "weight": 1.0, "mandatory": False},
    ],
}
OPENING = "Please cancel my booked appointment, the reason is travel. My name is Ingrid Solheim."
TASK: Row = {
    "task_id": "task",
    "agent_id": "agent",
    "persona_id": "persona",
    "domain_id": domain_id(DOMAIN),
    "server": None,
    "variant": "normal",
    "solvable": True,
    "user_brief": {
        "opening": OPENING,
        "wishes": [
            "Cancel the booked appointment, the reason is travel.",
            "Please list the free slots of the doctor Mei Tanaka.",
        ],
        "facts": [
            {"label": "name", "value": "Ingrid Solheim", "when": "opening", "goal": 0},
            {"label": "reason", "value": "travel", "when": "opening", "goal": 0},
            {"label": "doctor", "value": "Mei Tanaka", "when": "asked", "goal": 1},
        ],
    },
    "rubric": RUBRIC,
    "reference_plan": [],
    "initial_state": {},
    "token_budget": 20_000,
    "max_turns": 20,
    "seed": 1,
    "split": "train",
}
CANCEL = ("cancel_appointment", {"appointment_id": "AP-1004", "reason": "travel"})
FIND = ("find_patients", {"name": "Solheim"})


def catalogue() -> Catalogue:
    return Catalogue(
        agents={"agent": AGENT},
        personas={"persona": PERSONA},
        tools={tool["tool_id"]: tool for tool in TOOLS},
        domains={domain_id(DOMAIN): DOMAIN},
        servers={},
    )


def calls(*made: tuple[str, Any], first: int = 0) -> dict[str, Any]:
    """An assistant message; arguments that are no dict stand as the model's own text."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": f"call_{first + i}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for i, (name, given) in enumerate(made)
        ],
    }


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class ScriptedUser:
    """Says its lines in order, then is done."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    async def reply(self, scene: Scene) -> UserTurn:
        said = (
            sum(m["role"] == "user" for m in scene.messages) - 1
        )  # the opening is none of the lines
        return UserTurn(self._lines[said], False) if said < len(self._lines) else UserTurn("", True)


def environment(
    config: EpisodeConfig = QUIET, lines: Sequence[str] = (), **options: Any
) -> EpisodeEnvironment:
    return EpisodeEnvironment(
        catalogue(), config, user=lambda _task, _persona: ScriptedUser(*lines), **options
    )


async def play(
    env: EpisodeEnvironment, *actions: dict[str, Any], task: Row = TASK, seed: int = 1
) -> list[EnvironmentStep]:
    """Reset, play the actions, close."""
    await env.reset(task, seed)
    try:
        return [await env.step(action) for action in actions]
    finally:
        await env.close()
