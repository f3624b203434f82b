"""How many texts that instruct a model the import stops, and how many harmless lookalikes.

    python -m benchmarks.instructing [tuning|reporting]
    python -m benchmarks.instructing reporting --judge FILE --work FOLDER

FILE is TOML with the settings of the judge's role, which is asked about each text that a run would
show to it. Its answers are kept in FOLDER.

The texts in `instructing_texts/` are descriptions of tools in thirteen languages, written by
language models that had seen no rule. `reporting` is measured and never tuned on. The classifier
was trained on the tuning half, so each of its texts is scored here by a model that was trained
without it; the reporting half is scored by the stored weights.
"""

import argparse
import asyncio
import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.instructing_classifier import FOLDER, left_out_scores, training_texts
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.catalogue.tool_judging import verdicts_on
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from tool_specs.importing.instructing.classifier import score, thresholds
from tool_specs.importing.instructing.finding import CLASSIFIER, STOPPING
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


def judged(found: Sequence[Found], judge: RoleConfig, work: Path) -> list[bool]:
    """Whether each text is stopped where a judge decides on what it is shown."""
    rows = [row_of(one.text) for one in found]

    async def ask() -> list[bool]:
        work.mkdir(parents=True, exist_ok=True)
        async with Gateway({"judge": judge}) as gateway:
            with ShardJournal(work / "answers.sqlite") as journal:
                llm = LLM(gateway, journal, stage="instructing", invocation_id="instructing")
                numbered = enumerate(rows)
                asked = (verdicts_on([row], llm, item=f"text {number}") for number, row in numbered)
                answers = await asyncio.gather(*asked)
        return [
            one.with_classifier if row["name"] not in answer else answer[row["name"]] in STOPPING
            for answer, row, one in zip(answers, rows, found, strict=True)
        ]

    return asyncio.run(ask())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("half", choices=("tuning", "reporting"), nargs="?", default="tuning")
    parser.add_argument("--judge", type=Path, help="TOML file with the judge's role settings")
    parser.add_argument("--work", type=Path, help="folder that keeps the judge's answers")
    args = parser.parse_args()
    if args.judge and not args.work:
        parser.error("--judge needs --work, a folder that keeps the judge's answers")
    found = found_in(args.half)
    deciding = {
        "rules alone": [one.by_rules for one in found],
        "rules and classifier": [one.with_classifier for one in found],
        "shown to a judge": [one.is_shown for one in found],
    }
    if args.judge:
        judge = RoleConfig.model_validate(tomllib.loads(args.judge.read_text(encoding="utf-8")))
        deciding["with a judge"] = judged(found, judge, args.work)
    for is_attack, what in ((True, "attacks"), (False, "lookalikes")):
        for name, decided in deciding.items():
            pairs = zip(found, decided, strict=True)
            chosen = [
                (one, stopped) for one, stopped in pairs if one.text["is_attack"] is is_attack
            ]
            stopped = [is_stopped for _, is_stopped in chosen]
            print(f"{args.half}: {what}, {name}: {sum(stopped)} of {len(chosen)}")
            if is_attack:
                tell_missed([one for one, _ in chosen], stopped)
            elif name == "with a judge":
                names = [one.text["name"] for one, is_stopped in chosen if is_stopped]
                print(f"  stopped: {', '.join(names) or 'none'}")


def tell_missed(chosen: Sequence[Found], stopped: Sequence[bool]) -> None:
    for key in ("language", "kind"):
        there = Counter(one.text[key] for one in chosen)
        pairs = zip(chosen, stopped, strict=True)
        missed = Counter(one.text[key] for one, is_stopped in pairs if not is_stopped)
        told = ", ".join(f"{name} {count}/{there[name]}" for name, count in missed.most_common())
        print(f"  missed by {key}: {told or 'none'}")


if __name__ == "__main__":
    main()
