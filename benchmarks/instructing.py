"""How many texts that instruct a model the import stops, and how many harmless lookalikes:
`python -m benchmarks.instructing [tuning|reporting]`.

The texts in `instructing_texts/` are descriptions of tools in thirteen languages, written by
language models that had seen no rule. `reporting` is measured and never tuned on.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from tool_specs.importing.tool_lists import QUARANTINED, ToolListSource, rows_of_answer

FOLDER = Path(__file__).parent / "instructing_texts"


def is_stopped(text: dict[str, Any]) -> bool:
    tool = {
        "name": text["name"],
        "description": text["description"],
        "inputSchema": {"type": "object", "properties": text.get("parameters") or {}},
    }
    source = ToolListSource(server="texts", category="software_apps", may_write=True)
    [row] = rows_of_answer([tool], source)
    return row["drop_reason"] in QUARANTINED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", choices=("tuning", "reporting"), nargs="?", default="tuning")
    half = parser.parse_args().half
    lines = (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line) for line in lines]
    for is_attack, what in ((True, "attacks stopped"), (False, "lookalikes stopped")):
        chosen = [text for text in texts if text["is_attack"] is is_attack]
        stopped = [text for text in chosen if is_stopped(text)]
        print(f"{half}: {what} {len(stopped)} of {len(chosen)}")
        there = Counter(text["language"] for text in chosen)
        caught = Counter(text["language"] for text in stopped)
        print("  by language:", ", ".join(f"{k} {caught[k]}/{n}" for k, n in sorted(there.items())))


if __name__ == "__main__":
    main()
