"""The map of a catalogue as one SVG that loads nothing; its only texts are names of categories."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from tool_specs.coverage.coverage import MapPoint

WIDTH, HEIGHT, MARGIN = 960, 640, 24

COLOURS = {"mcp": "#d9730d", "synthetic": "#2f6db3"}
KINDS = {"mcp": "tools of real MCP servers", "synthetic": "synthetic tools, executable"}

_LABELS = {"mcp": 12, "synthetic": 16}
"""Categories named on the map, the largest."""

_LABEL_CHARS = 28
_NEAR = 50
"""Pixels around a point that count as its surroundings."""

_LINE = 13
"""Pixels between two labels."""


def map_svg(points: Sequence[MapPoint], *, totals: dict[str, int]) -> str:
    """`totals` are the tools of each kind that the points were drawn from."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 40}" role="img" '
        f'aria-label="Map of {sum(totals.values())} tools by their words" '
        'font-family="system-ui, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT + 40}" fill="#fcfcfb"/>',
    ]
    for kind, colour in COLOURS.items():
        dots = "".join(f"M{_x(p)} {_y(p)}h0" for p in points if p.source == kind)
        if dots:
            parts.append(
                f'<path d="{dots}" stroke="{colour}" stroke-width="4.2" stroke-linecap="round" '
                'stroke-opacity="0.5" fill="none"/>'
            )
    parts += _labels(points)
    parts += _legend(points, totals)
    return "".join((*parts, "</svg>"))


def _x(point: MapPoint) -> float:
    return round(MARGIN + point.x * (WIDTH - 2 * MARGIN), 1)


def _y(point: MapPoint) -> float:
    return round(MARGIN + point.y * (HEIGHT - 2 * MARGIN), 1)


def _labels(points: Sequence[MapPoint]) -> list[str]:
    """Each large category named where it is densest; moved down where another name stands."""
    taken: list[tuple[float, float]] = []
    parts = []
    for kind in ("synthetic", "mcp"):
        sizes = Counter(p.category for p in points if p.source == kind)
        for category, _ in sorted(sizes.items(), key=lambda c: (-c[1], c[0]))[: _LABELS[kind]]:
            x, y = _densest([p for p in points if (p.source, p.category) == (kind, category)])
            while any(abs(x - a) < 7 * _LABEL_CHARS / 1.4 and abs(y - b) < _LINE for a, b in taken):
                y += _LINE
            taken.append((x, y))
            parts.append(
                f'<text x="{x}" y="{round(y, 1)}" font-size="11.5" text-anchor="middle" '
                f'fill="{_DARK[kind]}" stroke="#fcfcfb" stroke-width="3" paint-order="stroke" '
                f'font-weight="600">{_label(category)}</text>'
            )
    return parts


def _densest(points: Sequence[MapPoint]) -> tuple[float, float]:
    """Where the point stands that has the most others around it; the first of equals."""
    spots = [(_x(p), _y(p)) for p in points]
    around = [sum(abs(x - a) + abs(y - b) < _NEAR for a, b in spots) for x, y in spots]
    return spots[around.index(max(around))]


_DARK = {"mcp": "#8a4500", "synthetic": "#17406f"}


def _label(category: str) -> str:
    """Categories of MCP tools are anybody's text."""
    plain = "".join(c for c in category.replace("_", " ") if c.isprintable())
    return escape(plain if len(plain) <= _LABEL_CHARS else f"{plain[: _LABEL_CHARS - 3]}...")


def _legend(points: Sequence[MapPoint], totals: dict[str, int]) -> list[str]:
    parts = []
    shown = Counter(p.source for p in points)
    for i, kind in enumerate(k for k in KINDS if totals.get(k)):
        x, y = MARGIN + i * 420, HEIGHT + 20
        words = f"{KINDS[kind]}: {totals[kind]:,}, {shown[kind]:,} drawn"
        parts.append(
            f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{COLOURS[kind]}"/>'
            f'<text x="{x + 12}" y="{y}" font-size="13" fill="#333333">{words}</text>'
        )
    return parts
