"""What the first version of the schema called columns and values.

What it wrote, parts and journals, is read under today's names. Views carry both names of a column.
Columns that are gone since are left where they lie.
"""

COLUMNS: dict[str, dict[str, str]] = {
    "personas": {"disclosure": "reveals"},
    "trajectories": {"executed_by": "fidelities"},
    "tool_calls": {"executed_by": "fidelity", "policy_violations": "breaches"},
    "calibration": {"perturbation": "plant"},
    "curation": {"judge_status": "judge_standing"},
}
"""Table -> column -> its earlier name."""

REMOVED: dict[str, frozenset[str]] = {
    # what was measured of a rewrite stands in `rephrasing_measurements`, its flags in the decisions
    "rephrasings": frozenset(
        [
            *("numbers", "units", "dates", "names", "quotations", "code", "tables", "headings"),
            *("maths", "conflicts", "claims", "alignment", "length_ratio", "language"),
            *("repetition", "overlap", "flags"),
        ]
    ),
}
"""Table -> columns that earlier versions stored. They lie in the parts, and nothing reads them."""

_MODEL = {r"^template-policy(-exact|-clumsy)?$": r"offline-model\1"}
_CHECKER = {"^template-policy(-exact|-clumsy)?@": r"offline-model\1@"}
_CHECK = {"^hack_check$": "unsupported_claims"}

VALUES: dict[str, dict[str, dict[str, str]]] = {
    "proposals": {"model": _MODEL},
    "agents": {"model": _MODEL},
    "personas": {"model": _MODEL},
    "tasks": {
        "model": _MODEL,
        # canonical JSON sorts keys: the earlier key comes first in a rubric, today's last
        "rubric": {r'^\{"accept_at":([^,]*),(.*)\}$': r'{\2,"pass_threshold":\1}'},
    },
    "trajectories": {"models": {'"template-policy(-exact|-clumsy)?"': r'"offline-model\1"'}},
    "simulations": {"model": _MODEL},
    "verdicts": {"criterion_id": _CHECK, "kind": _CHECK, "checker_version": _CHECKER},
    "calibration": {"criterion_id": _CHECK, "kind": _CHECK, "checker_version": _CHECKER},
    "curation": {
        "drop_reason": {
            "^judge_below_floor$": "judge_below_minimum",
            "^failed_hack_check$": "failed_unsupported_claims",
        },
        "judge_status": {"^below_floor$": "below_minimum"},
    },
    "rephrasings": {"model": _MODEL},
    "llm_calls": {"model": _MODEL},
}
"""Table -> column under today's name -> pattern -> replacement, on the stored text. The patterns
mean the same to RE2 (Arrow, DuckDB) and to Python."""
