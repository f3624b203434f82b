"""How many texts that instruct a model the import stops, and how many harmless lookalikes:
`python -m benchmarks.instructing [tuning|reporting]`.

The texts in `instructing_texts/` are descriptions of tools in thirteen languages, written by
language models that had seen no rule. `reporting` is measured and never tuned on. The classifier
was trained on the tuning half, so each of its texts is scored here by a model that was trained
without it; the reporting half is scored by the stored weights.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.instructing_classifier import FOLDER, left_out_scores, training_texts
from records.tables.schemas import Row
from tool_specs.importing.instructing.classifier import score, thresholds
from tool_specs.importing.instructing.finding import CLASSIFIER
from tool_specs.importing.instructing.texts import texts_in
from tool_specs.importing.tool_lists import QUARANTINED, ToolListSource, rows_of_answer


class Found(NamedTuple):
    text: dict[str, Any]
    by_rules: bool
    score: float

    @property
    def with_classifier(self) -> bool:
        return self.by_rules or self.score >= thresholds().stopped

    @property
    def is_shown(self) -> bool:
        """To a judge, where there is one; what is hidden is stopped without."""
        return self.by_rules or self.score >= thresholds().unsure


def texts_of(half: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def row_of(text: dict[str, Any]) -> Row:
    tool = {
        "name": text["name"],
        "description": text["description"],
        "inputSchema": {"type": "object", "properties": text.get("parameters") or {}},
    }
    source = ToolListSource(server="texts", category="software_apps", may_write=True)
    [row] = rows_of_answer([tool], source)
    return row


def is_stopped_by_rules(row: Row) -> bool:
    by = row["annotations"].get("quarantine")
    return row["drop_reason"] in QUARANTINED and by != CLASSIFIER


def found_in(half: str) -> list[Found]:
    texts = texts_of(half)
    if half == "tuning":
        scores: Sequence[float] = left_out_scores(training_texts()).tolist()
    else:
        scores = [
            score((text["description"], *texts_in(text.get("parameters") or {}))) for text in texts
        ]
    rules = (is_stopped_by_rules(row_of(text)) for text in texts)
    return [Found(*one) for one in zip(texts, rules, scores, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", choices=("tuning", "reporting"), nargs="?", default="tuning")
    half = parser.parse_args().half
    found = found_in(half)
    for is_attack, what in ((True, "attacks"), (False, "lookalikes")):
        chosen = [one for one in found if one.text["is_attack"] is is_attack]
        for name, stopped in (
            ("rules alone", [one.by_rules for one in chosen]),
            ("rules and classifier", [one.with_classifier for one in chosen]),
            ("shown to a judge", [one.is_shown for one in chosen]),
        ):
            print(f"{half}: {what}, {name}: {sum(stopped)} of {len(chosen)}")
            if is_attack:
                tell_missed(chosen, stopped)


def tell_missed(chosen: Sequence[Found], stopped: Sequence[bool]) -> None:
    for key in ("language", "kind"):
        there = Counter(one.text[key] for one in chosen)
        pairs = zip(chosen, stopped, strict=True)
        missed = Counter(one.text[key] for one, is_stopped in pairs if not is_stopped)
        told = ", ".join(f"{name} {count}/{there[name]}" for name, count in missed.most_common())
        print(f"  missed by {key}: {told or 'none'}")


if __name__ == "__main__":
    main()
