"""HTML pages that load nothing and run nothing.

Every value passes `visible` and Jinja2's escaping, and the content security policy allows the
page's own style sheet and no script at all.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from synth.render.figures import number, percent, ratio, usd
from synth.render.foreign_text import one_line, shortened, visible
from synth.render.transcript import where_they_differ

SHOWN_CHARS = 6_000
"""Of one text in the report: a page and a half."""

_CSS = Path(__file__).with_name("report.css")


def page(template: Path, **values: Any) -> str:
    """An HTML page of a template, which is also given `css` and, for its
    content security policy, `css_hash`. Every value is made visible and escaped."""
    css = style_sheet()
    css_digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return rendered(template, css=Markup(css), css_hash=f"sha256-{css_digest}", **values)


def rendered(template: Path, *, beside: tuple[Path, ...] = (), **values: Any) -> str:
    """The template with its values, made visible and escaped. It may take from templates of its own
    folder and of the folders `beside`."""
    environment = _environment((template.parent, *beside))
    return environment.get_template(template.name).render(**values)


def style_sheet() -> str:
    """What every page looks like."""
    return _CSS.read_text(encoding="utf-8")


@cache
def _environment(folders: tuple[Path, ...]) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "ratio": ratio,
        "usd": usd,
        "one_line": lambda text, limit: shortened(one_line(text), limit),
        "shortened": lambda text, limit=SHOWN_CHARS: shortened(text, limit),
    }
    environment.globals["where_they_differ"] = where_they_differ
    return environment


def _shown(value: Any) -> Any:
    """Applied to every value before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
