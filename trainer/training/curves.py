"""The curves of a run: as pictures, and as one page without scripts or anything remote."""

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from records.files import write_atomic
from trainer.training.account import AccountLine
from trainer.training.metrics import MetricsLine, column

FILE = "curves.html"

PLOTS = (
    ("loss", "Loss, nats a learnt token"),
    ("lr", "Learning rate"),
    ("max_logit", "Largest attention logit"),
    ("clipped_heads", "Heads clipped"),
    ("rotary_key_norm", "Largest norm of a rotary key's weights"),
    ("load_excess", "Busiest expert over its share"),
    ("bias_max", "Largest router bias"),
    ("update_rms", "RMS of Muon's update before lr"),
    ("grad_norm", "Norm of the gradient"),
    ("tokens_per_s", "Tokens a second"),
)

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BELOW = 420, 230, 62, 12, 40, 26
MOST_POINTS = 600
"""Of a curve; longer ones show the mean of each stretch."""
MOST_MARKS = 100
"""Skipped steps that are marked in a picture."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1c2430; background: #fbfbfa }
h1 { font-size: 1.3rem } section { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: 1rem }
svg { border: 1px solid #e2e2de; border-radius: 6px }
table { border-collapse: collapse } td { padding: 0 1.2rem .1rem 0 }
td:first-child { text-align: right; font-variant-numeric: tabular-nums }
"""


class Picture(NamedTuple):
    title: str
    svg: str
    """Stands alone: an image, or part of a page."""


class _Frame(NamedTuple):
    """Where points lie in a picture. Pictures of one run share its steps."""

    steps: tuple[float, float]
    """The first and the last."""
    values: tuple[float, float]
    """The least and the largest."""

    def place(self, step: float, value: float) -> str:
        """`x y`; what does not vary lies at the left, or at the bottom."""
        (x0, x1), (y0, y1) = self
        across = (step - x0) / ((x1 - x0) or 1)
        up = (value - y0) / ((y1 - y0) or 1)
        return (
            f"{LEFT + across * (WIDTH - RIGHT - LEFT):.1f} "
            f"{HEIGHT - BELOW - up * (HEIGHT - BELOW - TOP):.1f}"
        )


def write_curves(
    folder: Path,
    lines: Sequence[MetricsLine],
    *,
    title: str,
    about: str,
    counts: Sequence[AccountLine],
) -> Path:
    """`title`, `about` and the words of `counts` are shown as text."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>{_table(counts)}"
        f"<p>{html.escape(marked(lines))}</p>"
        f"<section>{''.join(one.svg for one in pictures(lines))}</section></body></html>"
    )
    path = folder / FILE
    write_atomic(path, page.encode())
    return path


def _table(counts: Sequence[AccountLine]) -> str:
    rows = (
        f"<tr><td>{one.number:,}</td><td>{one.what} {one.became}</td>"
        f"<td>{html.escape(one.reason)}</td><td>{html.escape(one.meaning)}</td></tr>"
        for one in counts
    )
    return f"<table>{''.join(rows)}</table>"


def pictures(lines: Sequence[MetricsLine]) -> list[Picture]:
    """One of each curve that has a point."""
    skipped = _skipped(lines)[:MOST_MARKS]
    steps = (lines[0]["step"], lines[-1]["step"]) if lines else (0, 0)
    made: list[Picture] = []
    for name, words in PLOTS:
        if points := [(x, y) for x, y in column(lines, name) if math.isfinite(y)]:
            made.append(_picture(steps, _thinned(points), words, skipped))
    return made


def marked(lines: Sequence[MetricsLine]) -> str:
    """What the pictures mark, in words; empty where they mark nothing."""
    skipped = len(_skipped(lines))
    most = f", the first {MOST_MARKS}" if skipped > MOST_MARKS else ""
    return f"Red: steps that were skipped{most}." if skipped else ""


def _skipped(lines: Sequence[MetricsLine]) -> list[int]:
    return [line["step"] for line in lines if line["skipped"]]


def _picture(
    steps: tuple[float, float],
    points: Sequence[tuple[float, float]],
    words: str,
    skipped: Sequence[int],
) -> Picture:
    values = [value for _, value in points]
    frame = _Frame(steps, (min(values), max(values)))
    path = " ".join(f"{'L' if n else 'M'}{frame.place(*one)}" for n, one in enumerate(points))
    x, y = frame.place(*points[-1]).split()
    drawn = (
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f"{_axes(frame)}{_marks(frame, skipped)}"
        f'<path d="{path}" fill="none" stroke="#2c6e9b" stroke-width="1.5"/>'
        f'<circle cx="{x}" cy="{y}" r="2.5" fill="#2c6e9b"/>'
        f'<text x="12" y="22" font-size="14" font-weight="600" fill="#1c2430">'
        f"{html.escape(words)}: {_short(points[-1][1])}</text>"
    )
    head = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    size = f'width="{WIDTH}" height="{HEIGHT}" font-family="system-ui, sans-serif"'
    return Picture(words, f'<svg {head} {size} aria-label="{html.escape(words)}">{drawn}</svg>')


def _axes(frame: _Frame) -> str:
    (x0, x1), (y0, y1) = frame
    bottom, right = HEIGHT - BELOW, WIDTH - RIGHT
    labels = [(LEFT - 6, bottom, "end", _short(y0)), (LEFT, HEIGHT - 8, "start", f"step {x0:,.0f}")]
    if y1 > y0:
        labels.append((LEFT - 6, TOP + 8, "end", _short(y1)))
    if x1 > x0:
        labels.append((right, HEIGHT - 8, "end", f"{x1:,.0f}"))
    texts = (f'<text x="{x}" y="{y}" text-anchor="{a}">{words}</text>' for x, y, a, words in labels)
    return (
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#e2e2de"/>'
        f'<g font-size="11" fill="#66707d">{"".join(texts)}</g>'
    )


def _marks(frame: _Frame, skipped: Sequence[int]) -> str:
    places = (frame.place(step, frame.values[1]).split()[0] for step in skipped)
    lines = (f'<path d="M{x} {TOP}V{HEIGHT - BELOW}"/>' for x in places)
    return f'<g stroke="#c8432b" stroke-opacity=".5">{"".join(lines)}</g>'


def _short(value: float) -> str:
    """In so few characters that it fits beside an axis."""
    for least, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}"


def _thinned(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    size = -(-len(points) // MOST_POINTS)
    stretches = [points[at : at + size] for at in range(0, len(points), size)]
    return [(s[-1][0], sum(y for _, y in s) / len(s)) for s in stretches]
