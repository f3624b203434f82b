"""The form `k2`: text as Kimi K2's released template writes it (`records.chat.k2`).

The parser of calls that was released with K2 takes a tool's name between the last point and the
colon of `functions.name:n` and allows letters, digits and underscores: other names are changed, in
declarations, calls and results alike. `tool_names` and `call_ids` say what stood there. `learnt`
has the spans of the text that the model is to write.

In text nothing tells a special token from words that spell one, so rows in which somebody spells
one are left out.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from records.chat.k2 import TEMPLATE_TOKENS, THINK, THINK_END, k2_pieces
from records.tables.schemas import JSON, STR, STRS, Row
from synth.exports.formats.columns import ABOUT
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FormatOptions,
    LeftOutError,
    WrittenExport,
    chosen_columns,
)
from synth.exports.formats.messages import tools_in

MOST_CHARS = 64
"""Of a tool's name, which begins with a letter or an underscore."""

_ALLOWED = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)

_OTHER_TOKENS = (THINK, THINK_END, "[BOS]", "[EOS]", "[PAD]", "[UNK]", "[EOT]", "<|media_")
"""Special tokens of K2's tokenizer that stand in no conversation of ours, or their beginnings."""

_COLUMNS = {
    "text": STR,
    "learnt": pa.list_(pa.list_(pa.int64())),
    "tool_names": JSON,
    "call_ids": STRS,
    **ABOUT,
}


def _row(row: Row, options: FormatOptions) -> Row:
    messages, tools = row["messages"], tools_in(row["tools"])
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    names = accepted_names(
        [
            *(tool["function"]["name"] for tool in tools),
            *(call["function"]["name"] for call in calls),
            *(m["name"] for m in messages if m["role"] == "tool" and m.get("name")),
        ]
    )
    pieces = list(
        k2_pieces(
            [_renamed(message, names) for message in messages],
            [{**tool, "function": _with_name(tool["function"], names)} for tool in tools],
            train_turns=row["train_turns"],
            declarations=options.declarations,
            system="",
        )
    )
    spelt = (*TEMPLATE_TOKENS, *_OTHER_TOKENS)
    if any(token in piece.text for piece in pieces if not piece.special for token in spelt):
        raise LeftOutError("spells_special_token")
    learnt: list[list[int]] = []
    at = 0
    for piece in pieces:
        if piece.learnt and piece.text:
            if learnt and learnt[-1][1] == at:
                learnt[-1][1] += len(piece.text)
            else:
                learnt.append([at, at + len(piece.text)])
        at += len(piece.text)
    return chosen_columns(
        row,
        _COLUMNS,
        text="".join(piece.text for piece in pieces),
        learnt=learnt,
        tool_names={new: old for old, new in names.items() if new != old},
        call_ids=[call["id"] for call in calls],
    )


def accepted_names(names: Iterable[str]) -> dict[str, str]:
    """Each name and the one that K2's parser reads whole; two names never become one."""
    wanted = sorted(set(names))
    taken = {name for name in wanted if _ALLOWED.fullmatch(name)}
    made = {name: name for name in taken}
    for name in wanted:
        if name in made:
            continue
        stem = re.sub(r"\W", "_", name, flags=re.ASCII)
        stem = (stem if _ALLOWED.match(stem) else f"_{stem}")[:MOST_CHARS]
        new, number = stem, 2
        while new in taken:
            ending = f"_{number}"
            new, number = stem[: MOST_CHARS - len(ending)] + ending, number + 1
        taken.add(new)
        made[name] = new
    return made


def _renamed(message: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    own = dict(message)
    if own["role"] == "tool" and own.get("name"):
        own["name"] = names[own["name"]]
    if own.get("tool_calls"):
        calls: Sequence[Mapping[str, Any]] = own["tool_calls"]
        own["tool_calls"] = [{**c, "function": _with_name(c["function"], names)} for c in calls]
    return own


def _with_name(function: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**function, "name": names[function["name"]]}


def _load(written: WrittenExport) -> tuple[str, str]:
    if written.file_type == "jsonl":
        files = {"data_files": f"{written.name}/{written.files(written.splits[0])}"}
        given = f'"json", data_files={json.dumps(files["data_files"])}, split="train"'
    else:
        given = f"{json.dumps(written.name)}, split={json.dumps(written.splits[0])}"
    return "python", (
        "from datasets import load_dataset  # 5 or newer\n\n"
        f"rows = load_dataset({given})\n"
        "# K2's tokenizer takes its special tokens from the text where it is told to\n"
        'ids = tokenizer.encode(rows[0]["text"], allow_special_tokens=True)'
    )


K2 = ExportFormat(
    name="k2",
    title="text as Kimi K2's chat template writes it, tools declared in JSON or TypeScript",
    file_types=("parquet", "jsonl"),
    parts=(
        ExportPart(
            "default",
            "conversations",
            _COLUMNS,
            _row,
            {
                "text": "The conversation in Kimi K2's chat format",
                "learnt": "Begin and end of what the model is to write, in characters of the text",
                "tool_names": "Names of tools that were changed for K2's parser, by the new one",
                "call_ids": "What the id of each call was, in their order",
            },
        ),
    ),
    load=_load,
    reasoning=("none",),
    why_no_reasoning="K2's template keeps the thoughts of the last turn alone; export trl with "
    "--reasoning field and let the template of K2-Thinking write them",
)
