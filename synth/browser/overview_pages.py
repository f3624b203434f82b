"""The first pages: which datasets there are, and of one its runs and yields."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from records.tables.schemas import Row
from synth.browser.opened import ShownDataset
from synth.browser.site import dataset_of, show
from synth.browser.stage_reasons import run_in_words, stage_reason_in_words
from synth.publish.verdicts_shown import reason_in_words

router = APIRouter()


@router.get("/")
def datasets(request: Request) -> HTMLResponse:
    shown = request.app.state.datasets.values()
    rows = [{"dataset": one, "commit": one.newest(), **_counts(one)} for one in shown]
    return show(request, "datasets.html.j2", title="Datasets", rows=rows)


@router.get("/d/{name}")
def overview(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    commit = dataset.newest()
    return show(
        request,
        "overview.html.j2",
        title=name,
        dataset=dataset,
        commit=commit,
        counts=_counts(dataset),
        reasons=dataset.index.rows(_REASONS),
        reason_in_words=reason_in_words,
        stage_reason_in_words=stage_reason_in_words,
        run_in_words=run_in_words,
        runs=dataset.kept("runs", lambda: dataset.rows(_RUNS)),
        yields=dataset.yields.rows(),
    )


def _counts(dataset: ShownDataset) -> Row:
    return dataset.index.rows(_COUNTS)[0]


# conversations of one episode share its decision, and count once
_EPISODES = "parent_call_id IS NULL AND coalesce(session, 0) = 0"

_COUNTS = f"""
SELECT count(*) AS n, count(*) FILTER (accepted) AS accepted,
  count(*) FILTER (accepted = false) AS rejected, count(*) FILTER (accepted IS NULL) AS open,
  count(DISTINCT domain) AS domains, sum(num_tool_calls)::BIGINT AS calls
FROM shown WHERE {_EPISODES}"""

_REASONS = f"""
SELECT drop_reason AS reason, count(*) AS n FROM shown
WHERE accepted = false AND {_EPISODES} GROUP BY ALL ORDER BY n DESC, reason"""

_RUNS = """
SELECT run_id, invocation_id, any_value(kind) AS kind, any_value(command) AS command,
  strftime(make_timestamp(min(epoch_us(happened_at))), '%Y-%m-%d %H:%M:%S') AS began,
  arg_max(status, epoch_us(happened_at)) AS status,
  arg_max(detail, epoch_us(happened_at)) AS detail,
  (max(epoch_us(happened_at)) - min(epoch_us(happened_at))) / 1e6 AS seconds,
  max(cost_usd) AS cost_usd
FROM runs GROUP BY ALL ORDER BY began DESC, invocation_id"""
