"""A domain and its tools as rows of the tables `domains` and `tools`."""

from collections.abc import Iterable
from typing import Any

from records.digest import digest
from records.errors import ConfigError
from records.tables.schemas import Row
from records.tables.splits import own_split, split_of
from tool_specs.domains.domain import Domain
from tool_specs.execution.programs import Program
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.expressions import names_in

LICENSE = "Apache-2.0"
"""Of synthetic tools: they are part of this project, or made with it by its user."""


_TIME = ("jobs", "slack", "user_turn")
"""Of a domain file, what it says about time beside the durations of its tools."""


def domain_id(domain: Domain) -> str:
    file = domain.file.model_dump(mode="json", by_alias=True, exclude={"tools"})
    if not file["user_tools"]:
        del file["user_tools"]  # a domain that has none is what it was before there were any
    for entity in file["entities"].values():
        _drop_unsaid(entity["fields"])
    time = {name: file.pop(name) for name in _TIME}
    if _time_of(domain) is not None:
        file |= time
    return digest("domain", file)


def _drop_unsaid(fields: dict[str, Any]) -> None:
    """Fields that do not say what they are like are what they were before they could."""
    for field in fields.values():
        if field["like"] is None:
            del field["like"]
        _drop_unsaid(field["properties"] or {})


def _time_of(domain: Domain) -> dict[str, Any] | None:
    """None for a domain of which the file says nothing about time."""
    file = domain.file
    said = file.model_dump(include=set(_TIME), exclude_defaults=True)
    if not said:
        return None
    jobs = [job.model_dump(mode="json", by_alias=True, exclude_defaults=True) for job in file.jobs]
    return {"jobs": jobs, "slack": file.slack, "user_turn": file.user_turn}


def spec_hash(spec: ToolSpec) -> str:
    """The same for the same tool, whichever domain it stands in."""
    return digest("tool", spec.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def tool_ids(domain: Domain) -> list[str]:
    """In the order of the file. An id names the spec and all of the domain that gives it its
    meaning: a tool of an edited domain is another tool, which stands in a dataset beside the one
    that earlier rows were made with."""
    place = domain_id(domain)
    return [digest("tool", place, spec_hash(p.spec)) for p in domain.programs.values()]


def _own_split(domain: Domain, spec: ToolSpec) -> str:
    """Whether the tool is held out, which no edit of its domain's seed or policy changes."""
    return own_split("tool", digest("tool", domain.name, spec_hash(spec)))


def domain_row(domain: Domain) -> Row:
    return {
        "domain_id": domain_id(domain),
        "name": domain.name,
        "title": domain.title,
        "category": domain.category,
        "parent_id": None,
        "description": domain.description,
        "entities": _plain(domain.entities),
        "seed_state": domain.file.seed,
        "policy": [rule.model_dump(mode="json") for rule in domain.policy],
        "split": domain.split,
        "clock": domain.now,
        "rules": [rule.model_dump(mode="json") for rule in domain.file.rules],
        # JSON columns sort their keys, and reads answer in the order of the fields
        "field_order": [[name, list(entity.fields)] for name, entity in domain.entities.items()],
        "time": _time_of(domain),
    }


def domain_of_rows(row: Row, tools: Iterable[Row] = ()) -> Domain:
    """The domain that `domain_row` and `tool_rows` were made of, with these of its tools.

    Raises ConfigError for rows that were edited, or written before a domain could be rebuilt.
    """
    if row["clock"] is None:
        raise ConfigError(f"domain {row['name']!r} was written by an older version; make it anew")
    tools = list(tools)
    specs = [
        {name: tool[name] for name in ("name", "description", "params")}
        | {"semantics": tool["semantics_json"]}
        | (tool["time"] or {})
        for tool in tools
    ]
    data = {
        "domain": row["name"],
        **{name: row[name] for name in ("title", "category", "description", "split", "rules")},
        "now": row["clock"],
        "entities": {
            name: _in_order(row["entities"][name], fields) for name, fields in row["field_order"]
        },
        "seed": row["seed_state"],
        "policy": _policy(row["policy"], {spec["name"] for spec in specs}),
        "user_tools": [tool["name"] for tool in tools if is_users(tool)],
        "tools": specs,
        **(row["time"] or {}),
    }
    return Domain.of(data, origin=f"domain {row['name']}")


def _in_order(entity: Row, fields: Iterable[str]) -> Row:
    return entity | {"fields": {name: entity["fields"][name] for name in fields}}


def _policy(rules: Iterable[Row], tools: set[str]) -> list[Row]:
    """Without rules about a tool that is not there: they have nothing to forbid."""
    return [
        rule if rule["tool"] else {"id": rule["id"], "text": rule["text"]}
        for rule in rules
        if rule["tool"] is None or rule["tool"] in tools
    ]


def tool_rows(domain: Domain) -> list[Row]:
    """One row per tool, in the order of the file."""
    place = domain_id(domain)
    ids = zip(domain.programs.values(), tool_ids(domain), strict=True)
    return [_tool_row(domain, program, tool_id, place) for program, tool_id in ids]


def _tool_row(domain: Domain, program: Program, tool_id: str, place: str) -> Row:
    spec = program.spec
    semantics = [
        statement.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for statement in spec.semantics
    ]
    time = spec.model_dump(include={"takes", "waits"}, exclude_none=True)
    return {
        "tool_id": tool_id,
        "name": spec.name,
        "source": "synthetic",
        "category": domain.category,
        "domain_id": place,
        "server": None,
        "description": spec.description,
        "input_schema": spec.input_schema(),
        "output_schema": program.output_schema,
        "annotations": annotations(program) | _audience(domain, spec.name),
        "semantics_json": semantics,
        "evolve_op": "handwritten",
        "generation": 0,
        "parent_id": None,
        "spec_hash": spec_hash(spec),
        "license": LICENSE,
        "drop_reason": None,
        "split": split_of(_own_split(domain, spec), [domain.split]),
        "params": {
            name: param.model_dump(mode="json", exclude_defaults=True)
            for name, param in spec.params.items()
        },
        "proof": None,
        "time": time or None,
    }


USERS = {"audience": ["user"]}
"""Annotation of a tool that only the user owns, in the words that MCP has for content."""


def _audience(domain: Domain, name: str) -> dict[str, Any]:
    return USERS if name in domain.file.user_tools else {}


def is_users(tool: Row) -> bool:
    """Whether no agent may have the tool: only a user calls it."""
    return (tool.get("annotations") or {}).get("audience") == USERS["audience"]


def annotations(program: Program) -> dict[str, Any]:
    """Hints as in MCP, read off the semantics. A wait is no read: what is due changes with it.

    Destructive: it may replace or remove what was there. Idempotent: a second call with the same
    arguments changes nothing more, as far as the expressions alone show it.
    """
    ops = {statement.op for statement in program.spec.semantics}
    waits = program.spec.waits is not None
    again = program.read_only or ("create" not in ops and not _sets_from_state(program))
    return {
        "readOnlyHint": program.read_only and not waits,
        "destructiveHint": bool(ops & {"update", "delete", "unlink"}),
        "idempotentHint": again and not waits,
        "openWorldHint": False,
    }


def _sets_from_state(program: Program) -> bool:
    """Whether any stored value is computed from rows, so that it may move on a second call."""
    return any(
        names_in(node) - {"args"} for _, where, node in program.nodes if where.startswith("set.")
    )


def _plain(models: Any) -> dict[str, Any]:
    return {
        name: model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for name, model in models.items()
    }
