"""Simulator, job `simulate_call`: what a tool answers and changes, guessed from its words.

The guess goes by names: an argument that is a row's key names the row, one called like a field
sets or filters it, a verb like `cancel` moves a status to `cancelled`. What a tool does beside
that, such as taking a fee or freeing what was taken, it does not see: it is a template.
"""

import json
from typing import Any

from offline_llm.reading.sections import sections
from offline_llm.reading.words import split, stem, table
from offline_llm.server.request import ChatRequest
from offline_llm.server.sampling import sample
from offline_llm.settings.settings import OfflineSettings
from offline_llm.simulator.reading import Named, SimCall, SimRow
from records.digest import digest
from records.seeds import rng_of

_MAKING = {stem(w) for w in table(
    "create add new make open book sell file place start announce insert register post submit"
    " enrol schedule log append write upload generate"
)}  # fmt: skip
_REMOVING = {stem(w) for w in table("delete remove erase drop destroy purge")}
_LOWERING = {stem(w) for w in table("pay payment withdraw spend charge lower take use deduct")}
_READING = {stem(w) for w in table(
    "get list find search look show check read fetch count report describe view query browse"
)}  # fmt: skip
_COUNTING = frozenset(table("count total num number how"))


def simulate_call(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    call = SimCall.of(found)
    attempt = sum(message["role"] == "assistant" for message in request.messages)
    rng = rng_of(digest(*(found.get(name, "") for name in ("state", "tool", "call"))), "simulator")
    draws = [rng.random() for _ in range(4)]
    if words := call.missing():
        return _error("not_found", words)
    if call.tool.get("read_only") or _reads(call):
        return {"observation": _read(call), "is_error": False, "patch": []}
    if attempt > 1:
        return _error("not_possible", "This cannot be done as things stand.")
    patch, rows = _changes(call)
    errors = settings.simulator_errors
    if patch and draws[0] < errors.forgets_change:
        patch = []
    if patch and draws[1] < errors.wrong_field:
        patch = [_with_wrong_field(call, patch[0], draws[2]), *patch[1:]]
    if patch and attempt == 0 and draws[3] < errors.invalid_patch:
        patch = [patch[0] | {"entity": f"{patch[0]['entity']}s"}, *patch[1:]]
    return {"observation": _written(call, rows), "is_error": False, "patch": patch}


def _reads(call: SimCall) -> bool:
    """Whether a tool that declares nothing only reads, by the first verb of its name."""
    verbs = [stem(word) for word in split(call.tool["name"])]
    known = [verb for verb in verbs if verb in _READING | _MAKING | _REMOVING]
    return bool(known) and known[0] in _READING


def _error(code: str, message: str) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"observation": {"error": error}, "is_error": True, "patch": []}


def _with_wrong_field(call: SimCall, op: dict[str, Any], draw: float) -> dict[str, Any]:
    """The change with one plain value another than it should be."""
    for name, value in op["set"].items():
        spec = call.fields(op["entity"]).get(name, {})
        others = [v for v in spec.get("values", ()) if v != value]
        if others:
            return op | {"set": op["set"] | {name: others[int(draw * len(others))]}}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return op | {"set": op["set"] | {name: value + 1}}
    return op


def _read(call: SimCall) -> Any:
    for name, schema in call.outputs.items():
        members = (schema.get("items") or {}).get("properties") or {}
        if schema.get("type") == "array" and members:
            entity = max(call.entities, key=lambda e: len(members.keys() & call.fields(e).keys()))
            rows = [row for row in call.rows[entity] if _fits(call, entity, row)]
            listed = [_shaped(members, [row], call, []) for row in rows]
            return {name: listed} | _shaped(call.outputs, _rows(call), call, rows, but=name)
    if call.outputs:
        return _shaped(call.outputs, _rows(call), call, [])
    entity = (
        call.named[0].entity if call.named else call.entity_of_name() or next(iter(call.entities))
    )
    rows = [row for row in call.rows[entity] if _fits(call, entity, row)]
    return rows[0] if call.named and rows else {"results": rows[:10], "count": len(rows)}


def _rows(call: SimCall) -> list[SimRow]:
    return [named.row for named in call.named]


def _fits(call: SimCall, entity: str, row: SimRow) -> bool:
    """Whether the arguments, read as filters, let the row through."""
    for param, value in call.arguments.items():
        if param in row and not _same(row[param], value):
            return False
        for side in ("max", "min"):
            bound = param.removeprefix(f"{side}_")
            if bound == param or not isinstance(row.get(bound), int | float):
                continue
            if (row[bound] > value) if side == "max" else (row[bound] < value):
                return False
    for named in call.named:
        refs = [f for f, s in call.fields(entity).items() if s.get("to") == named.entity]
        own = named.row.get(call.key(named.entity))
        if refs and named.param not in row and not any(_same(row[f], own) for f in refs):
            return False
        if named.entity == entity and row.get(call.key(entity)) != own:
            return False
    return True


def _same(stored: Any, wanted: Any) -> bool:
    if isinstance(stored, list):
        return wanted in stored
    if isinstance(stored, str) and isinstance(wanted, str):
        return wanted.casefold() in stored.casefold()
    return stored == wanted


def _changes(call: SimCall) -> tuple[list[dict[str, Any]], list[SimRow]]:
    """The patch, and the rows as they are after it, the one that matters most first."""
    made = _entity_made(call)
    if made is not None:
        row = _new_row(call, made)
        values = {name: value for name, value in row.items() if name != call.key(made)}
        op = {"op": "create", "entity": made, "id": row[call.key(made)], "set": values}
        return [op], [row, *_rows(call)]
    if not call.named:
        return [], []
    removes = bool(call.verbs & _REMOVING)
    patch, rows = [], []
    for named in [n for n in call.named if n.param == call.named[0].param]:
        key = named.row[call.key(named.entity)]
        new = {} if removes else _set(call, named)
        if removes or new:
            op = "delete" if removes else "update"
            patch.append({"op": op, "entity": named.entity, "id": key, "set": new})
        rows.append(named.row | new)
    return patch, [*rows, *_rows(call)]


def _entity_made(call: SimCall) -> str | None:
    """An entity whose key the tool returns and is not given, or that it is named after."""
    keys = {call.key(e): e for e in call.entities}
    returned = [e for key, e in keys.items() if key in call.outputs and key not in call.arguments]
    if returned:
        return returned[0]
    first = {stem(word) for word in split(call.tool["name"])[:1]}
    named = call.entity_of_name()
    given = {one.entity for one in call.named}
    return named if named not in given and (first | call.verbs) & _MAKING else None


def _new_row(call: SimCall, entity: str) -> SimRow:
    row: SimRow = {}
    declared = call.entities[entity]
    for name, spec in call.fields(entity).items():
        if name == declared["key"]:
            named = (
                call.arguments.get(name) or call.arguments.get("name") or call.arguments.get("id")
            )
            row[name] = declared.get("next_id") or str(named or f"{entity}-{declared['rows'] + 1}")
        elif name in call.arguments:
            row[name] = call.arguments[name]
        elif spec["type"] == "ref":
            found = [n.row[call.key(n.entity)] for n in call.named if n.entity == spec["to"]]
            row[name] = found[0] if found else None
        elif not spec.get("optional"):
            same = [r[name] for r in _rows(call) if name in r and spec["type"] != "enum"]
            row[name] = same[0] if same else _first(spec, call.now)
            if row[name] == "":  # nobody said it, and nobody wants to read an empty text
                row[name] = f"{entity} {declared['rows'] + 1}".replace("_", " ")
    return {name: value for name, value in row.items() if value is not None}


def _first(spec: dict[str, Any], now: str) -> Any:
    """The value that a new row most likely starts with."""
    kind = spec["type"]
    if kind in ("integer", "number"):
        return max(0, spec.get("min") or 0)
    if kind == "enum":
        return spec["values"][0]
    plain = {"datetime": now, "date": now[:10], "boolean": False, "list": [], "object": {}}
    return plain.get(kind, "")


def _set(call: SimCall, named: Named) -> SimRow:
    """Fields of the row that the call changes, by what it is given and what it says it returns."""
    fields, row, new = call.fields(named.entity), named.row, {}
    free = [p for p in call.arguments if p not in {n.param for n in call.named}]
    for name, spec in fields.items():
        if name == call.key(named.entity):
            continue
        given = next((p for p in free if p == name or name.endswith(f"_{p}")), None)
        other = [n for n in call.named if spec.get("to") == n.entity and n.param != named.param]
        if given is not None and spec["type"] != "list":
            new[name] = call.arguments[given]
        elif given is not None or (spec["type"] == "list" and _singular(name) in free):
            value = call.arguments[given or _singular(name)]
            new[name] = value if isinstance(value, list) else [*row[name], value]
        elif spec["type"] == "ref" and other:
            new[name] = other[0].row[call.key(other[0].entity)]
        elif spec["type"] == "enum":
            said = [v for v in spec["values"] if stem(v.split("_")[-1]) in call.verbs]
            new |= {name: said[0]} if said else {}
        elif name in call.outputs and spec["type"] == "boolean":
            new[name] = not row[name]
        elif name in call.outputs and spec["type"] in ("integer", "number"):
            amounts = [call.arguments[p] for p in free]
            amount = next((a for a in amounts if isinstance(a, int | float)), 0)
            new[name] = row[name] + (-amount if call.verbs & _LOWERING else amount)
    return {name: value for name, value in new.items() if value != row.get(name)}


def _singular(name: str) -> str:
    return name[:-3] + "y" if name.endswith("ies") else name.removesuffix("s")


def _written(call: SimCall, rows: list[SimRow]) -> Any:
    if call.outputs:
        return _shaped(call.outputs, rows, call, [])
    return {"ok": True} | (rows[0] if rows else {})


def _shaped(
    members: dict[str, Any], rows: list[SimRow], call: SimCall, counted: list[SimRow], but: str = ""
) -> SimRow:
    """An object with these members: values of rows and arguments by name, counts, or samples."""
    shown: SimRow = {}
    for name, schema in members.items():
        if name == but:
            continue
        found = next((row[name] for row in [*rows, call.arguments] if name in row), None)
        kind = schema.get("type", "")
        if found is None and "null" not in kind:
            found = len(counted) if set(split(name)) & _COUNTING else _referred(call, name, rows)
            found = sample(schema, json.dumps(call.arguments)) if found is None else found
        shown[name] = found
    return shown


def _referred(call: SimCall, name: str, rows: list[SimRow]) -> Any:
    """What people call the row that a ref of this name points at."""
    if name not in call.entities:
        return None
    keys = {row.get(call.key(name)) or row.get(f"{name}_id") for row in rows}
    for row in call.rows[name]:
        if row[call.key(name)] in keys:
            names = [f for f, s in call.fields(name).items() if s["type"] == "string"]
            return row[names[min(1, len(names) - 1)]]
    return None
