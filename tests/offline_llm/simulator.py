"""Two small sets of tools that the offline model was not written for, and an environment behind
them.

Invented for these tests, in another style than the built-in domains: camel case and plain numbers
for ids in one, letters and digits in the other, results of different shapes.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any


def function(
    name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


OBSERVATORY = [
    function(
        "searchObservers",
        "Search the astronomers who use the observatory by surname.",
        {"surname": text("Surname of the astronomer, such as Leavitt")},
        ["surname"],
    ),
    function(
        "listTelescopes",
        "List the telescopes of the observatory with their telescopeId and nickname.",
        {},
        [],
    ),
    function(
        "grantNight",
        "Grant an astronomer a night at a telescope. Returns the grantId.",
        {
            "observerId": text("Identifier of the astronomer, such as OBS-11"),
            "telescopeId": text("Identifier of the telescope, such as TEL-3"),
            "night": text("The night, such as 2027-05-14", format="date"),
            "filter": text("Filter wheel position", enum=["red", "blue", "narrow_band"]),
        },
        ["observerId", "telescopeId", "night", "filter"],
    ),
    function(
        "withdrawGrant",
        "Withdraw a granted night.",
        {"grantId": text("Identifier of the grant, such as GR-501")},
        ["grantId"],
    ),
]
HIVES = [
    function(
        "apiary_overview",
        "Show all hives of the apiary: hive_code, queen's name and the meadow where they stand.",
        {},
        [],
    ),
    function(
        "apiary_feed",
        "Feed a hive with sugar syrup and return the kilograms left in the shed.",
        {
            "hive_code": {"type": "string", "description": "Id of the hive, such as HV-07."},
            "kilograms": {"type": "number", "description": "Weight of the syrup in kg."},
        },
        ["hive_code", "kilograms"],
    ),
]
OBSERVERS = [
    {"observerId": "OBS-11", "surname": "Leavitt", "institute": "Harvard"},
    {"observerId": "OBS-12", "surname": "Payne", "institute": "Cambridge"},
]
TELESCOPES = [
    {"telescopeId": "TEL-3", "nickname": "Old Patience"},
    {"telescopeId": "TEL-4", "nickname": "Snow Owl"},
]
HIVE_ROWS = [
    {"hive_code": "HV-07", "queen": "Philippa", "meadow": "Long Acre"},
    {"hive_code": "HV-09", "queen": "Matilda", "meadow": "Mill Pond"},
]


@dataclass
class Simulated:
    """Executes calls. `faults` are errors given out before anything works, one a call."""

    faults: list[str] = field(default_factory=list)
    grants: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    fed: list[tuple[str, float]] = field(default_factory=list)

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        if self.faults:
            return json.dumps({"error": {"code": "busy", "message": self.faults.pop(0)}})
        tools: dict[str, Callable[..., Any]] = {
            "searchObservers": self._observers,
            "listTelescopes": lambda: deepcopy(TELESCOPES),
            "grantNight": self._grant,
            "withdrawGrant": self._withdraw,
            "apiary_overview": lambda: {"hives": deepcopy(HIVE_ROWS)},
            "apiary_feed": self._feed,
        }
        try:
            return json.dumps(tools[name](**arguments))
        except (TypeError, LookupError, ValueError) as error:
            return json.dumps({"error": {"code": "invalid_arguments", "message": str(error)}})

    def _observers(self, surname: str) -> Any:
        return {"matches": [row for row in OBSERVERS if surname in row["surname"]]}

    def _grant(self, **arguments: str) -> Any:
        if arguments["observerId"] not in {row["observerId"] for row in OBSERVERS}:
            raise LookupError(f"observerId {arguments['observerId']} not found")
        if arguments["filter"] not in ("red", "blue", "narrow_band"):
            raise ValueError(
                f"filter: {arguments['filter']!r} is not one of [red, blue, narrow_band]"
            )
        grant = {"grantId": f"GR-{501 + len(self.grants)}"} | arguments
        self.grants.append(grant)
        return {"grantId": grant["grantId"], "night": grant["night"]}

    def _withdraw(self, grantId: str) -> Any:
        self.withdrawn.append(grantId)
        return {"grantId": grantId, "state": "withdrawn"}

    def _feed(self, hive_code: str, kilograms: float) -> Any:
        if hive_code not in {row["hive_code"] for row in HIVE_ROWS}:
            raise LookupError(f"no hive {hive_code}")
        self.fed.append((hive_code, kilograms))
        return {"left_kg": 40 - kilograms}
