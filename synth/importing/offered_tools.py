"""The tools that imported conversations show, as rows of the catalogue, each read once.

They are read as `synth tools import` reads lists of others, so names and parameters become those
that models can write, and a tool that cannot be used, or that speaks to the model, is none.
"""

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ConfigError, ItemError
from records.tables.schemas import Row
from tool_specs.importing.instructing.finding import released_of
from tool_specs.importing.licences import UNKNOWN
from tool_specs.importing.parameter_names import WritableSchema, written_arguments
from tool_specs.importing.tool_files import CATEGORY, read_listings
from tool_specs.importing.tool_forms import as_mcp
from tool_specs.importing.tool_lists import QUARANTINED, ToolListSource, rows_of_answer

SOURCE = "imported"
"""Column `source` of such tools: no server runs them, and no model plays them."""

KEPT_TOOLS = 8_192
"""Tools that are remembered, the ones used last."""


class OfferedTool(NamedTuple):
    row: Row
    own_name: str
    """As the file has it."""
    renamed: WritableSchema | None
    """Its schema, where the file calls parameters otherwise."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those of a call of the file, under the names of the row."""
        return written_arguments(given, self.renamed) if self.renamed else dict(given)


class OfferedTools:
    """Rows of tools, by what a file says of them."""

    def __init__(self, license: str, released: Collection[str]) -> None:
        """`released`: tools, written SOURCE/TOOL, that are used although their texts were found to
        instruct the model that reads them."""
        self._license = license
        self._released = released
        self.not_seen = set(released)
        """Those of them that no conversation has shown so far."""
        self._known: OrderedDict[str, OfferedTool | ItemError] = OrderedDict()

    def of(self, listed: Sequence[Any], source: str) -> list[OfferedTool]:
        """One for each tool of the list; one that stands there twice counts once. ItemError where
        one cannot be used, or two share a name."""
        found: dict[str, OfferedTool] = {}
        for given in listed:
            tool = self._tool(given, source)
            name = tool.row["name"]
            if found.setdefault(name, tool).row["tool_id"] != tool.row["tool_id"]:
                raise ItemError("duplicate_tool", f"two tools are called {name!r}")
        return list(found.values())

    def _tool(self, given: Any, source: str) -> OfferedTool:
        try:
            key = digest(source, json.dumps(given, sort_keys=True))
        except (TypeError, ValueError, RecursionError) as error:
            raise ItemError("bad_tools", f"a tool is no JSON: {error}") from error
        if key not in self._known:
            self._known[key] = self._read(given, source)
            if len(self._known) > KEPT_TOOLS:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        known = self._known[key]
        if isinstance(known, ItemError):
            raise ItemError(known.reason, known.detail)
        return known

    def _read(self, given: Any, source: str) -> OfferedTool | ItemError:
        origin = ToolListSource(
            server=source,
            definition=SOURCE,  # such a tool is another one than that of a list of the same name
            category=CATEGORY,
            license=self._license,
            may_write=True,
        )
        decided = released_of(source, self._released)
        [row] = rows_of_answer([_with_schema(as_mcp(given))], origin, decided=decided)
        self.not_seen.discard(f"{source}/{row['name']}")
        if row["drop_reason"] is not None:
            what = row["name"] or str(given)[:60]
            found = {k: v for k, v in row["annotations"].items() if k in _EXPLAINING}
            return ItemError(f"tool_{row['drop_reason']}", f"tool {what!r} {found or ''}".strip())
        originals = row["annotations"].get("originalParameters")
        renamed = WritableSchema(row["input_schema"], originals) if originals else None
        own_name = row["annotations"].get("originalName", row["name"])
        return OfferedTool(row | {"source": SOURCE, "split": "train"}, own_name, renamed)


_EXPLAINING = ("inputSchemaFault", "quarantine")
"""Annotations that say why a tool cannot be used."""


def listed_in(path: Path) -> tuple[dict[str, Any], ...]:
    """The tools that a file lists, whoever offers them. ConfigError for what lists none, and for a
    tool that no conversation could show."""
    tools = tuple(dict(tool) for listing in read_listings(path) for tool in listing.tools)
    try:
        OfferedTools(UNKNOWN, ()).of(tools, str(path))
    except ItemError as error:
        reason = error.reason.removeprefix("tool_")
        if reason not in QUARANTINED:  # which of them are released is known later
            raise ConfigError(f"{path}: {error.detail} cannot be used: {reason}") from error
    return tools


def _with_schema(tool: Any) -> Any:
    """A function that names no parameters takes none."""
    is_bare = isinstance(tool, Mapping) and "name" in tool and "inputSchema" not in tool
    return {**tool, "inputSchema": {"type": "object", "properties": {}}} if is_bare else tool
