"""What was spent, over time and by role, and rewrites beside their sources."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from records.tables.schemas import Row
from synth.browser.opened import ShownDataset
from synth.browser.site import NotThereError, dataset_of, show, whole_number
from synth.publish.spending import spending
from synth.rephrasing.view import read_rewrite

router = APIRouter()

BARS = 80
"""Of the chart, at most."""

WIDTHS_S = (1, 5, 15, 60, 300, 900, 3_600, 3 * 3_600, 12 * 3_600, 86_400, 7 * 86_400)
"""What a bar may stand for, in seconds."""

PAGE_REWRITES = 50

REWRITE_FACETS = {"kept": "Kept", "drop_reason": "Drop reason", "style": "Style", "kind": "Kind"}


@router.get("/d/{name}/costs")
def costs(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    stage = request.query_params.get("stage", "")
    [span] = dataset.kept("span", lambda: dataset.rows(_SPAN))
    stages = dataset.kept("by stage", lambda: dataset.rows(_BY_STAGE))
    if stage and stage not in (row["stage"] for row in stages):
        raise NotThereError(f"{name} has no request of a stage {stage[:100]!r}")
    width = _width(span)
    times = dataset.kept(f"costs of {stage}", lambda: dataset.rows(_OVER_TIME, [width, stage]))
    return show(
        request,
        "costs.html.j2",
        title="Costs",
        dataset=dataset,
        here="costs",
        span=span,
        stages=stages,
        stage=stage,
        width=width,
        times=_cumulated(times),
        bars=_bars(times, span, width),
        spent=dataset.kept("spending", lambda: _spending(dataset)),
    )


@router.get("/d/{name}/rewrites")
def rewrites(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    page = whole_number(request, "page")
    chosen = {f: request.query_params[f] for f in REWRITE_FACETS if request.query_params.get(f)}
    conditions = [f"coalesce({f}::VARCHAR, '') = ${n}" for n, f in enumerate(chosen, 1)]
    where, values = " AND ".join(["true", *conditions]), list(chosen.values())
    [counted] = dataset.rows(f"SELECT count(*) AS n FROM rephrasings WHERE {where}", values)
    return show(
        request,
        "rewrites.html.j2",
        title="Rewrites",
        dataset=dataset,
        here="rewrites",
        rows=dataset.rows(
            _REWRITES.format(where=where, most=PAGE_REWRITES, skipped=page * PAGE_REWRITES), values
        ),
        total=counted["n"],
        page=page,
        pages=-(-counted["n"] // PAGE_REWRITES),
        facets=REWRITE_FACETS,
        chosen=chosen,
        values={f: dataset.rows(_VALUES.format(facet=f)) for f in REWRITE_FACETS},
    )


@router.get("/d/{name}/rewrites/{rephrasing_id:path}")
def rewrite(request: Request, name: str, rephrasing_id: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    with dataset.cursor() as db:
        found = read_rewrite(db, rephrasing_id)
    if found is None:
        raise NotThereError(f"{name} has no rewrite {rephrasing_id!r}")
    siblings = dataset.rows(_SIBLINGS, [found.row["source_id"], rephrasing_id])
    return show(
        request,
        "rewrite.html.j2",
        title=f"Rewrite {rephrasing_id}",
        dataset=dataset,
        here="rewrites",
        rewrite=found,
        siblings=siblings,
    )


def _spending(dataset: ShownDataset) -> object:
    [counted] = dataset.index.rows("SELECT count(*) FILTER (accepted) AS n FROM shown")
    with dataset.cursor() as db:
        return spending(db, accepted=counted["n"])


def _width(span: Row) -> int:
    """Seconds of a bar."""
    seconds = (span["last"] or 0) - (span["first"] or 0)
    fitting = (width for width in WIDTHS_S if seconds / width <= BARS)
    return next(fitting, WIDTHS_S[-1] * (1 + seconds // (WIDTHS_S[-1] * BARS)))


def _cumulated(times: list[Row]) -> list[Row]:
    usd, tokens, found = 0.0, 0, []
    for row in times:
        usd, tokens = usd + row["usd"], tokens + row["tokens"]
        found.append(row | {"usd_so_far": usd, "tokens_so_far": tokens})
    return found


def _bars(times: list[Row], span: Row, width: int) -> list[Row]:
    """A bar for each of `times` in a picture 800 wide and 120 high: USD, or tokens where nothing
    has a price."""
    if not times:
        return []
    measure = "usd" if any(row["usd"] for row in times) else "tokens"
    first, most = times[0]["began"], max(row[measure] for row in times) or 1
    number = max(1, int((times[-1]["began"] - first) // width) + 1)
    step = 800 / number
    return [
        {
            "x": round((row["began"] - first) / width * step, 2),
            "width": round(max(1.0, step - 1.5), 2),
            "height": round(118 * row[measure] / most, 2),
            "y": round(120 - 118 * row[measure] / most, 2),
            "at": row["at"],
            "value": row[measure],
            "measure": measure,
        }
        for row in times
    ]


_SPAN = """
SELECT min(epoch_us(started_at)) // 1000000 AS first, max(epoch_us(started_at)) // 1000000 AS last,
  count(*) AS n, coalesce(sum(cost_usd), 0.0) AS usd FROM llm_calls"""

_BY_STAGE = """
SELECT stage, count(*) FILTER (NOT cache_hit) AS requests, count(*) FILTER (cache_hit) AS reused,
  coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens,
  coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
  coalesce(sum(cost_usd), 0.0) AS usd
FROM llm_calls GROUP BY ALL ORDER BY usd DESC, requests DESC, stage"""

_OVER_TIME = """
SELECT epoch_us(started_at) // 1000000 // $1 * $1 AS began,
  strftime(make_timestamp(epoch_us(started_at) // 1000000 // $1 * $1 * 1000000),
    '%Y-%m-%d %H:%M:%S') AS at,
  count(*) AS requests, coalesce(sum(cost_usd), 0.0) AS usd,
  coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0)::BIGINT AS tokens
FROM llm_calls WHERE started_at IS NOT NULL AND ($2 = '' OR stage = $2)
GROUP BY ALL ORDER BY began"""

_REWRITES = """
SELECT rephrasing_id, source_name, style, perspective, kind, kept, drop_reason, source_tokens,
  text_tokens
FROM rephrasings WHERE {where} LIMIT {most} OFFSET {skipped}"""

_VALUES = """
SELECT coalesce({facet}::VARCHAR, '') AS value, count(*) AS n FROM rephrasings
GROUP BY ALL ORDER BY n DESC, value LIMIT 40"""

_SIBLINGS = """
SELECT rephrasing_id, style, perspective, kept, drop_reason FROM rephrasings
WHERE source_id = $1 AND rephrasing_id != $2 ORDER BY rephrasing_id LIMIT 50"""
