"""One tool on a terminal: where from, what it takes, what it does, an example with its effect."""

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from records.errors import ConfigError
from records.seeds import rng_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.tool_lists import rows_where
from synth.episode.tools.code_environments import is_code
from synth.render.foreign_text import one_line, shortened, visible
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.toolsets.dependencies import Graph
from tool_specs.validation.drawing import draw_success

SHOWN_CHARS = 1_200
"""Of one JSON value; `--json` prints it whole."""

MOST_CARDS = 5
"""Tools of one name that are shown at once."""

NEIGHBOURS = 6
"""Tools named that feed this one, or that it feeds."""


def tools_named(
    dataset: Dataset, name: str, *, domain: str | None = None, server: str | None = None
) -> list[Row]:
    """Rows of the tools with this name, or this id, with `domain` and `example` beside the
    table's columns. ConfigError where there is none."""
    found = rows_where(dataset, "tools", "name = ? OR tool_id = ?", [name, name])
    domains = {row["domain_id"]: row for row in rows_where(dataset, "domains", "true", [])}
    described = [_described(tool, domains.get(tool["domain_id"] or "")) for tool in found]
    fitting = [
        tool
        for tool in described
        if domain in (None, tool["domain"]) and server in (None, tool["server"])
    ]
    if not fitting:
        place = f" of {domain or server}" if domain or server else ""
        raise ConfigError(
            f"no tool{place} is called {name!r} in {dataset.root}; "
            f"look for it: synth tools list --search {name.split('_')[-1]}"
        )
    return sorted(fitting, key=lambda tool: (tool["server"] or tool["domain"], tool["tool_id"]))


def _described(tool: Row, domain: Row | None) -> Row:
    return tool | {"domain": domain and domain["name"], "example": example_of(tool, domain)}


def example_of(tool: Row, domain: Row | None) -> Row | None:
    """A call that succeeds, its observation and what it changes: the one that its proof kept, or
    one drawn now. None for tools that only a server, or a model, can execute, and for domains
    written before they could be rebuilt."""
    if tool["proof"]:
        return tool["proof"]["example"]
    if not tool["semantics_json"] or domain is None or domain["clock"] is None:
        return None
    environment = DomainEnvironment.of(domain_of_rows(domain, [tool]))
    drawn = draw_success(environment, tool["name"], rng_of(tool["tool_id"], "example"))
    if drawn is None:
        return None
    observation, diff = drawn.result.observation, drawn.result.diff
    return {"arguments": drawn.arguments, "observation": observation, "diff": diff}


def show_tools(dataset: Dataset, tools: list[Row], *, console: Console | None = None) -> None:
    """Print a card for each, the first few where many share a name."""
    console = console or Console()
    for tool in tools[:MOST_CARDS]:
        console.print(Group(*_card(tool, neighbours_of(dataset, tool))))
    if len(tools) > MOST_CARDS:
        rest = ", ".join(str(t["server"] or t["domain"]) for t in tools[MOST_CARDS:])
        console.print(Text(visible(f"{len(tools) - MOST_CARDS} more of this name, of: {rest}")))


def _card(tool: Row, neighbours: Row) -> Iterator[RenderableType]:
    yield Rule(Text(visible(tool["name"]), style="bold"))
    yield Text(visible(shortened(tool["description"], SHOWN_CHARS)))
    yield _table([(key, one_line(str(value))) for key, value in facts_of(tool, neighbours)])
    if parameters := list(parameters_of(tool["input_schema"])):
        yield Text("\nTakes", style="bold")
        yield _table(parameters)
    if tool["semantics_json"]:
        yield Text("\nDoes", style="bold")
        yield _table([(str(i), statement_text(s)) for i, s in enumerate(tool["semantics_json"])])
    if example := tool["example"]:
        yield Text("\nExample", style="bold")
        yield _table([(key, _json(example[key])) for key in ("arguments", "observation")])
        effects = [_effect(change) for change in example["diff"]] or ["nothing: it only reads"]
        yield _table([("changes", effect) for effect in effects])


def _table(rows: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for key, value in rows:
        table.add_row(Text(visible(key), style="cyan"), Text(visible(value)))
    return table


def facts_of(tool: Row, neighbours: Row) -> Iterator[tuple[str, Any]]:
    """Name and value, in the order of the card. `neighbours`: as `neighbours_of` gives them."""
    hints = tool["annotations"] or {}
    yield "from", f"{tool['source']}: {tool['server'] or tool['domain']} ({tool['category']})"
    yield "licence", tool["license"]
    yield "split", tool["split"]
    yield "id", tool["tool_id"]
    lineage = f"{tool['evolve_op']}, generation {tool['generation']}"
    yield "made by", lineage + (f", of {tool['parent_id']}" if tool["parent_id"] else "")
    if tool["drop_reason"]:
        yield "dropped", tool["drop_reason"]
    if "originalName" in hints:
        yield "original name", hints["originalName"]
    yield "behaves", ", ".join(_behaviour(hints)) or "says nothing of itself"
    yield (
        "runs by",
        "the interpreter"
        if tool["semantics_json"]
        else "its server"
        if tool["server"]
        else "a sandbox"
        if is_code(tool)
        else "a model that imagines it",
    )
    for key, names in neighbours.items():
        yield key, ", ".join(names)


def _behaviour(hints: Row) -> Iterator[str]:
    words = {
        "readOnlyHint": ("only reads", "writes"),
        "destructiveHint": ("may replace or remove", "only adds"),
        "idempotentHint": ("a second call changes nothing more", "a second call acts again"),
        "openWorldHint": ("reaches outside", "stays in its world"),
    }
    for hint, (yes, no) in words.items():
        if hint in hints and not (hint == "destructiveHint" and hints.get("readOnlyHint")):
            yield yes if hints[hint] else no


def neighbours_of(dataset: Dataset, tool: Row) -> Row:
    """Names of tools of the same domain or server that feed this one, and that it feeds."""
    place = "server" if tool["server"] else "domain_id"
    own = rows_where(dataset, "tools", f"{place} = ?", [tool[place]])
    graph = Graph(own, rows_where(dataset, "domains", "domain_id = ?", [tool["domain_id"]]))
    if tool["tool_id"] not in graph.ids:
        return {}
    names = dict(zip(graph.ids, graph.names, strict=True))
    edges = graph.edges_among(range(len(graph.ids)))
    feeding = {f"{names[e.giver]} ({e.carries})" for e in edges if e.taker == tool["tool_id"]}
    fed = {f"{names[e.taker]} ({e.carries})" for e in edges if e.giver == tool["tool_id"]}
    found = {"fed by": feeding, "feeds": fed}
    return {key: _some(sorted(value)) for key, value in found.items() if value}


def _some(names: list[str]) -> list[str]:
    more = len(names) - NEIGHBOURS
    return names[:NEIGHBOURS] + ([f"{more} more"] if more > 0 else [])


def parameters_of(schema: Any) -> Iterator[tuple[str, str]]:
    """Each parameter with its type, its values and its description."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") or [] if isinstance(schema, dict) else []
    for name, member in properties.items() if isinstance(properties, dict) else ():
        spec = member if isinstance(member, dict) else {}
        kind = spec.get("type", "anything")
        words = [" or ".join(kind) if isinstance(kind, list) else str(kind)]
        if values := spec.get("enum"):
            words.append(f"one of {', '.join(map(str, values[:8]))}")
        words.append("required" if name in required else "optional")
        yield name, f"{', '.join(words)}. {one_line(str(spec.get('description', '')))}"


def statement_text(statement: Row) -> str:
    """A statement of a tool's program on one line."""
    rest = {key: value for key, value in statement.items() if key != "op"}
    return f"{statement['op']} {_json(rest)}"


def _effect(change: Row) -> str:
    what = f"{change['op']} {change['entity']} {change['id']}"
    sides = {"update": ("before", "after"), "create": ("after",), "delete": ("before",)}
    return f"{what}: {' -> '.join(_json(change[side]) for side in sides[change['op']])}"


def _json(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), SHOWN_CHARS)
