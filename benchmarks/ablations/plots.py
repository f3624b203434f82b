"""Curves of the ablations as one page without scripts or anything remote."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from records.files import write_atomic

WIDTH, HEIGHT, LEFT, BELOW, RIGHT = 460, 260, 56, 24, 130
COLOURS = ("#2c6e9b", "#c0562f", "#4d8a4a", "#8659a5", "#a08a1f", "#4aa3a3", "#a33d5f", "#555f6b")

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1c2430; background: #fbfbfa }
section { display: flex; flex-wrap: wrap; gap: 1.2rem } h1 { font-size: 1.3rem }
figure { margin: 0; padding: .7rem; background: #fff; border: 1px solid #e2e2de }
figcaption { font-weight: 600 } svg text { font-size: 11px; fill: #66707d }
path { fill: none; stroke-width: 1.5 } line { stroke: #e2e2de }
"""


class Figure(NamedTuple):
    title: str
    across: str
    """What x is."""
    lines: Mapping[str, Sequence[tuple[float, float]]]
    """(x, y) by name, x rising."""
    log_x: bool = False
    log_y: bool = False


def write_page(path: Path, title: str, figures: Sequence[Figure]) -> None:
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><section>{''.join(map(_drawn, figures))}</section>"
        "</body></html>"
    )
    write_atomic(path, page.encode())


def _drawn(figure: Figure) -> str:
    points = [p for line in figure.lines.values() for p in line]
    place_x = _scale([x for x, _ in points], LEFT, WIDTH - RIGHT, log=figure.log_x)
    place_y = _scale([y for _, y in points], HEIGHT - BELOW, 8, log=figure.log_y)
    parts = [
        f'<line x1="{LEFT}" y1="8" x2="{LEFT}" y2="{HEIGHT - BELOW}"/>',
        f'<line x1="{LEFT}" y1="{HEIGHT - BELOW}" x2="{WIDTH - RIGHT}" y2="{HEIGHT - BELOW}"/>',
    ]
    for value in _ends(y for _, y in points):
        at = f'x="{LEFT - 6}" y="{place_y(value) + 4:.0f}"'
        parts.append(f'<text {at} text-anchor="end">{value:.4g}</text>')
    for value, name in zip(_ends(x for x, _ in points), ("", figure.across), strict=True):
        words = html.escape(f"{value:g} {name}".strip())
        parts.append(f'<text x="{place_x(value):.0f}" y="{HEIGHT - 6}">{words}</text>')
    for number, (name, line) in enumerate(figure.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(
            f"{'L' if n else 'M'}{place_x(x):.1f} {place_y(y):.1f}" for n, (x, y) in enumerate(line)
        )
        parts.append(f'<path d="{path}" stroke="{colour}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT + 10}" y="{20 + 16 * number}" style="fill: {colour}">'
            f"{html.escape(name)}</text>"
        )
    title = html.escape(figure.title)
    return (
        f"<figure><figcaption>{title}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{title}">{"".join(parts)}</svg></figure>'
    )


def _ends(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    return min(known), max(known)


def _scale(
    values: Sequence[float], start: float, end: float, *, log: bool
) -> Callable[[float], float]:
    """Places the smallest value at `start` and the largest at `end`."""
    measure = math.log if log else float
    low, high = (measure(value) for value in _ends(values))
    width = (high - low) or 1.0
    return lambda value: start + (measure(value) - low) / width * (end - start)
