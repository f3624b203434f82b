"""Trajectories: the list with its filters, one conversation, and labels on its verdicts."""

from typing import Any
from urllib.parse import parse_qs, quote

import duckdb
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from records.errors import ConfigError
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.browser.facets import (
    FACETS,
    ORDERS,
    PAGE_ROWS,
    TrajectoryFilter,
    page_of,
    value_in_words,
)
from synth.browser.opened import ShownDataset
from synth.browser.site import (
    MOST_PARAMETERS,
    NotThereError,
    dataset_of,
    keys_of,
    link,
    show,
    whole_number,
)
from synth.judging.judge_rates import judge_rates
from synth.judging.labels import LABELS, label_later, labels_waiting
from synth.judging.stages import trials
from synth.publish.conversations import ShownConversation, read_from
from synth.publish.legend import kind_in_words, legend_of
from synth.publish.numbering import call_anchor
from synth.publish.rows import rows_of
from synth.publish.verdicts_shown import judge_in_words, reason_in_words
from synth.render.evidence import in_brief

router = APIRouter()

MOST_IDS = 100_000
"""Taken from a query that filters."""

SHOWN_CHARS, MOST_CHARS = 20_000, 2_000_000
"""Of one text of a conversation, at first and when all is asked for."""

MOST_FORM_BYTES, MOST_NOTE_CHARS = 100_000, 10_000


@router.get("/d/{name}/trajectories")
def trajectories(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    dataset.newest()
    given = request.query_params
    if len(given.multi_items()) > MOST_PARAMETERS:
        raise ConfigError(f"an address has at most {MOST_PARAMETERS} parameters")
    chosen = {facet: tuple(given.getlist(facet)) for facet in FACETS if given.getlist(facet)}
    query, order = given.get("sql", "").strip(), given.get("order", "trajectory_id")
    if order not in ORDERS:
        raise ConfigError(f"order = {order[:40]!r}; allowed: {', '.join(ORDERS)}")
    page, beginning = whole_number(request, "page"), given.get("id", "").strip()
    problem, ids = "", None
    if query:
        try:
            ids = _ids_of(dataset, query)
        except ConfigError as error:  # shown beside the form, with what was written
            problem, ids = str(error), []
    found = page_of(dataset.index, TrajectoryFilter(chosen, beginning, ids), order=order, page=page)
    parameters: dict[str, Any] = {**chosen, "id": beginning, "sql": query}
    parameters |= {"order": order} if order != "trajectory_id" else {}

    def here(**changed: Any) -> str:
        """The same list with other parameters, which stand in one order however it was reached."""
        wanted = parameters | changed
        known = (*FACETS, "id", "sql", "order", "page")
        return link(dataset, "trajectories", **{n: wanted[n] for n in known if n in wanted})

    def toggled(facet: str, value: str) -> str:
        before = chosen.get(facet, ())
        after = tuple(v for v in before if v != value) if value in before else (*before, value)
        return here(**{facet: after})

    return show(
        request,
        "trajectories.html.j2",
        title="Trajectories",
        dataset=dataset,
        here="trajectories",
        found=found,
        chosen=chosen,
        facets=FACETS,
        orders=ORDERS,
        order=order,
        page=page,
        pages=-(-found.total // PAGE_ROWS),
        query=query,
        beginning=beginning,
        problem=problem,
        at=here,
        toggled=toggled,
        reason_in_words=reason_in_words,
        meaning=value_in_words,
        failures=_failures(dataset, found.rows),
    )


def _failures(dataset: ShownDataset, rows: list[Row]) -> dict[str, str]:
    """What failed in each row, in a few words: the criterion, and what its checker found."""
    return {
        trajectory_id: f"{row['criterion_id']}: {in_brief(row['kind'], row['evidence'])}"
        for trajectory_id, row in dataset.index.failures_of(rows).items()
        if row["evidence"]
    }


def _ids_of(dataset: ShownDataset, query: str) -> list[str]:
    found = dataset.sql(query, most_rows=MOST_IDS + 1)
    if "trajectory_id" not in found.columns:
        raise ConfigError(
            f"the query gives {', '.join(found.columns)}; a filter needs a column trajectory_id"
        )
    if len(found.rows) > MOST_IDS:
        raise ConfigError(f"the query gives more than {MOST_IDS:,} rows; a filter takes fewer")
    place = found.columns.index("trajectory_id")
    return sorted({str(row[place]) for row in found.rows})


@router.get("/d/{name}/trajectories/{trajectory_id:path}")
def conversation(request: Request, name: str, trajectory_id: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    dataset.newest()
    curation_id = request.query_params.get("curation", "")
    is_whole = "whole" in request.query_params
    with dataset.index.views_of(trajectory_id) as db:
        curations = rows_of(db, _CURATIONS, [trajectory_id])
        if curation_id:
            _as_curated(db, curation_id, [row["curation_id"] for row in curations])
        found = read_from(db, [trajectory_id])
        if not found:
            raise NotThereError(f"{name} has no trajectory {trajectory_id!r}")
        episode_id = found[0].row["episode_id"] or trajectory_id
        labels = rows_of(db, _LABELS, [episode_id])
        rules = rows_of(db, _RULES, [found[0].row["domain_id"]])
    [talk] = found
    others = dataset.index.rows(_OTHERS, [trajectory_id, talk.row["task_id"]])
    waiting = [row for row in labels_waiting(dataset.dataset) if row["trajectory_id"] == episode_id]
    return show(
        request,
        "trajectory.html.j2",
        title=f"Trajectory {trajectory_id}",
        dataset=dataset,
        here="trajectories",
        talk=talk,
        curations=curations,
        curation_id=curation_id,
        legend=legend_of(talk),
        judge=_judge(dataset, talk),
        net=_net_changes(talk),
        broken=_broken(talk, rules),
        others=others,
        labels=_by_criterion(labels, waiting),
        labeller=request.app.state.labeller,
        form_token=keys_of(request).form_token,
        limit=MOST_CHARS if is_whole else SHOWN_CHARS,
        is_whole=is_whole,
        is_cut=not is_whole and _longest(talk) > SHOWN_CHARS,
        kind_in_words=kind_in_words,
        meaning=value_in_words,
    )


@router.post("/d/{name}/labels")
async def label(request: Request, name: str) -> Response:
    """Write a label down for the next writer, and go back to the verdict."""
    return await run_in_threadpool(_written_down, request, name, await _form(request))


def _written_down(request: Request, name: str, given: dict[str, str]) -> Response:
    dataset = dataset_of(request, name)
    if not keys_of(request).is_ours(given.get("form", "")):
        raise ConfigError("this form is of an earlier start; open its page again and say it there")
    if given.get("label", "") not in LABELS:
        raise ConfigError("say whether you agree; nothing was chosen, so nothing was written down")
    words = {key: given.get(key, "").strip() for key in ("trajectory_id", "criterion_id", "label")}
    labeller = given.get("labeller", "").strip()
    note = given.get("note", "").strip()[:MOST_NOTE_CHARS]
    dataset.newest()
    with dataset.index.views_of(words["trajectory_id"]) as db:
        said = words | {"labeller": labeller, "note": note, "verdict_shown": True}
        label_later(dataset.dataset, db, said)
    request.app.state.labeller = labeller  # for the next form
    where = link(dataset, "trajectories", words["trajectory_id"], curation=given.get("curation"))
    return RedirectResponse(f"{where}#criterion-{quote(words['criterion_id'], safe='')}", 303)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form as browsers send it, each once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ConfigError("a form is asked for, as a page of this server sends it")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM_BYTES:
            raise ConfigError(f"a form has at most {MOST_FORM_BYTES:,} bytes; shorten the reason")
    fields = parse_qs(
        body.decode("utf-8", errors="replace"), keep_blank_values=True, max_num_fields=20
    )
    return {name: values[-1] for name, values in fields.items()}


def _as_curated(db: duckdb.DuckDBPyConnection, curation_id: str, known: list[str]) -> None:
    """The view `trajectories` of this connection with the decisions of an earlier curation."""
    if curation_id not in known:
        raise NotThereError(f"no curation {curation_id!r} looked at this trajectory")
    own = TABLES["trajectories"].schema.names
    names = [name for name in TABLES["curation"].schema.names if name not in own]
    text = curation_id.replace("'", "''")
    db.execute(
        f"CREATE TEMP VIEW trajectories AS "
        f"SELECT t.* REPLACE ({', '.join(f'c.{n} AS {n}' for n in names)}) "
        "FROM memory.main.trajectories AS t LEFT JOIN "
        f"(SELECT * FROM curation WHERE curation_id = '{text}') AS c USING (trajectory_id)"
    )


def _judge(dataset: ShownDataset, talk: ShownConversation) -> str:
    """Who judged what was not met, and how far that judge can be trusted; empty for code."""
    failed, grading_id = talk.decision.failed, talk.row["grading_id"]
    if failed is None or failed.decided_by != "judge" or not grading_id:
        return ""
    rates = dataset.kept(
        f"judge {grading_id}", lambda: judge_rates(trials(dataset.dataset, grading_id))
    )
    return judge_in_words(failed.judge_model, rates)


def _net_changes(talk: ShownConversation) -> list[Row]:
    """Rows of the environment that calls changed, with the calls that did, in order."""
    found: dict[tuple[str, str], Row] = {}
    for number, turn in enumerate(talk.turns):
        for place, call in enumerate(turn.calls):
            for change in call.changes or ():
                row = found.setdefault(
                    (change.entity, change.id),
                    {"entity": change.entity, "id": change.id, "fields": {}, "by": []},
                )
                row["op"] = change.op if change.op == "delete" or "op" not in row else row["op"]
                row["by"].append(
                    (call_anchor(number, place), f"{number + 1}.{place + 1} {call.name}")
                )
                for one in change.fields:
                    before, _ = row["fields"].get(one.name, (one.before, None))
                    row["fields"][one.name] = before, one.after
    return list(found.values())


def _broken(talk: ShownConversation, rules: list[Row]) -> list[Row]:
    """The rules of the policy, with their words, that the calls of the conversation break."""
    marks = {mark for turn in talk.turns for call in turn.calls for mark in call.marks}
    return [rule for rule in rules if f"breaks rule: {rule['id']}" in marks]


def _by_criterion(committed: list[Row], waiting: list[Row]) -> dict[str, list[Row]]:
    """The newest label of each labeller; one that waits takes the place of the committed one."""
    newest = {
        (row["criterion_id"], row["labeller"]): row | {"waits": waits}
        for rows, waits in ((committed, False), (waiting, True))
        for row in rows
    }
    found: dict[str, list[Row]] = {}
    for (criterion, _), row in newest.items():
        found.setdefault(criterion, []).append(row)
    return found


def _longest(talk: ShownConversation) -> int:
    texts = [turn.text for turn in talk.turns] + [
        text
        for turn in talk.turns
        for call in turn.calls
        for text in (call.arguments, call.result or "")
    ]
    return max(map(len, texts), default=0)


_CURATIONS = """
SELECT curation_id, grading_id, accepted, drop_reason, failed_criterion FROM curation
WHERE trajectory_id = $1 ORDER BY curation_id"""

_LABELS = """
SELECT criterion_id, labeller, label, note, verdict_shown FROM labels
WHERE trajectory_id = $1 ORDER BY labeller"""

_RULES = """
SELECT rule->>'$.id' AS id, rule->>'$.text' AS words
FROM (SELECT unnest(TRY_CAST(policy AS JSON[])) AS rule FROM domains WHERE domain_id = $1)"""

_OTHERS = """
SELECT trajectory_id, attempt, session, parent_call_id, accepted, drop_reason, score FROM shown
WHERE task_id = $2 AND trajectory_id != $1 ORDER BY attempt, session NULLS FIRST, trajectory_id
LIMIT 50"""
