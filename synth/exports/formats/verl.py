"""The form `verl`: rows for its supervised training, and tasks for its reinforcement learning.

verl reads Parquet by pandas, which gives columns of JSON as text, and structures would fill each
other with nulls. So the folder has `verl_rows.py`, a data set for verl's `data.custom_cls` that
reads the text and honours `train`. The part `rl` is read by verl alone: a row is a task with the
first words of its user; the rubric is its ground truth, for a reward function of one's own.
"""

import pyarrow as pa

from records.tables.schemas import STR, Row
from synth.exports.formats.columns import MEANINGS
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FormatOptions,
    WrittenExport,
    chosen_columns,
)
from synth.exports.formats.messages import prompt_of
from synth.exports.formats.trl import CONVERSATION, conversation_row

CLASS_FILE, CLASS_NAME = "verl_rows.py", "JsonConversations"

_PROMPT = pa.list_(pa.struct([("role", STR), ("content", STR)]))
_REWARD = pa.struct([("style", STR), ("ground_truth", STR)])
_EXTRA = pa.struct(
    [
        ("split", STR),
        ("index", pa.int64()),
        ("task_id", STR),
        ("trajectory_id", STR),
        ("agent_id", STR),
        ("seed", pa.int64()),
        ("initial_state", STR),
        ("tools", STR),
    ]
)
_TASK = {
    "data_source": STR,
    "prompt": _PROMPT,
    "ability": STR,
    "reward_model": _REWARD,
    "extra_info": _EXTRA,
}


def _task(row: Row, _: FormatOptions) -> Row:
    extra = {
        **{name: row[name] for name in ("split", "task_id", "trajectory_id", "agent_id", "tools")},
        "index": row["place"],
        "seed": row["task_seed"],
        "initial_state": row["initial_state"],
    }
    spoken = prompt_of(row["messages"])
    return chosen_columns(
        row,
        _TASK,
        data_source=f"agentic-synth/{row['server'] or row['domain'] or 'unknown'}",
        prompt=[{"role": m["role"], "content": m["content"]} for m in spoken],
        ability=row["category"] or "tool-use",
        reward_model={"style": "rule", "ground_truth": row["rubric"]},
        extra_info=extra,
    )


_CLASS = f'''"""Rows of this export for verl: its data set of conversations, with JSON columns read.

    data.train_files="[$(ls data/train-*.parquet | paste -sd,)]"
    data.custom_cls.path={CLASS_FILE} data.custom_cls.name={CLASS_NAME}
"""

import json

import torch
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset


class {CLASS_NAME}(MultiTurnSFTDataset):
    """Messages and tools are JSON text in the file; what has `train: false` carries no loss."""

    def _read_files_and_process(self):
        super()._read_files_and_process()
        self.messages = [json.loads(text) for text in self.messages]
        self.tools = [json.loads(text) for text in self.tools]

    def _build_messages(self, example):
        messages = json.loads(example[self.messages_key])
        return super()._build_messages({{**example, self.messages_key: messages}})

    def _process_single_message(self, index, message, full_message, tools=None, **more):
        ids, loss, attention, inputs = super()._process_single_message(
            index, message, full_message, tools, **more
        )
        if message.get("train") is False:
            loss = torch.zeros_like(loss)
        return ids, loss, attention, inputs
'''
"""Of the file `CLASS_FILE`."""


def _load(written: WrittenExport) -> tuple[str, str]:
    files = 'data.train_files="[$(ls {}/{}/{}-*.parquet | paste -sd,)]"'
    name, split = written.name, written.splits[0]
    return "bash", (
        "# verl 0.9: supervised training\n"
        f"{files.format(name, 'data', split)} \\\n"
        f"data.custom_cls.path={written.name}/{CLASS_FILE} data.custom_cls.name={CLASS_NAME}\n"
        "# reinforcement learning, with a reward function of your own\n"
        f"{files.format(name, 'rl', split)} data.prompt_key=prompt"
    )


VERL = ExportFormat(
    name="verl",
    title="Parquet for verl: conversations to learn from, and tasks for reinforcement learning",
    file_types=("parquet",),
    parts=(
        ExportPart(
            "default",
            "conversations",
            CONVERSATION,
            conversation_row,
            {
                "messages": f"{MEANINGS['messages']}; `train` is false on assistant messages that "
                "carry no loss"
            },
        ),
        ExportPart(
            "rl",
            "tasks",
            _TASK,
            _task,
            {
                "data_source": "The domain or server",
                "prompt": "System prompt and first words of the user",
                "ability": "Category of the domain",
                "reward_model": "The task's rubric, as JSON text",
                "extra_info": "Ids, split, tools and initial state; JSON as text",
            },
        ),
    ),
    load=_load,
    arguments=("object", "text"),
    beside=lambda _: {CLASS_FILE: _CLASS},
)
