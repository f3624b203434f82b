"""The card of an export: README.md, with `metadata.json` and `run_config.json` beside it.

Names and reasons in it come from models, tools and files: YAML quotes them in the front matter,
and the template escapes every value that it is not told to trust. No path of this machine, no
address and no key gets in: of the runs' settings only those that say how the data was made.
"""

import json
import os
from collections.abc import Mapping
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
from synth.judging.judge_report import judge_report
from synth.pipeline.config import RunConfig
from synth.publish.decisions import FATES, decisions
from synth.publish.export_messages import Reasoning
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

MEANINGS = {
    "trajectory_id": "Digest of everything that decided the row",
    "split": "train, or what is held out: heldout_values, heldout_task, heldout_tool, "
    "heldout_domain",
    "messages": "Chat messages in OpenAI form; arguments of calls as objects",
    "tools": "Tools in OpenAI form, as the agent was shown them",
    "train_turns": "One flag a message: whether it carries loss",
    "weight": "Weight of the row in training",
    "domain": "Synthetic domain; null where the tools are an MCP server's",
    "category": "Category of the domain",
    "complexity": "How many steps the task was drawn with",
    "score": "Share of the rubric's weight that was reached, 0 to 1",
    "tool_licenses": "Licences of the tools that are shown",
    "judge_mark": "What the judge's word on criteria without a check is worth: calibrated, "
    "not_calibrated, uncertain (its rate is good enough, its interval is not), below_minimum "
    "(it counted for nothing), unmeasured; null where it was not asked",
    "decided_by": "Whose verdicts the acceptance rests on: code_and_judge, or code, where no "
    "judge's word counted; null where it was not noted",
    "self_judged": "Whether the judge is the model that played the agent; null where it was not "
    "noted",
    "task_id": "Attempts at one task share it",
    "server": "MCP server that executed the calls; null for synthetic tools",
    "variant": "normal, or why the task cannot be done as asked",
    "attempt": "Which attempt at the task, from 0",
    "seed": "Seed of every draw in the episode",
    "num_messages": "Messages",
    "num_turns": "Assistant messages",
    "num_user_turns": "User messages",
    "num_tool_calls": "Calls",
    "num_errors": "Calls that returned an error",
    "num_recovered": "Errors after which the same tool succeeded",
    "executed_by": "How calls were executed: state_machine, mcp, code, llm, cassette, sub_agent, "
    "notes",
    "episode_id": "The trajectory that decides about this one: itself (also null), or its agent's",
    "session": "Which of the episode's conversations with the user it belongs to, from 0",
    "parent_call_id": "The call whose sub-agent speaks here; null for the agent itself",
    "injected_outcomes": "Failures drawn on purpose, in call order",
    "termination_reason": "Why the episode ended",
    "outcome": "What the code-checked criteria said at the end",
    "objective_reward": "Share of the code-checked criteria's weight, 0 to 1",
    "models": "Model of each role",
    "prompt_versions": "Digest of each prompt template",
    "run_id": "Digest of the run's settings",
}
"""Of every column of the `hf` form."""

WHY_LEFT_OUT = {
    "not_accepted": "rejected, or not curated yet",
    "code_alone": "accepted by code alone: no judge's word counted for them",
    "held_out": "held out for evaluation",
    "unknown_license": "show a tool whose licence is not known",
}
"""Of every reason why a trajectory is not exported."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was exported, as the card tells it."""

    name: str
    """Of the folder."""
    format: str
    rows: Mapping[str, int]
    """By split."""
    left_out: Mapping[str, int]
    text_arguments: int
    reasoning: Reasoning
    thoughts: int
    tools_by_license: Mapping[str, int]
    columns: Mapping[str, pa.DataType]
    """Empty for a form without columns."""

    @property
    def pattern(self) -> str:
        """Of the files of a split, which stands for `{}`."""
        return "data/{}-*" if self.format == "hf" else "{}.jsonl"


def write_card(
    folder: Path, dataset: Dataset, db: duckdb.DuckDBPyConnection, contents: Contents
) -> None:
    """Write the three files. `db` holds the exported ids as the table `chosen`."""
    facts = _facts(dataset, db)
    body = _template().render(
        contents=contents,
        parties=FATES,
        why=WHY_LEFT_OUT,
        columns=[
            (Markup(f"`{name}`"), _type_name(type_), Markup(MEANINGS[name]))
            for name, type_ in contents.columns.items()
        ],
        snippet=Markup(_snippet(contents)),
        **facts,
    )
    front = yaml.safe_dump(_front_matter(contents, facts), sort_keys=False, width=100)
    _write(folder / "README.md", f"---\n{front}---\n\n{body}\n")
    metadata = asdict(contents) | facts
    metadata["columns"] = {name: _type_name(type_) for name, type_ in contents.columns.items()}
    del metadata["settings"]
    _write(folder / "metadata.json", json.dumps(metadata, indent=2) + "\n")
    _write(folder / "run_config.json", json.dumps(facts["settings"], indent=2) + "\n")


def _facts(dataset: Dataset, db: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    [totals] = rows_of(db, _TOTALS)
    models = rows_of(db, _MODELS)
    settings = _settings(db)
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
    num_rows = sum(contents.rows.values())
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
                "config_name": "default",
                "default": True,
                "data_files": [
                    {"split": split, "path": contents.pattern.format(split)}
                    for split in contents.rows
                ],
            }
        ],
    }
    if contents.columns:
        front["dataset_info"] = {
            "features": [_feature(name, type_) for name, type_ in contents.columns.items()]
        }
    return front


def _feature(name: str, type_: pa.DataType) -> Row:
    """As `datasets` spells the feature in YAML."""
    if pa.types.is_list(type_):
        return {"name": name, "list": _type_name(type_.value_type)}
    return {"name": name, "dtype": _type_name(type_)}


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "json" if type_ == JSON else {"double": "float64"}.get(str(type_), str(type_))


def _snippet(contents: Contents) -> str:
    split = next(iter(contents.rows))
    if contents.format == "hf":
        return (
            "from datasets import load_dataset  # 5 or newer\n\n"
            f"rows = load_dataset({json.dumps(contents.name)}, split={json.dumps(split)})\n"
            'tokenizer.apply_chat_template(rows[0]["messages"], tools=rows[0]["tools"])'
        )
    path = f"{contents.name}/{contents.pattern.format(split)}"
    return f"import json\n\nrows = [json.loads(line) for line in open({json.dumps(path)})]"


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("synth.publish", "."),
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
