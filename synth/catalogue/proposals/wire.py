"""The form in which a model writes tools: flat lists of named things, at most four objects deep.

Structured output is surest where a schema is shallow and never recurses, so parameters, `set` and
the returned value are lists of entries here, while a `ToolSpec` nests them as people write them.
`wire_of` and `spec_of` convert between the two and lose nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from records.errors import ConfigError
from tool_specs.domains.loading import checked
from tool_specs.language.domain_file import ParamSpec, ToolSpec
from tool_specs.language.jobs import JobSpec
from tool_specs.language.statements import Create, Return, Statement, Update, expression_text

ProposalWire = dict[str, Any]
"""A tool as the model writes it; members that do not apply are left out."""

Formed = TypeVar("Formed", ToolSpec, JobSpec)

_DURATION = ("takes", "waits")

_MEMBER = frozenset({"type", "description", "optional", "values", "min", "max", "unit", "ref"})
"""What a member of an object can say of itself."""


class WireError(Exception):
    """A tool that is not in order before anything is compiled, or one with no wire form."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        """Sentences, fit to be shown to the model that wrote the tool."""


def spec_of(tool: ProposalWire) -> ToolSpec:
    """The tool that a model wrote. Raises WireError with every problem of its form.

    `tool` fits the schema below. Empty text in a statement stands for a member that is left out:
    some servers make models fill in all of them.
    """
    problems: list[str] = []
    data = {
        "name": tool["name"],
        "description": tool["description"],
        "params": _named("params", [(p["name"], _param(p)) for p in tool["params"]], problems),
        "semantics": _statements("semantics", tool["semantics"], problems),
    } | {name: tool[name] for name in _DURATION if tool.get(name)}
    return _well_formed(ToolSpec, data, problems)


def job_of(job: ProposalWire) -> JobSpec:
    """The job that a model wrote, without its fields. Raises WireError as `spec_of` does."""
    problems: list[str] = []
    data = {name: job[name] for name in ("name", "text", "entity", "due")}
    data |= {"where": job["where"]} if job["where"] else {}
    data |= {"do": _statements("do", job["do"], problems)}
    return _well_formed(JobSpec, data, problems)


def _statements(
    where: str, statements: Sequence[ProposalWire], problems: list[str]
) -> list[dict[str, Any]]:
    return [_statement(f"{where}[{i}]", s, problems) for i, s in enumerate(statements)]


def _well_formed(kind: type[Formed], data: dict[str, Any], problems: list[str]) -> Formed:
    if problems:
        raise WireError(problems)
    try:
        return checked(kind, data, origin="")
    except ConfigError as error:
        raise WireError([line.removeprefix(": ") for line in str(error).splitlines()]) from None


def wire_of(spec: ToolSpec, *, parent: str = "") -> ProposalWire:
    """The tool as a model would write it. Raises WireError for one that nests deeper."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parent": parent,
        "params": [{"name": name} | _wire_param(name, p) for name, p in spec.params.items()],
        "semantics": [_wire_statement(s) for s in spec.semantics],
    } | {name: own for name in _DURATION if (own := getattr(spec, name)) is not None}


def _named(where: str, entries: list[tuple[str, Any]], problems: list[str]) -> dict[str, Any]:
    """Entries as a mapping; a name stands once."""
    found: dict[str, Any] = {}
    for name, value in entries:
        if name in found:
            problems.append(f"{where}: {name!r} stands twice")
        found[name] = value
    return found


def _member(entry: ProposalWire) -> dict[str, Any]:
    return {k: v for k, v in entry.items() if k in _MEMBER and v not in ("", [])}


def _param(entry: ProposalWire) -> dict[str, Any]:
    """A parameter as `ParamSpec` takes it. What does not fit together is `ParamSpec`'s to say."""
    param = _member(entry) | {k: entry[k] for k in ("default",) if k in entry}
    properties = {field["name"]: _member(field) for field in entry.get("fields", ())}
    items = entry.get("items")
    if not items:
        return param | ({"properties": properties} if properties else {})
    item: dict[str, Any] = {"type": items}
    match items:
        case "object":
            item["properties"] = properties
        case "ref":
            item = {"type": "string", "ref": param.pop("ref", None)}
        case "enum":
            item["values"] = param.pop("values", [])
    return param | {"items": item}


def _statement(where: str, statement: ProposalWire, problems: list[str]) -> dict[str, Any]:
    data = {k: v for k, v in statement.items() if v not in ("", [])}
    for part in ("set", "value"):
        if part in data:
            entries = [(e["name"], e["value"]) for e in data[part]]
            named = _named(f"{where}.{part}", entries, problems)
            data[part] = named if part == "set" else _unfolded(where, named, problems)
    defaults: dict[str, Any] = {"create": {"set": {}}, "return": {"value": {}}}
    return defaults.get(data["op"], {}) | data


def _unfolded(where: str, named: Mapping[str, str], problems: list[str]) -> Any:
    """`totals.amount` is `amount` inside an object `totals`; a lone entry without a name is the
    value itself."""
    if list(named) == [""]:
        return named[""]
    value: dict[str, Any] = {}
    for name, expression in named.items():
        *path, last = name.split(".")
        place = value
        for step in path:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                problems.append(f"{where}.value: {step!r} is a value and an object at once")
                break
            place = inner
        else:
            if last in place:
                problems.append(f"{where}.value: {name!r} is a value and an object at once")
            place[last] = expression
    return value


def _wire_param(name: str, param: ParamSpec) -> dict[str, Any]:
    wire = _own(param)
    if param.default is not None:
        if isinstance(param.default, list | dict):
            raise WireError([f"params.{name}: only text, numbers, true and false can be defaults"])
        wire["default"] = param.default
    if param.properties is not None:
        wire["fields"] = _wire_fields(name, param.properties)
    if param.items is not None:
        wire |= _wire_items(name, param.items)
    return wire


def _own(param: ParamSpec) -> dict[str, Any]:
    own = param.model_dump(mode="json", exclude_defaults=True, include=set(_MEMBER))
    return {"type": param.type} | own


def _wire_items(name: str, item: ParamSpec) -> dict[str, Any]:
    said = {key for key in _own(item) if key != "type"}
    match item.type:
        case "object":
            wire: dict[str, Any] = {"items": "object"}
            wire["fields"] = _wire_fields(name, item.properties or {})
        case "string" if item.ref is not None:
            wire, said = {"items": "ref", "ref": item.ref}, said - {"ref"}
        case "enum":
            wire, said = {"items": "enum", "values": list(item.values)}, said - {"values"}
        case "array":
            raise WireError([f"params.{name}: an array of arrays has no wire form"])
        case _:
            wire = {"items": item.type}
    if said or item.default is not None:
        raise WireError([f"params.{name}: its items have their own {', '.join(sorted(said))}"])
    return wire


def _wire_fields(name: str, properties: Mapping[str, ParamSpec]) -> list[dict[str, Any]]:
    if not properties:
        raise WireError([f"params.{name}: an object without members has no wire form"])
    for field, param in properties.items():
        if param.default is not None or param.items is not None or param.properties is not None:
            raise WireError([f"params.{name}.{field}: a default, list or object inside an object"])
    return [{"name": field} | _own(param) for field, param in properties.items()]


def _wire_statement(statement: Statement) -> dict[str, Any]:
    own = statement.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    wire: dict[str, Any] = {"op": own.pop("op")} | own
    if isinstance(statement, Create | Update):
        wire["set"] = _entries(statement.set)
    if isinstance(statement, Return):
        value = statement.value
        wire["value"] = _entries(value if isinstance(value, dict) else {"": value})
    return wire


def _entries(values: Mapping[str, Any], path: str = "") -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for name, value in values.items():
        if "." in name:
            raise WireError([f"{path}{name}: a name with a dot in it has no wire form"])
        if isinstance(value, dict):
            if not value:
                raise WireError([f"{path}{name}: an empty object has no wire form"])
            found += _entries(value, f"{path}{name}.")
        else:
            found.append({"name": f"{path}{name}", "value": expression_text(value)})
    return found
