"""What every page shares: its frame, its addresses, and what a request may name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse

from records.errors import ConfigError
from synth.browser.access import AccessKeys
from synth.browser.opened import ShownDataset
from synth.render.pages import rendered, style_sheet

HERE = Path(__file__).parent

_SHARED = (HERE.parent / "publish",)
"""Where the templates of conversations lie."""

PAGES = {
    "": "Overview",
    "trajectories": "Trajectories",
    "compare": "Compare",
    "environments": "Environments and tools",
    "rewrites": "Rewrites",
    "costs": "Costs",
    "rows": "Tables",
    "sql": "SQL",
}
"""Of a dataset: part of the address -> its name in the menu."""

MOST_PARAMETERS = 200
"""Of one address."""


class NotThereError(ConfigError):
    """A page, a dataset or a row that an address names is not there."""


def link(dataset: ShownDataset, *path: str, **parameters: Any) -> str:
    """The address of a page; the same as long as the rows are."""
    return address(dataset.name, path, parameters)


def address(name: str, path: tuple[str, ...], parameters: Mapping[str, Any]) -> str:
    where = "/".join(quote(part, safe="") for part in ("d", name, *path) if part)
    given = {key: value for key, value in parameters.items() if value not in (None, "", ())}
    return f"/{where}" + (f"?{urlencode(given, doseq=True)}" if given else "")


def dataset_of(request: Request, name: str) -> ShownDataset:
    datasets = cast("Mapping[str, ShownDataset]", request.app.state.datasets)
    if name not in datasets:
        raise NotThereError(f"there is no dataset {name!r} here; shown are: {', '.join(datasets)}")
    return datasets[name]


def keys_of(request: Request) -> AccessKeys:
    return cast("AccessKeys", request.app.state.keys)


def whole_number(request: Request, name: str, *, most: int = 1_000_000) -> int:
    """A parameter that counts from 0; 0 where there is none."""
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > most:
        raise ConfigError(f"{name} = {text[:40]!r}; a whole number up to {most} is asked for")
    return int(text)


def show(
    request: Request,
    template: str,
    *,
    title: str,
    dataset: ShownDataset | None = None,
    here: str = "",
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A page in its frame. `here`: the entry of the menu that it belongs to."""
    html = rendered(
        HERE / template,
        beside=_SHARED,
        title=title,
        datasets=request.app.state.datasets,
        dataset=dataset,
        here=here,
        menu=PAGES,
        link=link,
        **values,
    )
    # a lone surrogate has been spelt out by then
    return HTMLResponse(html.encode(), status)


@cache
def css() -> str:
    """The report's, and what only the browser has."""
    return style_sheet() + (HERE / "browser.css").read_text(encoding="utf-8")
