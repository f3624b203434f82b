"""`make test-exports`: other projects' own code reads what is exported for it.

    python -m tests.synth.exports.targets.run [NAME ...]

Each target has an environment of its own below `.venv/targets`, made from its locked requirements:
the package itself without what it does not need to read data, torch as everywhere. One small export
in each form is read by all. A line a target says what read how much, in which version and when;
one whose environment cannot be made, or that reads something else, fails the command.
"""

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.export import export_dataset
from tests.synth.publish.judged import curate, decision
from tests.synth.small_dataset import call, conversation, trajectory, write_dataset

HERE = Path(__file__).parent
ENVIRONMENTS = Path(".venv/targets")
FORMS = ("trl", "openai", "sharegpt", "verl")

SHAPES: tuple[dict[str, Any], ...] = (
    {"name": "Heron", "limit": 3},
    {"name": None, "tags": ["a", {"b": 1.5}], "deep": {"limit": "3"}},
    {},
    {"text": 'say "</tool_call>"\n\u2028 \U0001f6f6', "flag": False},
)
"""Arguments that structures of one table would fill with each other's keys."""


def main(names: list[str]) -> int:
    targets = {p.stem.removeprefix("read_"): p for p in sorted(HERE.glob("read_*.py"))}
    if unknown := [name for name in names if name not in targets]:
        _say(f"no target is called {', '.join(unknown)}; there are {', '.join(targets)}")
        return 2
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        write_exports(Path(folder))
        for name in names or targets:
            _say(f"{name}: making its environment where there is none, then reading")
            try:
                python = environment(name)
            except subprocess.CalledProcessError as error:
                failed.append(name)
                _say(f"{name}: its environment cannot be made: {error}")
                continue
            done = subprocess.run(
                [python, str(targets[name]), folder],
                env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": f"{folder}/hf"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                failed.append(name)
                _say(f"{name}: {done.stderr[-3000:]}")
            else:
                found = json.loads(done.stdout.splitlines()[-1])
                today = datetime.now(UTC).date().isoformat()
                print(json.dumps({"target": name, **found, "date": today}), flush=True)  # noqa: T201
    return min(len(failed), 1)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def environment(name: str) -> str:
    """The Python of a target's environment, made where there is none of today's requirements."""
    folder = (ENVIRONMENTS / name).absolute()
    requirements = HERE / "requirements" / f"{name}.txt"
    mark = folder / "made-from.txt"
    if not mark.exists() or mark.read_text() != requirements.read_text():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", str(folder)], check=True)
        # torch without CUDA: from where make says, or from torch's own index
        torch = [] if os.environ.get("UV_FIND_LINKS") else ["--torch-backend=cpu"]
        install = [uv, "pip", "install", "--quiet", "--no-deps", *torch]
        subprocess.run(
            [*install, "--requirement", str(requirements)],
            env=os.environ | {"VIRTUAL_ENV": str(folder)},
            check=True,
        )
        mark.write_text(requirements.read_text())
    return str(folder / "bin/python")


def write_exports(folder: Path) -> None:
    """Every form, and `expected.json`: what a reader ought to see of each row, in order."""
    dataset = made(folder / "data")
    for form in FORMS:
        export_dataset(dataset, folder / form, format=form)
    export_dataset(dataset, folder / "trl-text", format="trl", arguments="text")
    with dataset.connect() as db:
        rows = db.execute(
            "SELECT messages, tools, train_turns FROM sft ORDER BY trajectory_id"
        ).fetchall()
    expected = [
        {"messages": with_objects(json.loads(m)), "tools": json.loads(t), "train_turns": flags}
        for m, t, flags in rows
    ]
    (folder / "expected.json").write_text(json.dumps(expected))


def with_objects(messages: list[Row]) -> list[Row]:
    for message in messages:
        message.pop("reasoning_content", None)
        for one in message.get("tool_calls", ()):
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    return messages


def made(root: Path) -> Dataset:
    """A conversation for each shape, the last with something said beside its calls; the agent's
    first message of each carries no loss."""
    rows = []
    for number, shape in enumerate(SHAPES):
        messages = conversation()
        messages[2]["tool_calls"][1] = call("call_1", "rent_boat", json.dumps(shape))
        if shape is SHAPES[-1]:
            messages[5]["content"] = "Let me try again."
        rows.append((trajectory(f"t{number}", messages), None))
    dataset = write_dataset(root, rows)
    flags = [False, False, False, False, False, True, False, True]
    curate(dataset, [decision(row["trajectory_id"], None, train_turns=flags) for row, _ in rows])
    return dataset


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
