"""The generator's own mistakes, at the declared rates: made in a finished tool, where one fits."""

import json
import re
from copy import deepcopy
from random import Random

from offline_llm.settings.rates import ToolMistakes
from offline_llm.tools.draft import ToolWire
from records.seeds import rng_of


def slipped(tool: ToolWire, rates: ToolMistakes, factor: float) -> ToolWire:
    """The tool, now and then with a mistake; the same tool always meets the same fate."""
    rng = rng_of(json.dumps(tool, sort_keys=True), "slip")
    for kind, make in _KINDS.items():
        if rng.random() < getattr(rates, kind) * factor:
            spoilt = deepcopy(tool)
            if make(spoilt, rng):
                return spoilt
    return tool


def _misspelt_field(tool: ToolWire, rng: Random) -> bool:
    """Two letters of a field's name change places."""
    places = [
        (entry, match)
        for step in tool["semantics"]
        for entry in [*step.get("set", ()), *step.get("value", ())]
        for match in [re.fullmatch(r"([a-z_]+)\.([a-z_]{4,})", entry["value"])]
        if match and match[1] != "args"
    ]
    if not places:
        return False
    entry, match = rng.choice(places)
    field = match[2]
    swapped = next((i for i in range(len(field) - 1) if field[i] != field[i + 1]), 0)
    wrong = field[:swapped] + field[swapped + 1] + field[swapped] + field[swapped + 2 :]
    entry["value"] = f"{match[1]}.{wrong}"
    return True


def _idle_parameter(tool: ToolWire, rng: Random) -> bool:
    name = rng.choice(("comment", "reference", "language"))
    if any(param["name"] == name for param in tool["params"]):
        return False
    words = f"A {name} to go with the call."
    tool["params"].append(
        {"name": name, "type": "string", "description": words, "optional": True, "max": 200}
    )
    return True


def _doubled_condition(tool: ToolWire, rng: Random) -> bool:
    places = [i for i, s in enumerate(tool["semantics"]) if s["op"] == "require"]
    if not places:
        return False
    place = rng.choice(places)
    first = tool["semantics"][place]
    again = first | {"error": "not_allowed", "message": "This is not allowed."}
    tool["semantics"].insert(place + 1, again)
    return True


def _idle_effect(tool: ToolWire, rng: Random) -> bool:
    """Sets a field that the answer shows, and that the update leaves alone, to itself."""
    shown = {e["value"] for s in tool["semantics"] for e in s.get("value", ())}
    for step in tool["semantics"]:
        if step["op"] != "update":
            continue
        written = {entry["name"] for entry in step["set"]}
        own = sorted(v for v in shown if re.fullmatch(rf"{step['target']}\.[a-z_]+", v))
        idle = [v for v in own if (f := v.split(".")[1]) not in written and not f.endswith("_id")]
        if idle:
            value = rng.choice(idle)
            step["set"].append({"name": value.split(".")[1], "value": value})
            return True
    return False


_KINDS = {
    "misspelt_field": _misspelt_field,
    "idle_parameter": _idle_parameter,
    "doubled_condition": _doubled_condition,
    "idle_effect": _idle_effect,
}
