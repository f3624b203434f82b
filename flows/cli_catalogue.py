"""Commands that read the catalogue: tools list, show."""

import json
from typing import Annotated, Literal

from cyclopts import Parameter

from flows.settings import open_dataset
from records.errors import ConfigError
from records.query import run_sql

Dataset = Annotated[str | None, Parameter(name="--dataset", alias="-d")]
Json = Annotated[bool, Parameter(name="--json", negative="")]


def list_(
    *,
    source: Literal["mcp", "synthetic"] | None = None,
    dataset: Dataset = None,
    json_: Json = False,
) -> None:
    """List the tools of the dataset: name, where from, split, why left out, description.

    Parameters
    ----------
    source
        Only tools of real MCP servers, or only synthetic ones.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON list of objects.
    """
    from flows.cli_data import print_result

    only = f"where t.source = '{source}'" if source else ""
    query = f"""
        select t.name, coalesce(t.server, d.name) as from_, t.split, t.drop_reason, t.description
        from tools t left join domains d using (domain_id) {only} order by 2, 1
    """
    print_result(run_sql(open_dataset(dataset), query), json_=json_)


def show(name: str, *, dataset: Dataset = None) -> None:
    """Print everything the dataset holds about a tool, as JSON.

    Parameters
    ----------
    name
        The tool's name; tools of several sources may share one, and all are shown.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    """
    store = open_dataset(dataset)
    found = [row for row in store.rows("tools") if row["name"] == name]
    if not found:
        raise ConfigError(f"no tool {name!r} in {store.root}; `synth tools list` names them all")
    print(json.dumps(found, indent=2, ensure_ascii=False))  # noqa: T201
