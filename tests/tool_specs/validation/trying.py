"""Tools of the boat hire, put together of statements and validated alone."""

import json
from typing import Any

from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import load_domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.validate import Validation, validate_tools

Statement = dict[str, Any]
BOAT: Statement = {"op": "read", "entity": "boat", "key": "args.boat_id", "as": "boat"}
TRIP: Statement = {"op": "read", "entity": "trip", "key": "args.trip_id", "as": "trip"}
BERTH: Statement = {"op": "read", "entity": "berth", "key": "args.berth_id", "as": "berth"}
REFS = {f"{entity}_id": {"type": "string", "ref": entity} for entity in ("boat", "trip", "berth")}
MORE = {"more": {"type": "integer", "min": 1, "max": 5}}
RATE = {"rate": {"type": "number", "min": 1, "max": 90}}


def update(target: str, **values: str) -> Statement:
    return {"op": "update", "target": target, "set": values}


def need(that: str, error: str = "refused", **more: str) -> Statement:
    return {"op": "require", "that": that, "error": error, "message": "It cannot be."} | more


def boats(where: str, **more: Any) -> Statement:
    return {"op": "read", "entity": "boat", "where": where, "as": "boats"} | more


def answer(**values: Any) -> Statement:
    return {"op": "return", "value": values}


def validated(*semantics: Statement, **params: Any) -> Validation:
    """Of a tool with these statements; ids that they read by are its parameters too."""
    text = json.dumps(semantics)
    own = {name: spec for name, spec in REFS.items() if f"args.{name}" in text}
    spec = ToolSpec.model_validate(
        {
            "name": "tried_out",
            "description": "A tool that is tried out here.",
            "params": own | params,
            "semantics": list(semantics),
        }
    )
    return validate_tools(load_domain(BOATS), [spec])["tried_out"]


NOTED: Statement = {
    "op": "create",
    "entity": "berth",
    "set": {"label": "args.label", "depth": "1", "lit": "true"},
    "as": "made",
}
LABEL = {"label": {"type": "string", "min": 1, "max": 40}}
EACH: Statement = {"op": "for_each", "over": "boats", "as": "each"}
