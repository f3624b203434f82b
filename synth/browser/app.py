"""The application: pages over some datasets, behind the guard."""

import logging
from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from records.errors import SynthError
from records.store.dataset import Dataset
from synth.browser import (
    catalogue_pages,
    comparing_pages,
    cost_pages,
    overview_pages,
    row_pages,
    trajectory_pages,
)
from synth.browser.access import AccessKeys, BrowserGuard
from synth.browser.opened import ShownDataset, shown_datasets
from synth.browser.site import NotThereError, css, show

log = logging.getLogger("synth.browser")

_PAGES = (
    overview_pages,
    trajectory_pages,
    comparing_pages,
    catalogue_pages,
    cost_pages,
    row_pages,
)


class BrowserApp:
    """`datasets` as pages at 127.0.0.1:`port`, for whoever opens `address` first. `labeller` stands
    in forms for labels until another name is written there."""

    def __init__(self, datasets: Sequence[Dataset], *, port: int, labeller: str) -> None:
        self.datasets: dict[str, ShownDataset] = shown_datasets(datasets)
        keys = AccessKeys()
        self.address = keys.address(port)
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        app.state.datasets, app.state.keys, app.state.labeller = self.datasets, keys, labeller
        for pages in _PAGES:
            app.include_router(pages.router)
        app.add_api_route("/style.css", _style, methods=["GET"])
        app.add_exception_handler(SynthError, _told)
        app.add_exception_handler(HTTPException, _told)
        app.add_exception_handler(Exception, _broken)
        self.asgi: ASGIApp = BrowserGuard(app, keys, port)


def _style() -> Response:
    return Response(css(), media_type="text/css", headers={"cache-control": "max-age=3600"})


def _told(request: Request, error: Exception) -> HTMLResponse:
    """What is wrong with a request, in words. Some of it may repeat what the request said."""
    status = 404 if isinstance(error, NotThereError) else 400
    words = str(error)
    if isinstance(error, HTTPException):
        status, words = error.status_code, "There is no such page."
    return show(request, "error.html.j2", title="Not found", words=words, status=status)


def _broken(request: Request, error: Exception) -> HTMLResponse:
    log.error("%s failed", request.url.path, exc_info=error)
    words = "This page failed; the terminal in which `synth browse` runs says why."
    return show(request, "error.html.j2", title="Failed", words=words, status=500)
