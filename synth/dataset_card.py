"""The README of an export: front matter for the Hub, then what the data is and where it is from."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml

from records.store import Dataset
from synth.figures import number
from synth.foreign_text import markdown_table, markdown_text
from synth.summary import summarise

_TEMPLATE = Path(__file__).parent / "dataset_card.md.j2"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(
    dataset: Dataset,
    *,
    counts: Mapping[str, Any],
    columns: Sequence[str],
) -> str:
    """Markdown. `counts` is the export's metadata; names from data can be no markup in it."""
    summary = summarise(dataset)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["text"] = markdown_text
    yields = [
        (y["stage"], y["requested"], y["kept"], y["dropped"], y["failed"], y["pending"])
        for y in summary.yields
    ]
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        front_matter=front_matter(summary.dataset, counts),
        summary=summary,
        format=counts["format"],
        splits=_counted(("split", "rows"), counts["splits"]),
        left_out=_counted(("reason", "rows"), counts["left_out"]) if counts["left_out"] else "",
        columns=", ".join(f"`{column}`" for column in columns),
        yields=markdown_table(
            ("stage", "requested", "kept", "dropped", "failed", "pending"), yields
        ),
        accepted=number(summary.totals["accepted"]),
        trajectories=number(summary.totals["trajectories"]),
        models=_nested(("role", "model", "rows"), counts["models"]),
        prompts=_nested(("prompt", "version", "rows"), counts["prompt_versions"]),
        licenses=_counted(("licence", "rows"), counts["licenses"]),
    )


def front_matter(name: str, counts: Mapping[str, Any]) -> str:
    """YAML that the Hub and `load_dataset` read."""
    licenses = list(counts["licenses"])
    data_files = [{"split": split, "path": list(paths)} for split, paths in counts["files"].items()]
    fields = {
        "license": licenses[0].lower()
        if len(licenses) == 1 and " " not in licenses[0]
        else "other",
        "language": ["en"],
        "pretty_name": name,
        "task_categories": ["text-generation"],
        "tags": ["synthetic", "tool-use", "function-calling", "agent", "mcp"],
        "size_categories": [size_category(counts["rows"])],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "configs": [{"config_name": "default", "default": True, "data_files": data_files}],
    }
    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)


def size_category(rows: int) -> str:
    """The Hub's spelling of the order of magnitude."""
    return next((name for limit, name in _SIZES if rows < limit), "n>1M")


def _counted(head: tuple[str, str], counts: Mapping[str, int]) -> str:
    return markdown_table(head, sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _nested(head: tuple[str, str, str], counts: Mapping[str, Mapping[str, int]]) -> str:
    rows = [(outer, inner, n) for outer, found in counts.items() for inner, n in found.items()]
    return markdown_table(head, sorted(rows))
