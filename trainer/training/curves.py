"""The curves of a run: as pictures, and as one page without scripts or anything remote.

matplotlib draws them. It takes a second or two to import, so it is imported where it draws.
"""

import html
import importlib.util
import io
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from records.files import write_atomic
from trainer.training.account import AccountLine
from trainer.training.metrics import MetricsLine, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

log = logging.getLogger(__name__)

FILE = "curves.html"

LACKING = "matplotlib is not installed: no curves are drawn; the extra `curves` brings it"


class Plot(NamedTuple):
    """A picture with one or more metrics of the same unit."""

    title: str
    names: Mapping[str, str]
    """Column of the metrics -> how the legend calls it, where there are several."""


PLOTS = (
    Plot("Loss, nats a learnt token", {"loss": "training", "validation_loss": "validation"}),
    Plot("Learning rate", {"lr": ""}),
    Plot("Largest attention logit", {"max_logit": ""}),
    Plot("Heads clipped", {"clipped_heads": ""}),
    Plot("Largest norm of a rotary key's weights", {"rotary_key_norm": ""}),
    Plot("Busiest expert over its share", {"load_excess": ""}),
    Plot("Largest router bias", {"bias_max": ""}),
    Plot("RMS of Muon's update before lr", {"update_rms": ""}),
    Plot("Norm of the gradient", {"grad_norm": ""}),
    Plot("Tokens of documents a second", {"tokens_per_s": ""}),
    Plot("Padding, share of the rows", {"padding": ""}),
)

WIDTH, HEIGHT = 4.4, 2.7
"""Inches of a picture, at 72 points each."""

MOST_POINTS = 600
"""Of a curve; longer ones show the mean of each stretch."""

FEW_POINTS = 40
"""Of a curve that shows each of them as a dot."""

MOST_MARKS = 100
"""Skipped steps that are marked in a picture."""

COLOURS = ("#2c6e9b", "#d1792c", "#5b8c3a", "#8a6fb0")
"""Of a picture's curves, in their order."""

RED, INK, GREY, LIGHT = "#c8432b", "#1c2430", "#66707d", "#e2e2de"

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, in a third of the bytes
    "svg.hashsalt": FILE,  # the same metrics give the same picture
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.edgecolor": LIGHT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": GREY,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "xtick.color": LIGHT,
    "ytick.color": LIGHT,
    "xtick.labelcolor": GREY,
    "ytick.labelcolor": GREY,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 3,
}
"""matplotlib's settings."""

METADATA = ("Creator", "Date", "Format", "Type")
"""What matplotlib writes into a picture unless told otherwise."""

_ALONE = threading.Lock()
"""matplotlib is for one thread at a time; flows draw beside a training that draws at its end."""

_PAGE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1c2430; background: #fbfbfa }
h1 { font-size: 1.3rem } section { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: 1rem }
svg { border: 1px solid #e2e2de; border-radius: 6px; width: 430px; height: auto }
table { border-collapse: collapse } td { padding: 0 1.2rem .1rem 0 }
td:first-child { text-align: right; font-variant-numeric: tabular-nums }
"""


class Picture(NamedTuple):
    title: str
    svg: str
    """Stands alone: an image, or part of a page."""


def write_curves(
    folder: Path,
    lines: Sequence[MetricsLine],
    *,
    title: str,
    about: str,
    counts: Sequence[AccountLine],
    plots: Sequence[Plot] = PLOTS,
    axis: str = "step",
) -> None:
    """`title`, `about` and the words of `counts` are shown as text; `axis` is what the pictures
    count. Without matplotlib the page says so in the pictures' place."""
    drawn = "".join(one.svg for one in pictures(lines, plots, axis=axis))
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_PAGE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>{_table(counts)}"
        f"<p>{html.escape(marked(lines))}</p>"
        f"<section>{drawn}</section></body></html>"
    )
    write_atomic(folder / FILE, page.encode())


def _table(counts: Sequence[AccountLine]) -> str:
    rows = (
        f"<tr><td>{one.number:,}</td><td>{one.what} {one.became}</td>"
        f"<td>{html.escape(one.reason)}</td><td>{html.escape(one.meaning)}</td></tr>"
        for one in counts
    )
    return f"<table>{''.join(rows)}</table>"


def can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def pictures(
    lines: Sequence[MetricsLine], plots: Sequence[Plot] = PLOTS, *, axis: str = "step"
) -> list[Picture]:
    """One of each plot that has a point; none without matplotlib."""
    if not can_draw():
        log.info(LACKING)
        return []
    made: list[Picture] = []
    for plot in plots:
        curves = {name: _points(lines, name) for name in plot.names}
        if any(curves.values()):
            made.append(_picture(plot, curves, lines, axis))
    return made


def marked(lines: Sequence[MetricsLine]) -> str:
    """What the pictures mark, in words; empty where they mark nothing."""
    if not can_draw():
        return LACKING
    skipped = len(_skipped(lines))
    most = f", the first {MOST_MARKS}" if skipped > MOST_MARKS else ""
    return f"Red: steps that were skipped{most}." if skipped else ""


def _skipped(lines: Sequence[MetricsLine]) -> list[int]:
    return [line["step"] for line in lines if line["skipped"]]


def _points(lines: Sequence[MetricsLine], name: str) -> list[tuple[float, float]]:
    """(step, value), thinned."""
    points = [(x, y) for x, y in column(lines, name) if math.isfinite(y)]
    size = -(-len(points) // MOST_POINTS)
    stretches = [points[at : at + size] for at in range(0, len(points), size or 1)]
    return [(s[-1][0], sum(y for _, y in s) / len(s)) for s in stretches]


def _picture(
    plot: Plot,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    lines: Sequence[MetricsLine],
    axis: str,
) -> Picture:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = io.StringIO()
    with _ALONE, mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT))
        axes = figure.add_axes((0.14, 0.17, 0.82, 0.7))
        for (name, points), colour in zip(curves.items(), COLOURS, strict=False):
            if points:
                _draw(axes, points, colour, plot.names[name])
        first, last = lines[0]["step"], lines[-1]["step"]
        if last > first:  # the pictures of a run share their steps
            axes.set_xlim(first, last)
        marks = _skipped(lines)[:MOST_MARKS]
        axes.vlines(
            marks, 0, 1, transform=axes.get_xaxis_transform(), colors=RED, alpha=0.5, linewidth=1
        )
        axes.locator_params(axis="y", nbins=5)
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.set_xlabel(axis)
        axes.set_title(_headline(plot, curves), x=-0.12)
        if sum(map(bool, curves.values())) > 1:
            axes.legend(loc="upper right")
        # without a date, the same metrics give the same bytes
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(METADATA))
    svg = drawn.getvalue()
    head = f'<svg role="img" aria-label="{html.escape(plot.title)}" '
    return Picture(plot.title, svg[svg.index("<svg") :].replace("<svg ", head, 1))


def _draw(axes: "Axes", points: Sequence[tuple[float, float]], colour: str, label: str) -> None:
    """A line, with its points where they are few: one alone would not be seen."""
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) <= FEW_POINTS else None
    axes.plot(steps, values, color=colour, label=label, marker=marker, clip_on=False)
    axes.plot(steps[-1:], values[-1:], color=colour, marker="o", clip_on=False)


def _headline(plot: Plot, curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The title with the last values: `Loss, nats a learnt token: 0.41, validation 0.52`."""
    words = [
        f"{plot.names[name]} {points[-1][1]:.4g}" if n else f"{points[-1][1]:.4g}"
        for n, (name, points) in enumerate(curves.items())
        if points
    ]
    return f"{plot.title}: {', '.join(words)}"
