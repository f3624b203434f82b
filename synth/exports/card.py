"""The card of an export: README.md, with `metadata.json` and `run_config.json` beside it.

Names and reasons in it come from models, tools and files: YAML quotes them in the front matter,
and the template escapes every value that it is not told to trust. No path of this machine, no
address and no key gets in: of the runs' settings only those that say how the data was made.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

import duckdb
import pyarrow as pa
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from records.model_names import OFFLINE_MODEL, todays
from records.settings import renamed_settings
from records.store.dataset import Dataset
from records.tables.schemas import JSON, Row
from synth.episode.tools.state_accuracy import state_accuracy
from synth.exports.formats.columns import MEANINGS
from synth.exports.formats.messages import Reasoning
from synth.judging.judge_report import judge_report
from synth.pipeline.config import RunConfig
from synth.publish.decisions import FATES, decisions
from synth.publish.rows import rows_of
from synth.publish.summary import recovery_rates, user_fault_rates
from synth.render.foreign_text import markdown_text, one_line
from synth.render.yields import yields

_HUB_LICENSES = {
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "CC0-1.0",
    "CC-BY-4.0",
    "CC-BY-SA-4.0",
    "MPL-2.0",
    "Unlicense",
    "unknown",
}
"""SPDX ids that the Hugging Face hub knows, in lower case; every other licence is `other` there."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

_SETTINGS = (
    "name",
    "seed",
    "domains",
    "servers",
    "agents",
    "tasks",
    "rollouts",
    "judging",
    "curation",
)
_ROLE_SETTINGS = ("models", "temperature", "top_p", "max_tokens", "send_reasoning", "license")
"""Settings that say how rows were made and hold no address and no key."""

WHY_LEFT_OUT = {
    "not_accepted": "rejected, or not curated yet",
    "code_alone": "accepted by code alone: no judge's word counted for them",
    "held_out": "held out for evaluation",
    "unknown_license": "show a tool whose licence is not known",
    "turns_do_not_alternate": "turns of user and agent do not alternate, as this format has it",
    "spells_marks": "somebody spells the marks of calls that this format has",
    "spells_special_token": "somebody spells a special token, which text could not tell from one",
    "pair_untrainable": "pairs whose failed attempt is one that no trainer could take",
    "pair_without_shared_prompt": "pairs whose user or tools differ before the agent does",
    "attempt_untrainable": "failed attempts that no trainer could take",
    "no_attempt": "a sub-agent's conversation, or one of several with the user",
}
"""Of every reason why a trajectory is not exported."""


@dataclass(frozen=True, slots=True)
class PartContents:
    """Files of one kind, as the card tells them."""

    name: str
    rows: Mapping[str, int]
    """By split."""
    pattern: str
    """Of the files of a split, which stands for `{}`."""
    columns: Mapping[str, pa.DataType]
    """Empty for lines that are no table."""
    meanings: Mapping[str, str]
    """Of columns of which this kind of file has its own."""
    typed: bool
    """Whether the files themselves say the types of their columns."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was exported, as the card tells it."""

    name: str
    """Of the folder."""
    format: str
    title: str
    parts: tuple[PartContents, ...]
    """The first is loaded where no other is named."""
    left_out: Mapping[str, int]
    text_arguments: int
    reasoning: Reasoning
    thoughts: int
    flags_lost: int
    tools_by_license: Mapping[str, int]
    language: str
    snippet: str
    """Lines in this language that read the export."""
    notes: str


def write_card(
    folder: Path,
    dataset: Dataset,
    db: duckdb.DuckDBPyConnection,
    contents: Contents,
    *,
    command: str,
) -> None:
    """Write the three files. `db` holds the exported ids as the table `chosen`; `command` is the
    one that makes the same export."""
    facts = _facts(dataset, db)
    body = _template().render(
        contents=contents,
        parties=FATES,
        why=WHY_LEFT_OUT,
        tables=[
            (
                part.name,
                [
                    (Markup(f"`{name}`"), _type_name(type_), Markup(_meaning(part, name)))
                    for name, type_ in part.columns.items()
                ],
            )
            for part in contents.parts
        ],
        snippet=Markup(contents.snippet),
        notes=Markup(contents.notes),
        command=Markup(command),
        **facts,
    )
    front = yaml.safe_dump(_front_matter(contents, facts), sort_keys=False, width=100)
    _write(folder / "README.md", f"---\n{front}---\n\n{body}\n")
    metadata = asdict(contents) | facts
    first, *others = contents.parts
    metadata |= {"rows": first.rows, "columns": _type_names(first)}
    metadata["parts"] = {p.name: {"rows": p.rows, "columns": _type_names(p)} for p in others}
    for told in ("settings", "snippet", "language", "notes"):
        del metadata[told]
    _write(folder / "metadata.json", json.dumps(metadata, indent=2) + "\n")
    _write(folder / "run_config.json", json.dumps(facts["settings"], indent=2) + "\n")


def _facts(dataset: Dataset, db: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    [totals] = rows_of(db, _TOTALS)
    settings = _settings(db)
    models = [
        row | {"terms": _terms(settings.values(), row["model"])} for row in rows_of(db, _MODELS)
    ]
    judged = judge_report(dataset)
    return {
        "dataset": dataset.root.name,
        "offline_model": any(row["model"].startswith(OFFLINE_MODEL) for row in models),
        "totals": totals,
        "yields": yields(dataset),
        "recovery": recovery_rates(db),
        "user_faults": user_fault_rates(db),
        "judge": asdict(judged) | {"words": judged.words},
        "decisions": _decisions(db),
        "simulated": state_accuracy(db),
        "models": models,
        "prompts": rows_of(db, _PROMPTS),
        "worlds": rows_of(db, _ENVIRONMENTS),
        "licenses": rows_of(db, _LICENSES),
        "settings": settings,
        "roles": [
            {"role": role, **values}
            for config in settings.values()
            for role, values in config["roles"].items()
        ],
        "versions": _versions(db),
    }


def _terms(settings: Iterable[Row], model: str) -> str:
    """What the runs' settings say that the model's output may be used for."""
    stated = {
        values["license"]
        for config in settings
        for values in config["roles"].values()
        if values.get("license") and model in {one["name"] for one in values.get("models", ())}
    }
    return ", ".join(sorted(stated)) or "unknown"


def _decisions(db: duckdb.DuckDBPyConnection) -> Row:
    found = decisions(db)
    return {
        "thresholds": found.threshold_words,
        "scored_only": list(found.rule.config.scored_only),
        "decided_by": found.decided_by,
        "criteria": found.criteria,
        "rejected": found.rejected,
        "judged": found.judged,
        "self_judged": found.self_judged,
        "self_judged_words": found.self_judged_words,
    }


def _settings(db: duckdb.DuckDBPyConnection) -> dict[str, Row]:
    """By run: the settings that made the exported rows, without addresses, keys and paths."""
    found: dict[str, Row] = {}
    for row in rows_of(db, _CONFIGS):
        config = renamed_settings(RunConfig, json.loads(row["config"] or "{}"))
        kept = {name: config[name] for name in _SETTINGS if name in config}
        for name in ("domains", "servers"):
            kept[name] = [PurePath(entry).name for entry in kept.get(name, [])]
        kept["roles"] = {
            role: {name: values[name] for name in _ROLE_SETTINGS if name in values}
            | {"models": [m | {"name": todays(m["name"])} for m in values.get("models", ())]}
            for role, values in config.get("roles", {}).items()
        }
        found[row["run_id"]] = kept
    return found


def _versions(db: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Of the packages that made the data, as the newest invocation noted them."""
    noted = [json.loads(row["versions"] or "{}") for row in rows_of(db, _CONFIGS)]
    return {name: v for name, v in noted[-1].items() if v} if noted else {}


def _front_matter(contents: Contents, facts: Mapping[str, Any]) -> Row:
    num_rows = sum(contents.parts[0].rows.values())
    licenses = {row["license"] for row in facts["licenses"]} or {"unknown"}
    front: Row = {
        "pretty_name": one_line(facts["dataset"]),
        "license": sorted({i.lower() if i in _HUB_LICENSES else "other" for i in licenses}),
        "language": ["en"],
        "task_categories": ["text-generation"],
        "tags": ["synthetic", "tool-use", "function-calling", "agent", "mcp"],
        "size_categories": [next((name for size, name in _SIZES if num_rows < size), "n>1M")],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "configs": [
            {
                "config_name": part.name,
                **({"default": True} if part is contents.parts[0] else {}),
                "data_files": [
                    {"split": split, "path": part.pattern.format(split)} for split in part.rows
                ],
            }
            for part in contents.parts
        ],
    }
    infos = [
        {
            **({"config_name": part.name} if len(contents.parts) > 1 else {}),
            "features": [_feature(name, type_) for name, type_ in part.columns.items()],
        }
        for part in contents.parts
        if part.columns and part.typed
    ]
    if infos:
        front["dataset_info"] = infos[0] if len(infos) == 1 else infos
    return front


def _feature(name: str, type_: pa.DataType) -> Row:
    """As `datasets` spells the feature in YAML."""
    if pa.types.is_struct(type_):
        return {"name": name, "struct": _fields(type_)}
    if pa.types.is_list(type_):
        inner = _feature("", type_.value_type)
        del inner["name"]
        [(kind, value)] = inner.items()
        # a list of plain values, or of structures, is spelt without another level
        return {"name": name, "list": value if kind in ("dtype", "struct") else inner}
    return {"name": name, "dtype": _type_name(type_)}


def _fields(type_: pa.DataType) -> list[Row]:
    assert isinstance(type_, pa.StructType)
    return [_feature(field.name, field.type) for field in type_]


def _meaning(part: PartContents, column: str) -> str:
    return part.meanings[column] if column in part.meanings else MEANINGS[column]


def _type_names(part: PartContents) -> dict[str, str]:
    return {name: _type_name(type_) for name, type_ in part.columns.items()}


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        return f"struct of {', '.join(field['name'] for field in _fields(type_))}"
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "json" if type_ == JSON else {"double": "float64"}.get(str(type_), str(type_))


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("synth.exports", "."),
        undefined=StrictUndefined,
        finalize=_escaped,
        autoescape=False,  # this is markdown: `finalize` escapes every value
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("dataset_card.md.j2")


def _escaped(value: Any) -> Any:
    """What `{{ value }}` writes: numbers and trusted text as they are, the rest harmless."""
    if isinstance(value, Markup | int):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else markdown_text(str(value))


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


_TOTALS = """
SELECT count(*) AS trajectories, count(DISTINCT task_id) AS tasks,
  sum(num_messages)::BIGINT AS messages, sum(num_tool_calls)::BIGINT AS calls,
  median(num_messages) AS median_messages, median(num_tool_calls) AS median_calls,
  count(*) FILTER (num_user_turns > 1) AS several_user_turns,
  count(*) FILTER (num_recovered > 0) AS recovered
FROM chosen JOIN trajectories USING (trajectory_id)"""

_FROM = "FROM chosen JOIN trajectories USING (trajectory_id)"
_VERDICTS = """FROM (SELECT DISTINCT trajectory_id, checker_version
    FROM chosen JOIN trajectories USING (trajectory_id) JOIN verdicts
      USING (trajectory_id, grading_id) WHERE checked_by = 'judge')"""

_MODELS = f"""
SELECT part, model, count(*) AS rows FROM (
  SELECT e.key AS part, e.value->>'$' AS model {_FROM}, json_each(models) AS e
  UNION ALL SELECT 'writer of tasks', k.model {_FROM} JOIN tasks AS k USING (task_id)
  UNION ALL SELECT 'writer of agents', a.model {_FROM} JOIN agents AS a USING (agent_id)
  UNION ALL SELECT 'writer of personas', p.model {_FROM} JOIN personas AS p USING (persona_id)
  UNION ALL SELECT 'judge', regexp_replace(checker_version, '@[^@]*$', '') {_VERDICTS}
) WHERE model IS NOT NULL GROUP BY ALL ORDER BY part, model"""

_PROMPTS = f"""
SELECT prompt, version, count(*) AS rows FROM (
  SELECT e.key AS prompt, e.value->>'$' AS version {_FROM}, json_each(prompt_versions) AS e
  UNION ALL SELECT 'tasks', k.prompt_version {_FROM} JOIN tasks AS k USING (task_id)
  UNION ALL SELECT 'agents', a.prompt_version {_FROM} JOIN agents AS a USING (agent_id)
  UNION ALL SELECT 'personas', p.prompt_version {_FROM} JOIN personas AS p USING (persona_id)
  UNION ALL SELECT 'judge', regexp_extract(checker_version, '@([^@]*)$', 1) {_VERDICTS}
) WHERE version IS NOT NULL GROUP BY ALL ORDER BY prompt, version"""

_ENVIRONMENTS = """
SELECT coalesce(t.server, d.name, t.domain_id, '?') AS name,
  CASE WHEN t.server IS NULL THEN coalesce(d.category, '?') ELSE 'MCP server' END AS kind,
  count(*) AS rows
FROM chosen JOIN trajectories AS t USING (trajectory_id) LEFT JOIN domains AS d USING (domain_id)
GROUP BY ALL ORDER BY rows DESC, name"""

_LICENSES = """
SELECT license, count(*) AS rows FROM (SELECT unnest(tool_licenses) AS license FROM chosen)
GROUP BY ALL ORDER BY rows DESC, license"""

_CONFIGS = f"""
SELECT run_id, config, versions FROM runs
WHERE event = 'started' AND run_id IN (SELECT run_id {_FROM}) ORDER BY happened_at"""
