"""What a catalogue covers: its cells, how real and synthetic tools overlap, and a map of both.

Tools are compared by their words: TF-IDF over name, description and parameters, cosine distance.
The overlap is computed over all tools, in blocks of a sparse product, so that memory is bounded
whatever their number. The map is t-SNE over a sample. All of it is the same for the same rows and
seed, in whatever order the rows come. scikit-learn is imported when first needed: it takes a
second.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from records.seeds import seed_of, share_of
from records.tables.schemas import Row
from tool_specs.toolsets.io_types import source_of
from tool_specs.toolsets.nouns import words_of

DISTANCES = (0.3, 0.5, 0.7)
"""Cosine distances that overlap is counted at: much the same tool, alike, of the same subject."""

MOST_POINTS = 4_000
"""Of the map; its time grows with them, to half a minute."""

ENOUGH = 12
"""Usable tools below which there is nothing to compare or to draw."""

_BLOCK = 256
"""Rows of one product: against 20,000 columns, 60 MB at the worst."""

_COMMON = 0.1
"""Share of the tools above which a word says nothing (`returns`, `list`), and costs the most."""

_FEW = 50
"""Tools below which words are kept however rare or common they are."""

_DIMENSIONS = 50
"""Of the vectors that t-SNE starts from."""


class CoverageCell(NamedTuple):
    source: str
    category: str
    place: str
    """Name of the domain or server."""
    tools: int


class Category(NamedTuple):
    source: str
    category: str
    places: int
    """Domains or servers."""
    empty: int
    """Domains without a usable tool."""
    tools: int
    least: int
    """Tools of the smallest place that is not empty, of the middle one and of the largest."""
    median: float
    most: int


class Overlap(NamedTuple):
    """How near each tool of one kind comes to any of another."""

    of: str
    to: str
    tools: int
    within: dict[str, float]
    """Distance, as text for JSON -> share of the tools with a neighbour within it."""
    median: float
    """Of the distances to the nearest."""


class MapPoint(NamedTuple):
    x: float
    y: float
    """Both from 0 to 1."""
    source: str
    category: str


def cells(tools: Iterable[Row], domains: Iterable[Row]) -> list[CoverageCell]:
    """Usable tools by category and domain or server; domains without any too, so that what is
    empty shows."""
    names = {domain["domain_id"]: domain["name"] for domain in domains}
    counts = Counter[tuple[str, str, str]]()
    for domain in domains:
        counts["synthetic", domain["category"], domain["name"]] += 0
    for tool in tools:
        if not tool["drop_reason"]:
            place = tool["server"] or names.get(tool["domain_id"], "-")
            counts[tool["source"], tool["category"] or "-", place] += 1
    return [CoverageCell(*key, n) for key, n in sorted(counts.items())]


def categories(found: Iterable[CoverageCell]) -> list[Category]:
    """Cells summed up by category, the largest first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for cell in found:
        groups.setdefault((cell.source, cell.category), []).append(cell.tools)
    rows = []
    for (source, category), counts in groups.items():
        full = [n for n in counts if n] or [0]
        rows.append(
            Category(
                source, category, len(counts), counts.count(0), sum(counts),
                min(full), float(np.median(full)), max(full),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (row.source != "synthetic", -row.tools, row.category))


def overlaps(tools: Iterable[Row]) -> list[Overlap]:
    """MCP to synthetic and back, and each kind to other servers and domains of its own, which is
    what the first two are to be read against. None of a kind with too few tools."""
    rows = _usable(tools)
    if len(rows) < ENOUGH:
        return []
    vectors = vectors_of(rows)
    places = np.array([source_of(row) for row in rows])
    kinds = {kind: np.array([r["source"] == kind for r in rows]) for kind in ("mcp", "synthetic")}
    found = []
    for of in kinds:
        for to in sorted(kinds, key=lambda kind: kind == of):  # the other kind first
            mine, theirs = kinds[of], kinds[to]
            if not mine.any() or len(set(places[theirs])) < (2 if of == to else 1):
                continue
            cosines = nearest(vectors[mine], vectors[theirs], places[mine], places[theirs])
            found.append(_overlap(of, to, 1.0 - cosines))
    return found


def _overlap(of: str, to: str, distances: Any) -> Overlap:
    within = {str(d): round(float((distances <= d).mean()), 4) for d in DISTANCES}
    return Overlap(of, to, len(distances), within, round(float(np.median(distances)), 4))


def _usable(tools: Iterable[Row]) -> list[Row]:
    return sorted((t for t in tools if not t["drop_reason"]), key=lambda tool: tool["tool_id"])


def text_of(tool: Row) -> str:
    """What a tool is compared by. The name counts twice: it is the shortest summary."""
    schema = tool["input_schema"]
    properties = schema.get("properties") if isinstance(schema, dict) else None
    name = " ".join(words_of(tool["name"]))
    parameters = (" ".join(words_of(p)) for p in properties) if isinstance(properties, dict) else ()
    return " ".join((name, name, tool["description"], *parameters))


def vectors_of(rows: Sequence[Row]) -> Any:
    """Sparse, each of length 1, or 0 for a tool that says nothing of its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    few = len(rows) < _FEW
    vectorizer = TfidfVectorizer(
        token_pattern=r"[a-z]{2,}",
        stop_words=None if few else "english",
        min_df=1 if few else 2,
        max_df=1.0 if few else max(_COMMON, 10 / len(rows)),
        sublinear_tf=True,
    )
    return vectorizer.fit_transform(map(text_of, rows))


def nearest(a: Any, b: Any, places_a: Any, places_b: Any) -> Any:
    """For each row of `a` the largest cosine with a row of `b` of another place, 0 where none
    shares a word."""
    best, columns = np.zeros(a.shape[0]), b.T.tocsr()
    for start in range(0, a.shape[0], _BLOCK):
        block = (a[start : start + _BLOCK] @ columns).tocoo()
        other = places_a[start + block.row] != places_b[block.col]
        np.maximum.at(best, start + block.row[other], block.data[other])
    return np.clip(best, 0.0, 1.0)


def points(tools: Iterable[Row], *, seed: int = 0) -> list[MapPoint]:
    """A map of at most MOST_POINTS tools, drawn by seed; near points share words. Empty for too
    few tools."""
    rows = sorted(_usable(tools), key=lambda tool: share_of(tool["tool_id"], f"map/{seed}"))
    rows = rows[:MOST_POINTS]
    if len(rows) < ENOUGH:
        return []
    places = _projected(vectors_of(rows), seed)
    return [
        MapPoint(round(float(x), 4), round(float(y), 4), row["source"], row["category"] or "-")
        for row, (x, y) in zip(rows, places, strict=True)
    ]


def _projected(vectors: Any, seed: int) -> Any:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import normalize
    from threadpoolctl import threadpool_limits

    count, words = vectors.shape
    state = seed_of(str(seed), "tsne") % 2**32
    with threadpool_limits(limits=1):  # sums over threads come in another order each time
        dense = normalize(
            TruncatedSVD(min(_DIMENSIONS, words - 1, count - 1), random_state=state).fit_transform(
                vectors
            )
        )
        found = TSNE(
            perplexity=min(30.0, (count - 1) / 3), init="pca", random_state=state, max_iter=600
        ).fit_transform(dense)
    low, high = found.min(axis=0), found.max(axis=0)
    return (found - low) / np.maximum(high - low, 1e-9)
