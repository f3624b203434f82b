"""The curves of a run as one page without scripts or anything remote."""

import html
import math
from collections.abc import Sequence
from pathlib import Path

from records.files import write_atomic
from trainer.metrics import Line, column

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

WIDTH, HEIGHT, LEFT, BELOW = 420, 200, 56, 22
MOST_POINTS = 600
"""Of a curve; longer ones show the mean of each stretch."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1c2430; background: #fbfbfa }
h1 { font-size: 1.3rem } section { display: flex; flex-wrap: wrap; gap: 1.2rem }
figure { margin: 0; padding: .7rem; background: #fff }
figure { border: 1px solid #e2e2de; border-radius: 6px }
figcaption { font-weight: 600; margin-bottom: .3rem } svg text { font-size: 11px; fill: #66707d }
path { fill: none; stroke: #2c6e9b; stroke-width: 1.5 } line { stroke: #e2e2de }
"""


def write_curves(folder: Path, lines: Sequence[Line], *, title: str, about: str) -> Path:
    """`title` and `about` are shown as text."""
    figures = "".join(_figure(lines, name, words) for name, words in PLOTS)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>"
        f"<section>{figures}</section></body></html>"
    )
    path = folder / FILE
    write_atomic(path, page.encode())
    return path


def _figure(lines: Sequence[Line], name: str, words: str) -> str:
    points = [(x, y) for x, y in column(lines, name) if math.isfinite(y)]
    if not points:
        return ""
    points = _thinned(points)
    (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*points, strict=True))
    wide, high = (x1 - x0) or 1, (y1 - y0) or abs(y1) or 1.0
    path = " ".join(
        f"{'L' if n else 'M'}{LEFT + (x - x0) / wide * (WIDTH - LEFT - 8):.1f}"
        f" {8 + (1 - (y - y0) / high) * (HEIGHT - BELOW - 8):.1f}"
        for n, (x, y) in enumerate(points)
    )
    bottom = HEIGHT - BELOW
    axes = (
        f'<line x1="{LEFT}" y1="8" x2="{LEFT}" y2="{bottom}"/>'
        f'<line x1="{LEFT}" y1="{bottom}" x2="{WIDTH - 8}" y2="{bottom}"/>'
        f'<text x="{LEFT - 6}" y="16" text-anchor="end">{y1:.3g}</text>'
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">{y0:.3g}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{x0:g}</text>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">step {x1:g}</text>'
    )
    last = f"{points[-1][1]:.4g}"
    return (
        f"<figure><figcaption>{html.escape(words)}: {last}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{html.escape(words)}">{axes}<path d="{path}"/></svg></figure>'
    )


def _thinned(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    size = -(-len(points) // MOST_POINTS)
    stretches = [points[at : at + size] for at in range(0, len(points), size)]
    return [(s[-1][0], sum(y for _, y in s) / len(s)) for s in stretches]
