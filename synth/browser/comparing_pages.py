"""Two runs beside each other, of one dataset or of two, and two judges on the same trajectories."""

from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from records.tables.schemas import Row
from synth.browser.facets import FACETS
from synth.browser.opened import ShownDataset
from synth.browser.site import NotThereError, dataset_of, show
from synth.publish.regrading import compared_curations
from synth.publish.rows import rows_of
from synth.render.intervals import wilson

router = APIRouter()

COMPARED = ("drop_reason", "attributed_to", "domain", "variant", "complexity", "outcome")
"""Facets by which runs are set beside each other."""

BETWEEN = ":"
"""Between a dataset's name and a run's id; no name holds it."""


class RunSide(NamedTuple):
    """A run, and what is said of it beside another."""

    dataset: ShownDataset
    run_id: str
    counts: Row
    """`n`, `accepted`, `low` and `high` of the share's 95% interval, means."""
    values: dict[str, dict[str, Row]]
    """Facet -> value -> `n` and `accepted`."""


@router.get("/d/{name}/compare")
def compare(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    given = request.query_params
    runs = [
        (f"{one.name}{BETWEEN}{row['run_id']}", one, row)
        for one in request.app.state.datasets.values()
        for row in _runs_of(one)
    ]
    sides = [_side(request, given.get(side, "")) for side in ("a", "b")] if "a" in given else []
    curations = dataset.kept("curations", lambda: dataset.rows(_CURATIONS))
    pair = given.get("before", ""), given.get("after", "")
    values: dict[str, Any] = {"judged": None, "criteria": [], "turned": []}
    if all(pair):
        values = _judged(dataset, pair, {row["curation_id"]: row for row in curations})
    return show(
        request,
        "compare.html.j2",
        title="Compare",
        dataset=dataset,
        here="compare",
        runs=runs,
        chosen=(given.get("a", ""), given.get("b", "")),
        sides=sides,
        facets={facet: FACETS[facet] for facet in COMPARED},
        curations=curations,
        pair=pair,
        **values,
    )


def _runs_of(dataset: ShownDataset) -> list[Row]:
    dataset.newest()
    return dataset.index.rows(_RUNS)


def _side(request: Request, chosen: str) -> RunSide:
    name, _, run_id = chosen.partition(BETWEEN)
    dataset = dataset_of(request, name)
    dataset.newest()
    [counts] = dataset.index.rows(_COUNTS, [run_id])
    if not counts["n"]:
        raise NotThereError(f"{name} has no trajectories of a run {run_id!r}")
    low, high = wilson(counts["accepted"], counts["curated"]) if counts["curated"] else (None, None)
    values = {
        facet: {
            str(row["value"]): row
            for row in dataset.index.rows(_BY.format(facet=facet), [run_id])
            if row["value"] is not None
        }
        for facet in COMPARED
    }
    return RunSide(dataset, run_id, counts | {"low": low, "high": high}, values)


def _judged(dataset: ShownDataset, pair: tuple[str, str], known: dict[str, Row]) -> dict[str, Any]:
    if missing := [one for one in pair if one not in known]:
        raise NotThereError(f"{dataset.name} has no curation {missing[0]!r}")
    gradings = [known[one]["grading_id"] for one in pair]
    with dataset.cursor() as db:
        return {
            "judged": compared_curations(db, *pair),
            "criteria": rows_of(db, _CRITERIA, gradings),
            "turned": rows_of(db, _TURNED, list(pair)),
        }


_EPISODES = "parent_call_id IS NULL AND coalesce(session, 0) = 0"

_RUNS = f"""
SELECT run_id, count(*) AS n, count(*) FILTER (accepted) AS accepted FROM shown
WHERE {_EPISODES} GROUP BY ALL ORDER BY run_id"""

_COUNTS = f"""
SELECT count(*) AS n, count(*) FILTER (accepted) AS accepted,
  count(*) FILTER (accepted IS NOT NULL) AS curated, avg(score) AS score,
  avg(num_messages) AS messages, avg(num_tool_calls) AS calls, avg(num_errors) AS errors,
  count(DISTINCT task_id) AS tasks
FROM shown WHERE run_id = $1 AND {_EPISODES}"""

_BY = f"""
SELECT {{facet}} AS value, count(*) AS n, count(*) FILTER (accepted) AS accepted FROM shown
WHERE run_id = $1 AND {_EPISODES} GROUP BY ALL ORDER BY n DESC, value"""

_CURATIONS = """
SELECT c.curation_id, c.grading_id, count(*) AS n, count(*) FILTER (accepted) AS accepted,
  (SELECT string_agg(DISTINCT regexp_replace(checker_version, '@[^@]*$', ''), ', ')
   FROM verdicts AS v WHERE v.grading_id = c.grading_id AND v.checked_by = 'judge') AS judges
FROM curation AS c GROUP BY ALL ORDER BY c.curation_id"""

_CRITERIA = """
SELECT criterion_id, count(*) AS n,
  count(*) FILTER (a.passed AND b.passed) AS both,
  count(*) FILTER (a.passed AND NOT b.passed) AS only_a,
  count(*) FILTER (NOT a.passed AND b.passed) AS only_b,
  count(*) FILTER (NOT a.passed AND NOT b.passed) AS neither
FROM verdicts AS a JOIN verdicts AS b USING (trajectory_id, criterion_id)
WHERE a.grading_id = $1 AND b.grading_id = $2 AND a.checked_by = 'judge'
  AND b.checked_by = 'judge' AND a.passed IS NOT NULL AND b.passed IS NOT NULL
GROUP BY ALL ORDER BY only_a + only_b DESC, criterion_id"""

_TURNED = """
SELECT trajectory_id, a.accepted AS before, b.accepted AS after, a.drop_reason AS reason_before,
  b.drop_reason AS reason_after, a.score AS score_before, b.score AS score_after
FROM curation AS a JOIN curation AS b USING (trajectory_id)
WHERE a.curation_id = $1 AND b.curation_id = $2
  AND (a.accepted != b.accepted OR a.drop_reason IS DISTINCT FROM b.drop_reason)
ORDER BY a.accepted = b.accepted, trajectory_id LIMIT 200"""
