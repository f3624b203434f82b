"""The front matter of a card, in YAML: what the Hub and `load_dataset` read of it."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from records.tables.schemas import JSON, Row
from synth.exports.card_contents import Contents
from synth.render.foreign_text import one_line

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


def front_matter(contents: Contents, facts: Mapping[str, Any]) -> Row:
    num_rows = sum(contents.parts[0].rows.values())
    licenses = {row["license"] for part in ("licenses", "imported") for row in facts[part]}
    licenses = licenses or {"unknown"}
    is_english = all(row["language"] == "English" for row in facts["languages"])
    front: Row = {
        "pretty_name": one_line(facts["dataset"]),
        "license": sorted({i.lower() if i in _HUB_LICENSES else "other" for i in licenses}),
        # the Hub wants codes, and of other languages the dataset has names
        **({"language": ["en"]} if is_english else {}),
        "task_categories": ["text-generation"],
        "tags": ["synthetic", "tool-use", "function-calling", "agent", "mcp"],
        "size_categories": [next((name for size, name in _SIZES if num_rows < size), "n>1M")],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original", *(["extended"] if facts["imported"] else [])],
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
    return {"name": name, "dtype": type_name(type_)}


def _fields(type_: pa.DataType) -> list[Row]:
    assert isinstance(type_, pa.StructType)
    return [_feature(field.name, field.type) for field in type_]


def type_name(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        return f"struct of {', '.join(field['name'] for field in _fields(type_))}"
    if pa.types.is_list(type_):
        return f"list of {type_name(type_.value_type)}"
    return "json" if type_ == JSON else {"double": "float64"}.get(str(type_), str(type_))
