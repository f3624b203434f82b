"""Commands that read the catalogue: tools list, show, stats, coverage."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App

from flows.cli.shared.options import DatasetOption, Flag, Json, License, Names, at_least
from flows.cli.shared.output import print_rows, say
from records.errors import ConfigError

LISTED = ("name", "origin", "behaves", "license", "split", "drop_reason", "description")
CELL_CHARS = 80
"""Of a description in a list; `show` and `--json` have the whole."""


def register(tools: App) -> None:
    tools.command(list_, name="list")
    tools.command(show)
    tools.command(stats)
    tools.command(coverage)


def list_(
    *,
    source: Literal["mcp", "synthetic"] | None = None,
    category: str | None = None,
    domain: str | None = None,
    server: str | None = None,
    license_: License = None,
    drop_reason: str | None = None,
    operator: str | None = None,
    search: str | None = None,
    limit: Annotated[int, at_least(1)] = 50,
    offset: Annotated[int, at_least(0)] = 0,
    all_: Flag = False,
    dataset: DatasetOption = None,
    json_: Json = False,
) -> None:
    """List the tools of the dataset, a page at a time: name, origin, licence, how they behave.

    Parameters
    ----------
    source
        Only tools of real MCP servers, or only synthetic ones.
    category
        Only tools of this category, such as healthcare_medical.
    domain
        Only tools of this application domain, by its name.
    server
        Only tools of this MCP server.
    license_
        Only tools under this licence: an SPDX id, or unknown.
    drop_reason
        Only tools that were dropped for this reason; `any` for any reason, `none` for tools that
        can be used.
    operator
        Only tools that came about so: imported, handwritten, derive, deepen, compose, ...
    search
        Only tools whose name or description holds this text.
    limit
        Tools on a page.
    offset
        Tools to skip: the page before says where the next begins.
    all_
        Print them all, whatever the limit.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON list of objects, with the whole descriptions.
    """
    from flows.runtime.settings import open_dataset
    from synth.catalogue.tool_lists import Filters, list_tools

    filters = Filters(
        source=source,
        category=category,
        domain=domain,
        server=server,
        license=license_,
        drop_reason=drop_reason,
        operator=operator,
        search=search,
        limit=None if all_ else limit,
        offset=offset,
    )
    page = list_tools(open_dataset(dataset), filters)
    if json_:
        print(json.dumps(page.rows, ensure_ascii=False))  # noqa: T201
    elif page.rows:
        _print_list(page.rows)
    if not page.rows:
        say(f"no tool is on this page; {page.total:,} pass the filters")
        return
    end = offset + len(page.rows)
    following = f"; the next page: --offset {end}" if end < page.total else ""
    say(f"tools {offset + 1:,} to {end:,} of {page.total:,}{following}")


def _print_list(rows: list[dict[str, Any]]) -> None:
    """A line for each tool; wide where nobody's terminal sets the width."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from synth.render.foreign_text import one_line

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in LISTED:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = (one_line(str(row[name] or ""))[:CELL_CHARS] for name in LISTED)
        table.add_row(*map(Text, cells))
    Console(width=None if sys.stdout.isatty() else 240).print(table)


def show(
    name: str,
    *,
    domain: str | None = None,
    server: str | None = None,
    dataset: DatasetOption = None,
    json_: Json = False,
) -> None:
    """Show a tool: where from, what it takes, what it does, an example call with its effect.

    Parameters
    ----------
    name
        The tool's name, or its id; tools of several sources may share a name.
    domain
        Only the one of this application domain.
    server
        Only the one of this MCP server.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print everything the dataset holds about each, as a JSON list of objects.
    """
    from flows.runtime.settings import open_dataset
    from synth.catalogue.tool_card import show_tools, tools_named

    store = open_dataset(dataset)
    found = tools_named(store, name, domain=domain, server=server)
    if json_:
        print(json.dumps(found, indent=2, ensure_ascii=False))  # noqa: T201
    else:
        show_tools(store, found)


def stats(
    *,
    quality: Flag = False,
    real: Path | None = None,
    domains: Names = [],  # noqa: B006
    dataset: DatasetOption = None,
    json_: Json = False,
) -> None:
    """Count the tools of the dataset: by source, category, operator, licence, drop reason, split.

    Parameters
    ----------
    quality
        Instead, whether the synthetic ones look like those of real servers: names, shapes of
        parameters, ideas that come again, nearest neighbours.
    real
        With --quality, a file or a folder of lists that `synth tools import --file` reads, to be
        counted beside them; without it, published figures stand there, as far as they are known.
    domains
        With --quality, the tools that the files of these domains have, in place of the dataset's:
        names, patterns such as 'smart_home/*', paths.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON object with a list for each table.
    """
    from flows.runtime.settings import open_dataset
    from synth.catalogue.tool_lists import tool_stats

    if quality:
        from synth.catalogue.writing.quality import compared, of_dataset, of_files, of_lists

        own = of_files(domains) if domains else of_dataset(open_dataset(dataset))
        figures = compared(own, of_lists(real) if real is not None else None)
        rows = [list(figure) for figure in figures]
        print_rows(["figure", "synthetic", "real"], rows, json_=json_)
        return
    if real is not None or domains:
        raise ConfigError("--real and --domains are about --quality: give it, too")
    sections = tool_stats(open_dataset(dataset))
    if json_:
        print(json.dumps(sections, ensure_ascii=False))  # noqa: T201
        return
    for rows in sections.values():
        if rows:
            print_rows(list(rows[0]), [list(row.values()) for row in rows], json_=False)


def coverage(
    *, svg: Path | None = None, seed: int = 0, dataset: DatasetOption = None, json_: Json = False
) -> None:
    """Say what the tools cover: by category and domain, and how real and synthetic ones overlap.

    Overlap is the share of tools that have a neighbour of the other kind within a cosine distance
    of their words, over all tools; the same within a kind is what to read it against.

    Parameters
    ----------
    svg
        Also draw a map of at most 4,000 of the tools into this file.
    seed
        Draws which ones, and where.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON object, with the count of every domain and server.
    """
    from flows.runtime.settings import open_dataset, writing_to
    from records.files import write_atomic
    from synth.catalogue.coverage import coverage_of
    from tool_specs.coverage.coverage import DISTANCES, Category

    store = open_dataset(dataset)
    found = coverage_of(store, draw=svg is not None, seed=seed)
    if json_:
        parts = found._replace(svg=None)._asdict()
        rows = {name: [row._asdict() for row in own] for name, own in parts.items() if own}
        print(json.dumps(rows))  # noqa: T201
    else:
        shares = [
            (o.of, o.to, o.tools, *(f"{share:.1%}" for share in o.within.values()), o.median)
            for o in found.overlaps
        ]
        head = ["tools of", "to", "n", *(f"within {d}" for d in DISTANCES), "median distance"]
        print_rows(Category._fields, found.categories, json_=False)
        if shares:
            print_rows(head, shares, json_=False)
    if svg is None:
        return
    if found.svg is None:
        raise ConfigError(f"{store.root} has too few usable tools to draw")
    with writing_to("--svg", svg):
        write_atomic(svg, found.svg.encode())
    say(f"drew {svg}")
