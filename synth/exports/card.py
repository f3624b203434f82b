"""The card of an export: README.md, with `metadata.json` and `run_config.json` beside it.

Names and reasons in it come from models, tools and files: YAML quotes them in the front matter, and
the template escapes every value that it is not told to trust.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from records.store.dataset import Dataset
from synth.exports.card_contents import Contents, PartContents
from synth.exports.card_facts import facts_of
from synth.exports.formats.columns import MEANINGS
from synth.exports.front_matter import front_matter, type_name
from synth.publish.decisions import FATES
from synth.render.foreign_text import markdown_text

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


def write_card(
    folder: Path,
    dataset: Dataset,
    db: duckdb.DuckDBPyConnection,
    contents: Contents,
    *,
    command: str,
) -> None:
    """Write the three files. `db` holds the table `exported`; `command` is the
    one that makes the same export."""
    facts = facts_of(dataset, db)
    body = _template().render(
        contents=contents,
        parties=FATES,
        why=WHY_LEFT_OUT,
        tables=[
            (
                part.name,
                [
                    (Markup(f"`{name}`"), type_name(type_), Markup(_meaning(part, name)))
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
    front = yaml.safe_dump(front_matter(contents, facts), sort_keys=False, width=100)
    _write(folder / "README.md", f"---\n{front}---\n\n{body}\n")
    metadata = asdict(contents) | facts
    first, *others = contents.parts
    metadata |= {"rows": first.rows, "columns": _type_names(first)}
    metadata["parts"] = {p.name: {"rows": p.rows, "columns": _type_names(p)} for p in others}
    for told in ("settings", "snippet", "language", "notes"):
        del metadata[told]
    _write(folder / "metadata.json", json.dumps(metadata, indent=2) + "\n")
    _write(folder / "run_config.json", json.dumps(facts["settings"], indent=2) + "\n")


def _meaning(part: PartContents, column: str) -> str:
    return part.meanings[column] if column in part.meanings else MEANINGS[column]


def _type_names(part: PartContents) -> dict[str, str]:
    return {name: type_name(type_) for name, type_ in part.columns.items()}


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
