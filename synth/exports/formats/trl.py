"""The forms `trl` and `preferences`: what TRL's trainers take, and those that read as it does.

`trl` has messages and tools. An assistant's message that carries no loss has `"train": false`,
which axolotl reads (`message_field_training`) and chat templates may look at, and `"loss": false`,
which ms-swift reads. `preferences` has pairs, of which everything up to the agent's first different
message is the prompt, and in a second part attempts alone with a label. A pair whose user or whose
tools differ before the agent does compares no choices of the agent and is left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from records.tables.schemas import JSON, STR, Row
from synth.exports.formats.columns import ABOUT, BOOLS, MEANINGS
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FormatOptions,
    LeftOutError,
    WrittenExport,
    chosen_columns,
)
from synth.exports.formats.messages import (
    prompt_of,
    tools_in,
    with_arguments,
    with_flags,
)
from synth.rubrics.turns import what_is_wrong

NO_LOSS = {"train": False, "loss": False}
"""On assistant messages that are not to be learnt."""

CONVERSATION = {"messages": JSON, "tools": JSON, "train_turns": BOOLS, **ABOUT}

_PAIR = {
    "prompt": JSON,
    "chosen": JSON,
    "rejected": JSON,
    "tools": JSON,
    **ABOUT,
    "rejected_id": STR,
    "failed_criterion": STR,
}
_ATTEMPT = {"prompt": JSON, "completion": JSON, "label": pa.bool_(), "tools": JSON, **ABOUT}


def conversation_row(row: Row, options: FormatOptions) -> Row:
    """A row with flags on its messages."""
    messages = with_arguments(row["messages"], options.arguments)
    flagged = with_flags(messages, row["train_turns"], **NO_LOSS)
    return chosen_columns(row, CONVERSATION, messages=flagged, tools=tools_in(row["tools"]))


def _pair(row: Row, options: FormatOptions) -> Row:
    if what_is_wrong(row["rejected_messages"]):
        raise LeftOutError("pair_untrainable")
    chosen = with_arguments(row["messages"], options.arguments)
    rejected = with_arguments(row["rejected_messages"], options.arguments)
    start = _first_difference(chosen, rejected)
    if any(side[start : start + 1] == [] for side in (chosen, rejected)) or {
        side[start]["role"] for side in (chosen, rejected)
    } != {"assistant"}:
        raise LeftOutError("pair_without_shared_prompt")
    made = {"prompt": chosen[:start], "chosen": chosen[start:], "rejected": rejected[start:]}
    return chosen_columns(row, _PAIR, **made, tools=tools_in(row["tools"]))


def _first_difference(
    chosen: Sequence[Mapping[str, Any]], rejected: Sequence[Mapping[str, Any]]
) -> int:
    """The place of the first message that is not in both."""
    same = [one == other for one, other in zip(chosen, rejected, strict=False)]
    return same.index(False) if False in same else len(same)


def _attempt(row: Row, options: FormatOptions) -> Row:
    messages = with_arguments(row["messages"], options.arguments)
    prompt = list(prompt_of(messages))
    made = {"prompt": prompt, "completion": messages[len(prompt) :]}
    return chosen_columns(row, _ATTEMPT, **made, tools=tools_in(row["tools"]))


def _load(written: WrittenExport) -> tuple[str, str]:
    if written.file_type == "jsonl":
        return "python", (
            "from datasets import Dataset  # 5 or newer\nimport json\n\n"
            f"lines = open({json.dumps(f'{written.name}/{written.files(written.splits[0])}')})\n"
            "rows = [json.loads(line) for line in lines]\n"
            'rows = Dataset.from_list(rows, on_mixed_types="use_json")'
        )
    return "python", (
        "from datasets import load_dataset  # 5 or newer\n"
        "from trl import SFTConfig, SFTTrainer\n\n"
        f"rows = load_dataset({json.dumps(written.name)}, split={json.dumps(written.splits[0])})\n"
        "settings = SFTConfig(assistant_only_loss=True)\n"
        "SFTTrainer(model=..., args=settings, train_dataset=rows).train()"
    )


def _load_attempts(written: WrittenExport) -> tuple[str, str]:
    name, split = json.dumps(written.name), json.dumps(written.splits[0])
    return "python", (
        "from datasets import load_dataset  # 5 or newer\n"
        "from trl import KTOConfig, KTOTrainer\n\n"
        f'attempts = load_dataset({name}, "unpaired", split={split})\n'
        "KTOTrainer(model=..., args=KTOConfig(), train_dataset=attempts).train()"
    )


def _load_pairs(written: WrittenExport) -> tuple[str, str]:
    name, split = json.dumps(written.name), json.dumps(written.splits[0])
    return "python", (
        "from datasets import load_dataset  # 5 or newer\n"
        "from trl import DPOConfig, DPOTrainer\n\n"
        f"pairs = load_dataset({name}, split={split})\n"
        "DPOTrainer(model=..., args=DPOConfig(), train_dataset=pairs).train()\n"
        f'attempts = load_dataset({name}, "unpaired", split={split})  # for KTOTrainer'
    )


_MESSAGES = {
    "messages": f"{MEANINGS['messages']}; `train` and `loss` are false on assistant messages that "
    "carry no loss",
}
_PAIR_MEANINGS = {
    "prompt": f"{MEANINGS['messages']}; those before the agent's first message that differs",
    "chosen": "The rest of the accepted attempt, which is the row's trajectory",
    "rejected": "The rest of the attempt that the agent failed",
    "rejected_id": "The trajectory that the agent failed",
    "failed_criterion": "The criterion that it failed by",
}

TRL = ExportFormat(
    name="trl",
    title="messages and tools for TRL, axolotl, ms-swift, prime-rl and NeMo",
    file_types=("parquet", "jsonl"),
    parts=(ExportPart("default", "conversations", CONVERSATION, conversation_row, _MESSAGES),),
    load=_load,
    arguments=("object", "text"),
    notes="`assistant_only_loss` of TRL needs a chat template with `{% generation %}`, and knows "
    "nothing of flags:\na template may leave out of it what has `message.train == false`.",
)

PREFERENCES = ExportFormat(
    name="preferences",
    title="pairs of an accepted and a failed attempt at one task, and attempts with a label",
    file_types=("parquet", "jsonl"),
    parts=(
        ExportPart("default", "pairs", _PAIR, _pair, _PAIR_MEANINGS),
        ExportPart(
            "unpaired",
            "attempts",
            _ATTEMPT,
            _attempt,
            {
                "prompt": "Chat messages before the agent's first",
                "completion": "The rest of the conversation",
                "label": "Whether it was accepted; else the agent failed it",
            },
        ),
    ),
    load=_load_pairs,
    arguments=("object", "text"),
    keeps_flags=False,
    notes="Chosen and rejected sides hold what users and tools said as well: TRL's `DPOTrainer` "
    "counts their tokens.",
)

UNPAIRED = replace(
    PREFERENCES,
    title="attempts with a label: accepted, or failed by the agent",
    parts=PREFERENCES.parts[1:],
    load=_load_attempts,
    notes="Pairs were not asked for (`--unpaired`).",
)
"""The form `preferences` without its pairs."""
