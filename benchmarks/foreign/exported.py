"""A tiny model that our trainer made, for servers that play exported models.

It learns twelve short conversations by heart, in two minutes: what a server makes of its calls can
be seen then, and nothing is measured about the model.
"""

import json
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
