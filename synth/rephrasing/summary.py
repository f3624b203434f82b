"""What a dataset's rewrites came to, in numbers."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from records.model_names import OFFLINE_MODEL
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.render.yields import yields
from synth.rephrasing.calibration.report import RephrasingTrialReport, trial_reports
from synth.rephrasing.sources.decontamination import IN_EVALUATION
from synth.rephrasing.sources.texts import BAD_ROW_REASONS
from synth.rephrasing.writing.config import STAGES


@dataclass(frozen=True, slots=True)
class RephrasingSummary:
    dataset: str
    offline_model: bool
    """Some text was written by the offline model: its numbers say so wherever they stand."""
    totals: Row
    """`rewrites`, `kept`, `undecided`, `documents`, `source_tokens`, `text_tokens`, `kept_tokens`,
    `prompt_tokens`, `completion_tokens` (what the answers used), `requests`, `cost_usd`,
    `usd_per_million_kept`, `held_out`, `flagged`."""
    yields: list[Row]
    """A stage each: requested = kept + dropped + failed + pending."""
    drops: list[Row]
    """Why rewrites were dropped."""
    parts: Row
    """Parts of all rewrites: `written` by a model, `given_back` (answers that went back with what
    is wrong), and `replaced` by their source."""
    faults: list[Row]
    """Why answers went back."""
    unfit: list[Row]
    """Rows of sources that hold no text, and documents of evaluations: by reason, with one
    `example` each."""
    styles: list[Row]
    """By style: rewrites, kept, and tokens of the text by tokens of the source."""
    perspectives: list[Row]
    sources: list[Row]
    models: list[Row]
    roles: list[Row]
    """By role: requests, tokens, `cached_tokens` among those of the prompts, and prompt tokens by
    tokens of the sources and by tokens written."""
    trials: list[RephrasingTrialReport]
    """How good the judges of the rewrites are."""

    @property
    def label(self) -> str:
        """What quality figures carry where the offline model played: its name."""
        return "offline model" if self.offline_model else ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(dataset: Dataset) -> RephrasingSummary:
    """Of all rephrasing runs of the dataset; zeros where there were none."""
    with dataset.connect() as db:
        models = _rows(db, _BY.format(name="model"))
        return RephrasingSummary(
            dataset=dataset.root.name,
            offline_model=any(row["name"].startswith(OFFLINE_MODEL) for row in models),
            totals=_rows(db, _TOTALS)[0],
            yields=[row for row in yields(dataset) if row["stage"] in STAGES],
            drops=_rows(db, _DROPS),
            parts=_rows(db, _PARTS)[0],
            faults=_rows(db, _FAULTS),
            unfit=_unfit(dataset),
            styles=_rows(db, _BY.format(name="style")),
            perspectives=_rows(db, _BY.format(name="perspective")),
            sources=_rows(db, _BY.format(name="source_path")),
            models=models,
            roles=_rows(db, _ROLES),
            trials=trial_reports(dataset),
        )


def lines(summary: RephrasingSummary) -> list[str]:
    """For a person at the terminal."""
    t = summary.totals
    label = f" ({summary.label})" if summary.label else ""
    said = [
        f"{t['kept']} of {t['rewrites']} rewrites of {t['documents']} documents kept{label}",
        f"tokens: {t['source_tokens']:,} of sources, {t['text_tokens']:,} written, "
        f"{t['kept_tokens']:,} of them kept",
        f"asked: {t['requests']:,} requests, {t['prompt_tokens']:,} tokens in, "
        f"{t['completion_tokens']:,} out, {t['cost_usd']:.4f} USD",
    ]
    if summary.parts["written"]:
        said.append(_parts_line(summary))
    said += map(_role_line, summary.roles)
    if t["flagged"]:
        said.append(f"{t['flagged']} of those kept have a hint that no judge has cleared (`flags`)")
    if t["undecided"]:
        said.append(
            f"no decision yet on {t['undecided']} of them: running again, or synth grade, makes it"
        )
    if t["usd_per_million_kept"] is not None and t["cost_usd"]:
        said.append(f"{t['usd_per_million_kept']:.2f} USD for a million kept tokens")
    if summary.drops:
        dropped = ", ".join(f"{row['name']} {row['n']}" for row in summary.drops)
        said.append(f"dropped: {dropped}")
    said += [f"left out: {row['name']} {row['n']}, as {row['example']}" for row in summary.unfit]
    return [*said, *(trial.text for trial in summary.trials)]


def _parts_line(summary: RephrasingSummary) -> str:
    parts = summary.parts
    why = ", ".join(f"{row['name']} {row['n']}" for row in summary.faults)
    return (
        f"parts: {parts['written']:,} written, {parts['given_back']:,} given back"
        f"{f' ({why})' if why else ''}, {parts['replaced']:,} as in the source"
    )


def _role_line(row: Row) -> str:
    share = row["cached_tokens"] / row["prompt_tokens"]
    return (
        f"{row['role']}: {row['requests']:,} requests, {row['by_written']:.1f} prompt tokens for "
        f"each token written, {row['by_source']:.1f} for each of the sources"
        + (f", {share:.0%} of them cached" if share else "")
    )


def _unfit(dataset: Dataset) -> list[Row]:
    number: Counter[str] = Counter()
    example: dict[str, str | None] = {}
    for statuses in dataset.items_of(STAGES[0]):
        for status, reason, detail in statuses.values():
            if status == "dropped" and reason in (*BAD_ROW_REASONS, IN_EVALUATION):
                number[reason] += 1
                example.setdefault(reason, detail)
    return [{"name": r, "n": n, "example": example[r]} for r, n in number.most_common()]


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    found = db.execute(query)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


_TOTALS = f"""
WITH calls AS (
  SELECT count(*) FILTER (NOT cache_hit) AS requests,
         coalesce(sum(prompt_tokens) FILTER (NOT cache_hit), 0)::BIGINT AS prompt_tokens,
         coalesce(sum(completion_tokens) FILTER (NOT cache_hit), 0)::BIGINT AS completion_tokens,
         coalesce(sum(cost_usd) FILTER (NOT cache_hit), 0) AS cost_usd
  FROM llm_calls WHERE stage IN {STAGES}
), made AS (
  SELECT count(*) AS rewrites,
         count(*) FILTER (kept) AS kept,
         count(*) FILTER (kept IS NULL) AS undecided,
         count(DISTINCT (source_id, source_part)) AS documents,
         coalesce(sum(source_tokens), 0)::BIGINT AS source_tokens,
         coalesce(sum(text_tokens), 0)::BIGINT AS text_tokens,
         coalesce(sum(text_tokens) FILTER (kept), 0)::BIGINT AS kept_tokens,
         count(*) FILTER (kept AND split != 'train') AS held_out,
         count(*) FILTER (kept AND len(flags) > 0) AS flagged
  FROM rephrasings
)
SELECT *, CASE WHEN kept_tokens > 0 THEN cost_usd * 1e6 / kept_tokens END AS usd_per_million_kept
FROM made, calls
"""

_CHUNKS = """
SELECT unnest(from_json(chunks,
  '[{"attempts": "INTEGER", "faults": ["VARCHAR"], "replaced": "BOOLEAN"}]'), recursive := true)
FROM rephrasings
"""

_PARTS = f"""
SELECT count(*) FILTER (attempts > 0) AS written,
       coalesce(sum(len(faults)), 0)::BIGINT AS given_back,
       count(*) FILTER (replaced) AS replaced
FROM ({_CHUNKS})
"""

_FAULTS = f"""
SELECT fault AS name, count(*) AS n FROM (SELECT unnest(faults) AS fault FROM ({_CHUNKS}))
GROUP BY 1 ORDER BY n DESC, name
"""

_ROLES = """
WITH made AS (
  SELECT sum(text_tokens)::DOUBLE AS written, sum(source_tokens)::DOUBLE AS source
  FROM rephrasings
)
SELECT CASE WHEN stage = 'rephrasing-calibration' THEN role || ', trying the judge' ELSE role END
         AS role, count(*) AS requests, sum(prompt_tokens)::BIGINT AS prompt_tokens,
       sum(cached_tokens)::BIGINT AS cached_tokens,
       sum(completion_tokens)::BIGINT AS completion_tokens,
       sum(prompt_tokens) / any_value(written) AS by_written,
       sum(prompt_tokens) / any_value(source) AS by_source
FROM llm_calls, made
WHERE stage IN ('rephrase', 'rephrasing-verdicts', 'rephrasing-calibration') AND NOT cache_hit
  AND written > 0 AND prompt_tokens > 0
GROUP BY ALL ORDER BY requests DESC, role
"""

_DROPS = """
SELECT drop_reason AS name, count(*) AS n FROM rephrasings WHERE NOT kept
GROUP BY 1 ORDER BY n DESC, name
"""

_BY = """
SELECT {name} AS name, count(*) AS n, count(*) FILTER (kept) AS kept,
       sum(text_tokens) / sum(source_tokens) AS length,
       sum(text_tokens) FILTER (kept) AS kept_tokens
FROM rephrasings GROUP BY 1 ORDER BY n DESC, name
"""
