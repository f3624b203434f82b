"""How many real tools the import stops: `python -m benchmarks.instructing_real FOLDER`.

FOLDER holds tool lists of servers that people use, as files that `synth tools import --file` reads.
They are measured only: no rule, text or threshold is chosen by them.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from tool_specs.importing.instructing.finding import CLASSIFIER
from tool_specs.importing.tool_files import read_listings
from tool_specs.importing.tool_lists import QUARANTINED, rows_of_answer

SUFFIXES = (".json", ".jsonl", ".gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true", help="print the texts that are stopped")
    options = parser.parse_args()
    files = sorted(p for p in options.folder.iterdir() if p.suffix in SUFFIXES)
    listings = [listing for file in files for listing in read_listings(file)]
    rows = [row for one in listings for row in rows_of_answer(one.tools, one.source, one.dialect)]
    stopped = [row for row in rows if row["drop_reason"] in QUARANTINED]
    rules = Counter(row["annotations"].get("quarantine", row["drop_reason"]) for row in stopped)
    unsure = sum("instructingScore" in row["annotations"] for row in rows)
    by_rules = len(stopped) - rules[CLASSIFIER]
    print(f"tools {len(rows)}, stopped {len(stopped)} ({len(stopped) / len(rows):.2%})")
    print(f"by rules alone {by_rules} ({by_rules / len(rows):.2%}), by what:", dict(rules))
    print(f"shown to a judge {unsure} ({unsure / len(rows):.2%})")
    if options.show:
        for row in stopped:
            print(json.dumps([row["server"], row["name"], row["description"]], ensure_ascii=False))


if __name__ == "__main__":
    main()
