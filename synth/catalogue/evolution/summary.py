"""What evolution gave, counted over committed rows: kept, dropped, accepted, varied, covered."""

from typing import Any

from records.model_names import OFFLINE_MODEL
from records.store.dataset import Dataset
from records.tables.schemas import Row

_KEPT = """
SELECT count(*) AS tools, count(*) FILTER (semantics_json IS NOT NULL) AS with_semantics,
  count(DISTINCT domain_id) AS domains, count(DISTINCT category) AS categories,
  count(*) FILTER (proof->>'repaired' = 'true') AS repaired,
  coalesce(sum((proof->>'calls')::BIGINT), 0)::BIGINT AS calls,
  coalesce(sum((proof->>'mutants')::BIGINT), 0)::BIGINT AS mutants
FROM tools WHERE tool_id IN (SELECT tool_id FROM proposals WHERE tool_id IS NOT NULL)"""

_SKELETONS = """
SELECT count(*) AS skeletons, coalesce(max(n) / sum(n), 0)::DOUBLE AS largest_share
FROM (SELECT count(*) AS n FROM proposals WHERE tool_id IS NOT NULL GROUP BY skeleton)"""

_ACCEPTANCE = """
SELECT operator, model, count(*) AS asked,
  count(*) FILTER (drop_reason IS DISTINCT FROM 'not_written') AS written,
  count(*) FILTER (first_reason IS NULL) / greatest(written, 1) AS first_pass,
  count(*) FILTER (drop_reason IS NULL) / greatest(written, 1) AS after_repair,
  count(*) FILTER (drop_reason IS NULL) AS kept
FROM proposals GROUP BY operator, model ORDER BY operator, model"""

_DROPS = """
SELECT drop_reason AS reason, count(*) AS n FROM proposals
WHERE drop_reason IS NOT NULL GROUP BY ALL ORDER BY n DESC, reason"""

_CELLS = """
SELECT d.category, count(DISTINCT d.domain_id) AS domains,
  count(DISTINCT p.domain_id) AS covered, count(p.tool_id) AS tools
FROM domains AS d LEFT JOIN proposals AS p
  ON p.domain_id = d.domain_id AND p.tool_id IS NOT NULL
GROUP BY ALL ORDER BY d.category"""


def summarise(dataset: Dataset) -> dict[str, Any]:
    """JSON values. Acceptance is a share of the tools written, by operator and model: where a
    domain has nothing left to make, a generator may write fewer than it is asked for."""
    with dataset.connect() as db:

        def rows(query: str) -> list[Row]:
            cursor = db.execute(query)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        [kept], [skeletons] = rows(_KEPT), rows(_SKELETONS)
        acceptance = rows(_ACCEPTANCE)
        return {
            **kept,
            **skeletons,
            "asked": sum(row["asked"] for row in acceptance if row["operator"] != "specialise"),
            "dropped": {row["reason"]: row["n"] for row in rows(_DROPS)},
            "acceptance": acceptance,
            "cells": rows(_CELLS),
            "offline_model": any(r["model"].startswith(OFFLINE_MODEL) for r in acceptance),
        }


def lines(summary: dict[str, Any]) -> list[str]:
    """For a person. `rounds`, where the summary has it, holds figures of the rounds of one run."""
    written = " (written by the offline model)" if summary["offline_model"] else ""
    dropped = ", ".join(f"{reason} {n}" for reason, n in summary["dropped"].items()) or "none"
    cells = summary["cells"]
    covered, all_cells = (sum(c[name] for c in cells) for name in ("covered", "domains"))
    return [
        f"{summary['tools']} evolved tools{written}, {summary['with_semantics']} with semantics, "
        f"in {summary['domains']} domains of {summary['categories']} categories",
        f"{summary['asked']} asked for; dropped: {dropped}",
        f"{summary['skeletons']} skeletons, the largest {summary['largest_share']:.2%} of all",
        f"{covered} of {all_cells} cells (category x domain) have tools",
        f"proved in {summary['calls']} calls against {summary['mutants']} mutants; "
        f"{summary['repaired']} tools were mended first",
        *(
            f"round {number}: {one['kept']} of {one['asked']} kept, {one['ideas']} new ideas"
            for number, one in enumerate(summary.get("rounds", ()), 1)
        ),
        f"{'operator':<12}{'model':<18}{'asked':>8}{'written':>9}{'first pass':>12}"
        f"{'after repair':>14}{'kept':>8}",
        *(
            f"{row['operator']:<12}{row['model']:<18}{row['asked']:>8}{row['written']:>9}"
            f"{row['first_pass']:>12.1%}{row['after_repair']:>14.1%}{row['kept']:>8}"
            for row in summary["acceptance"]
        ),
    ]
