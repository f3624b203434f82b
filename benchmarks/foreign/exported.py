"""A tiny model that our trainer made, for servers that play exported models.

It learns twelve short conversations by heart, in two minutes: what a server makes of its calls can
be seen then, and nothing is measured about the model.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.foreign.features import TOOL, calling, greeting, question, result
from benchmarks.measured import ROOT

CITIES = ("Lisbon", "Oslo", "Paris", "Rome")

COPIES = 8
"""Of each conversation, so that a step has rows enough."""

SETTINGS = {
    "preset": "tiny",
    "steps": 140,
    "peak_lr": 4e-3,
    "optimizer.split_heads": True,
    "optimizer.update_rms": 0.1,
    "data.declarations": "typescript",
    "data.row_tokens": 512,
    "data.batch_rows": 4,
    "data.micro_rows": 4,
}

# How transformers (from 5.23) is told of the form in which a model writes calls: a field of
# tokenizer_config.json, which its server reads. Arguments stay the text that the model wrote.
RESPONSE_TEMPLATE: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_assistant|>assistant<|im_middle|>",
    "fields": {
        "tool_calls": {
            "open_pattern": (
                r"(?:<\|tool_calls_section_begin\|>)?<\|tool_call_begin\|>"
                r"(?:functions\.)?(?P<name>[^:<]+)(?::\d+)?<\|tool_call_argument_begin\|>"
            ),
            "close_pattern": r"<\|tool_call_end\|>(?:<\|tool_calls_section_end\|>)?",
            "repeats": True,
            "content": "text",
            "transform": {
                "type": "function",
                "function": {"name": "{name}", "arguments": "{content}"},
            },
        },
        "content": {"close": ["<|im_end|>", "[EOS]"], "content": "text"},
    },
}


def rows() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for city in CITIES:
        words = {"role": "assistant", "content": f"The sky over {city} is clear, at 21 degrees."}
        talk = [question(city), calling(city), result(city), words]
        made.append({"tools": [TOOL], "messages": talk})
        hello = {"role": "assistant", "content": f"Hello, {city}!"}
        made.append({"messages": [greeting(city), hello]})
        made.append({"tools": [TOOL], "messages": [greeting(city), hello]})
    return made


def exported_model(folder: Path) -> Path:
    """The folder of the model, trained if it is not there yet."""
    model = folder / "run" / "model"
    if (model / "config.json").exists():
        return model
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "conversations.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows() * COPIES))
    config = folder / "sft.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in SETTINGS.items()]
    lines += [f"out = {json.dumps(str(folder / 'run'))}"]
    lines += [f"data.sources = [{{ path = {json.dumps(str(source))} }}]"]
    config.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "trainer", "sft", str(config)]
    with (folder / "training.log").open("wb") as log:
        subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=True)
    return model


def with_response_template(model: Path, folder: Path) -> Path:
    """A copy of the model whose tokenizer says in which form it writes calls."""
    if not folder.exists():
        shutil.copytree(model, folder)
        settings = folder / "tokenizer_config.json"
        told = json.loads(settings.read_text()) | {"response_template": RESPONSE_TEMPLATE}
        settings.write_text(json.dumps(told, indent=2))
    return folder
