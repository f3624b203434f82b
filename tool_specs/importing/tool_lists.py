"""Tools that somebody else wrote as rows of the table `tools`, from what a server or a file lists.

Pure: starts nothing, fetches nothing. Every text is untrusted. A tool that cannot be used is a row
with its `drop_reason`, never a missing row; one that speaks to the model is quarantined: its reason
is one of `QUARANTINED`, and the rule that it hit stands in its annotations as `quarantine`, the
classifier's score as `instructingScore`, and what a judge or a person decided as `decision`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.tables.schemas import Row
from records.tables.splits import own_split, split_of
from tool_specs.importing.checked_schemas import (
    CheckedSchema,
    checked_schema,
    satisfiable,
    usable_schema,
)
from tool_specs.importing.dialects import Dialect, UnusableError
from tool_specs.importing.instructing.finding import STOPPING, ToolDecision, finding_in
from tool_specs.importing.instructing.texts import hidden, texts_in
from tool_specs.importing.licences import spdx_of
from tool_specs.importing.names import mapped_names
from tool_specs.importing.parameter_names import writable

IMPORT_VERSION = 2
"""Part of the ids: raised when the same listing gives other rows."""

MAX_LISTED_CHARS = 512_000
"""JSON of one tool as listed; what is larger is not even read."""

MAX_DESCRIPTION = 4_000
"""Characters; a longer description is no description of one tool."""

MAX_LINE = 200
"""Characters of a title, and of a tool's own name: cut, it would not lead back to the tool."""

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

QUARANTINED = frozenset({"instructing_description", "hidden_text"})
"""Reasons that say what the tool may do to a model, and not that it is of no use."""


class ToolListSource(Config):
    """What is known of a server beside its answer."""

    server: str
    definition: str = ""
    """Digest of how the server is run and what it holds. Part of its tools' ids: the same tool over
    another fixture is another tool."""

    category: str
    license: str = "unknown"
    split: str = "train"
    read_only_tools: tuple[str, ...] = Field(default=())
    """Tools that only read, though their annotations do not say so."""

    may_write: bool = False
    """Whether tools that are not read-only are usable at all."""


class Listing(NamedTuple):
    """What one server or file listed, as it stands there."""

    source: ToolListSource
    tools: Sequence[Any]
    """As `tools/list` has them; `inputSchema` may be an `UnusableError` instead, saying why there
    is none."""

    dialect: Dialect | None = None
    """Of the schemas; None: each says for itself, or says nothing."""


class _Listed(NamedTuple):
    name: str
    description: str
    tool: Mapping[str, Any]
    spec_hash: str
    is_huge: bool

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Smallest first: which of several of one name stands for it, in any order of the list."""
        return not self.description.strip(), -len(self.description), self.spec_hash


def rows_of_answer(
    tools: Sequence[Any],
    source: ToolListSource,
    dialect: Dialect | None = None,
    *,
    decided: Mapping[str, ToolDecision] = MappingProxyType({}),
) -> list[Row]:
    """One row per listed tool, in the order of the list. `decided`: by the name in its row, what
    counts for more than what is found in its texts."""
    listed = [_listed(tool) for tool in tools]
    names = mapped_names(one.name for one in listed if 0 < len(one.name) <= MAX_LINE)
    best: dict[str, _Listed] = {}
    for one in sorted(listed, key=lambda one: one.rank):
        best.setdefault(one.name, one)
    seen: dict[str, int] = {}
    rows = []
    for one in listed:
        repeat = seen[one.spec_hash] = seen.get(one.spec_hash, -1) + 1
        fault = None
        if not one.name:
            fault = "missing_name"
        elif one.name not in names:
            fault = "unusable_name"
        elif repeat or best[one.name].spec_hash != one.spec_hash:
            fault = "duplicate_name"
        name = names.get(one.name)
        rows.append(_row(one, name, fault, repeat, source, dialect, decided.get(name or "")))
    return rows


def _listed(tool: Any) -> _Listed:
    tool = tool if isinstance(tool, Mapping) else {}
    name = tool["name"] if isinstance(tool.get("name"), str) else ""
    description = tool["description"] if isinstance(tool.get("description"), str) else ""
    spec = {key: tool.get(key) for key in ("inputSchema", "outputSchema", "annotations")}
    try:
        text = json.dumps(
            {"name": name, "description": description, **spec}, sort_keys=True, default=str
        )
    except (RecursionError, TypeError, ValueError):  # too deep, or keys that are no text
        return _Listed(name, description, tool, digest("tool", ascii([name, description])), True)
    return _Listed(name, description, tool, digest("tool", text), len(text) > MAX_LISTED_CHARS)


def _row(
    one: _Listed,
    name: str | None,
    fault: str | None,
    repeat: int,
    source: ToolListSource,
    dialect: Dialect | None,
    decision: ToolDecision | None,
) -> Row:
    given = one.tool.get("annotations")
    given = given if isinstance(given, Mapping) else {}
    annotations: dict[str, Any] = {
        hint: given[hint] for hint in HINTS if isinstance(given.get(hint), bool)
    }
    annotations |= {
        key: _line(given[key]) for key in ("title", "http") if isinstance(given.get(key), str)
    }
    if one.name in source.read_only_tools:
        annotations["readOnlyHint"] = True
    if name != one.name:
        annotations["originalName"] = _line(one.name)
    checked = _input_schema(one, dialect)
    schema = None
    if checked.schema is not None:
        schema, originals = writable(checked.schema)
        if originals:
            annotations["originalParameters"] = originals
    if checked.detail:
        annotations["inputSchemaFault"] = _line(checked.detail)
    _mark_removed(checked, "inputSchema", annotations)
    output = _output_schema(one, dialect, annotations)
    _mark_undocumented(one.description, schema, annotations)
    texts = (one.name, one.description, *texts_in([checked.schema, output, annotations]))
    reason = fault or checked.fault or _text_fault(one.description, texts, annotations, decision)
    if decision is not None:
        annotations["decision"] = decision
    if reason is None and not (source.may_write or annotations.get("readOnlyHint") is True):
        reason = "not_read_only"
    return {
        "tool_id": _tool_id(one.spec_hash, source, repeat, decision),
        "name": name or _line(one.name),
        "source": "mcp",
        "category": source.category,
        "domain_id": None,
        "server": source.server,
        "description": _storable(one.description[: MAX_DESCRIPTION + 1]),
        "input_schema": schema,
        "output_schema": output,
        "annotations": annotations,
        "semantics_json": None,
        "evolve_op": "imported",
        "generation": 0,
        "parent_id": None,
        "spec_hash": one.spec_hash,
        "license": spdx_of(source.license),
        "drop_reason": reason,
        "split": split_of(
            own_split("tool", digest("tool", "mcp", source.server, one.spec_hash)), [source.split]
        ),
        "params": None,
        "proof": None,
        "time": None,
    }


def _tool_id(
    spec_hash: str, source: ToolListSource, repeat: int = 0, decision: str | None = None
) -> str:
    parts = (IMPORT_VERSION, source.server, source.definition, spec_hash)
    return digest("tool", "mcp", *parts, *([repeat] if repeat else []), *filter(None, [decision]))


def is_of(row: Row, source: ToolListSource) -> bool:
    """Whether the row was imported from this very source, and not from another of its name."""
    own_id = _tool_id(row["spec_hash"], source, decision=decision_of(row))
    return row["server"] == source.server and row["tool_id"] == own_id


def decision_of(row: Row) -> ToolDecision | None:
    """What a judge or a person decided about the tool; None where nobody was asked."""
    return (row["annotations"] or {}).get("decision")


def _input_schema(one: _Listed, dialect: Dialect | None) -> CheckedSchema:
    schema = one.tool.get("inputSchema")
    if isinstance(schema, UnusableError):
        return CheckedSchema(None, schema.reason, schema.detail)
    if one.is_huge and isinstance(schema, Mapping):
        return CheckedSchema(None, "huge_schema")
    return usable_schema(schema, dialect)


def _output_schema(one: _Listed, dialect: Dialect | None, annotations: dict[str, Any]) -> Any:
    """The output schema, None where it cannot be used: it is told, and costs nobody the tool."""
    schema = one.tool.get("outputSchema")
    if schema is None or one.is_huge:
        return None
    found = satisfiable(checked_schema(schema, dialect))
    if found.fault is not None:
        annotations["outputSchemaFault"] = found.fault
    _mark_removed(found, "outputSchema", annotations)
    return found.schema


def _mark_removed(found: CheckedSchema, key: str, annotations: dict[str, Any]) -> None:
    """Name the patterns that the schema lost."""
    if found.removed:
        places = {f"{key}{place}": pattern for place, pattern in found.removed.items()}
        annotations["removedPatterns"] = annotations.get("removedPatterns", {}) | places


def _mark_undocumented(description: str, schema: Any, annotations: dict[str, Any]) -> None:
    """Name what has no description: the tool itself, or any of its parameters."""
    missing = [] if description.strip() else ["description"]
    members = (schema or {}).get("properties", {}).values()
    if any(not (isinstance(one, Mapping) and one.get("description")) for one in members):
        missing.append("parameters")
    if missing:
        annotations["undocumented"] = missing


def _text_fault(
    description: str,
    texts: Sequence[str],
    annotations: dict[str, Any],
    decision: ToolDecision | None,
) -> str | None:
    """Why the texts must not be shown to a model, None if they may."""
    if len(description) > MAX_DESCRIPTION:
        return "huge_description"
    if any(hidden(text) for text in texts):
        return None if decision == "released" else "hidden_text"
    found = finding_in(texts)
    if found.is_worth_a_look:
        annotations["instructingScore"] = round(found.score, 2)
    if found.rule is not None:
        annotations["quarantine"] = found.rule
    stops = found.rule is not None if decision is None else decision in STOPPING
    return "instructing_description" if stops else None


def _line(text: str) -> str:
    return _storable(text[:MAX_LINE])


def _storable(text: str) -> str:
    """Lone surrogates, which no file can hold, as the replacement character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
