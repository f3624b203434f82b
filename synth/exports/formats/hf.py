"""The form `hf`: all that the dataset says of a conversation, for `datasets.load_dataset`.

Messages and tools are Arrow JSON columns (`datasets.Json()` there), so that objects of different
shapes never fill each other with nulls. Arguments of calls are objects: chat templates apply
`tojson` to them and would encode a string a second time.
"""

import json

from records.tables.schemas import Row
from synth.exports.formats.columns import HF_COLUMNS
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FormatOptions,
    WrittenExport,
    chosen_columns,
)
from synth.exports.formats.messages import with_arguments


def _row(row: Row, options: FormatOptions) -> Row:
    messages = with_arguments(row["messages"], options.arguments)
    return chosen_columns(row, HF_COLUMNS, messages=messages)


def _load(written: WrittenExport) -> tuple[str, str]:
    return "python", (
        "from datasets import load_dataset  # 5 or newer\n\n"
        f"rows = load_dataset({json.dumps(written.name)}, split={json.dumps(written.splits[0])})\n"
        'tokenizer.apply_chat_template(rows[0]["messages"], tools=rows[0]["tools"])'
    )


HF = ExportFormat(
    name="hf",
    title="Parquet for `datasets.load_dataset`, with all that the dataset says of each row",
    file_types=("parquet",),
    parts=(ExportPart("default", "conversations", HF_COLUMNS, _row, {}),),
    load=_load,
    arguments=("object", "text"),
)
