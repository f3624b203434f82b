"""What the layers of fidelity find, and what they take for a change by mistake.

    python benchmarks/bench_fidelity.py [--half tune|report] [--seed 0] [--show] [--markdown]

Faithful rewrites are the controls: pairs written by hand (`fidelity_pairs.md`), translations by
hand (`fidelity_translations.md`), and what the offline rewriter, with its mistakes switched off,
makes of CPython's topics and of the set of mathematics. A control that a verdict drops is a false
alarm. Each control that is kept is then spoiled in one place by each planter of
`synth/rephrasing/fidelity/corruptions.py`, and counts as found when the verdict drops it. Passages
fall into two halves by the digest of their source: thresholds were chosen on `tune`, the figures
that are kept come from `report`. Also prints the speed of all layers together. 95% intervals are
Wilson's. The offline rewriter is the offline model: its words are easier to follow than a model's.

What is found here drops a rewrite only if `fidelity.drop_for` names it; else it is a hint for the
judge. Texts by other minds, and the judge, are measured by `python -m benchmarks.rewrites`.
"""

import argparse
import json
import pydoc_data.topics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.settings.rates import RewriterErrors
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of, share_of
from synth.prompts.templates import render
from synth.render.intervals import wilson
from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.fidelity.checks import Fidelity, TextKind, fidelity_of, reasons_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.corruptions import CORRUPTORS, foreign_sentence
from synth.rephrasing.sources.built_in import MathsProblems
from synth.rephrasing.writing.answers import parts_in
from synth.rephrasing.writing.instructions import LEARNING_NOTES, instruction, instructions

PAIRS = Path(__file__).with_name("fidelity_pairs.md")
NO_MISTAKES = OfflineSettings(
    rewriter_errors=RewriterErrors(**dict.fromkeys(RewriterErrors.model_fields, 0.0))
)
TRANSLATIONS = Path(__file__).with_name("fidelity_translations.md")
PASSAGE_WORDS = (60, 250)
"""Of a passage of CPython's topics."""


class Case(NamedTuple):
    group: str
    kind: TextKind
    source: str
    rewrite: str
    answer: str | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["tune", "report"], default="report")
    parser.add_argument("--seed", type=int, default=0, help="other places are spoiled")
    parser.add_argument("--show", action="store_true", help="print what is missed or mistaken")
    parser.add_argument("--markdown", action="store_true", help="print tables for people")
    given = parser.parse_args()
    everything = [*by_hand(), *topics(), *mathematics()]
    cases = [case for case in everything if half_of(case) == given.half]
    kept, alarms = controls(cases, show_all=given.show)
    found = spoiled(kept, seed=given.seed, show_all=given.show)
    rows = [*alarm_rows(cases, alarms), *detection_rows(found)]
    for row in rows:
        show({"half": given.half, **row})
    show({"measurement": "speed", **speed(everything)})
    if given.markdown:
        print(table(rows))
        print(layer_table(len(cases), alarms, found))


def half_of(case: Case) -> str:
    return "tune" if share_of(case.source, "half") < 0.5 else "report"


def by_hand() -> Iterator[Case]:
    for part in PAIRS.read_text(encoding="utf-8").split("\n## ")[1:]:
        _genre, _, body = part.partition("\n")
        source, _, rewrite = body.partition("\n---\n")
        yield Case("by hand", "knowledge", source.strip(), rewrite.strip())


def topics(most: int = 150) -> Iterator[Case]:
    """Passages of prose of CPython's language reference, each in a style of its own."""
    styles = list(instructions("styles").values())
    views = list(instructions("perspectives").values())
    passages = [p for text in pydoc_data.topics.topics.values() for p in passages_of(text)]
    for number, passage in enumerate(sorted(set(passages))[:: max(1, len(passages) // most)]):
        style, view = styles[number % len(styles)], views[number % len(views)]
        yield Case("topics", "knowledge", passage, rewritten(passage, style.text, view.text))


def passages_of(text: str) -> Iterator[str]:
    low, high = PASSAGE_WORDS
    passage: list[str] = []
    for paragraph in [*ReadText(text).paragraphs, ""]:
        words = len(paragraph.split())
        if sum(len(p.split()) for p in passage) + words > high or words < 8:
            if sum(len(p.split()) for p in passage) >= low:
                yield "\n\n".join(passage)
            passage = []
        if words >= 8:
            passage.append(paragraph)


def mathematics() -> Iterator[Case]:
    """English problems as learning notes by rule, and others with a translation by hand."""
    notes = instruction("maths", LEARNING_NOTES).text
    parts = TRANSLATIONS.read_text(encoding="utf-8").split("\n## ")[1:]
    translations = {name: text.strip() for name, _, text in (p.partition("\n") for p in parts)}
    for _place, text in MathsProblems().texts():
        name = text.name.removeprefix("maths:")
        if text.language == "en":
            rewrite = rewritten(text.text, notes, "")
            yield Case("learning notes", "maths", text.text, rewrite, text.answer)
        elif name in translations:
            yield Case("translations", "maths", text.text, translations[name], text.answer)


def rewritten(part: str, style: str, perspective: str) -> str:
    given = {"style": style, "perspective": perspective, "asked": "part 1"}
    near = dict.fromkeys(("source", "before", "after", "kept", "written"), "")
    parts = [{"number": 1, "text": part}]
    messages = render("rewrite_chunk", **given, **near, parts=parts).messages
    request = parse_chat({"model": "offline-model", "messages": messages})
    answer = answer_of(request, NO_MISTAKES).content
    return parts_in(answer, {1: part}).get(1, answer)


def measured(case: Case, rewrite: str) -> Fidelity:
    language = "en" if case.group == "translations" else None
    return fidelity_of(case.source, rewrite, kind=case.kind, language=language, answer=case.answer)


def found_in(case: Case, rewrite: str) -> list[str]:
    """All but `copied`: what is too close to its source is faithful all the same."""
    reasons = reasons_of(measured(case, rewrite).columns(), FidelityConfig())
    return [reason for reason in reasons if reason != "copied"]


def controls(cases: list[Case], *, show_all: bool) -> tuple[list[Case], dict[str, Counter[str]]]:
    """Those that are kept, and why the others are not, by group."""
    kept: list[Case] = []
    alarms: dict[str, Counter[str]] = {case.group: Counter() for case in cases}
    for case in cases:
        reasons = found_in(case, case.rewrite)
        alarms[case.group].update(reasons)
        if reasons:
            alarms[case.group]["any"] += 1
            if show_all:
                print("ALARM", case.group, explained(case, case.rewrite, reasons))
        else:
            kept.append(case)
    return kept, alarms


def spoiled(
    kept: list[Case], *, seed: int, show_all: bool
) -> dict[tuple[str, str], list[list[str]]]:
    """The reasons given for each spoiled control, by group and kind."""
    others = [case.source for case in kept if case.group == "by hand"]
    corruptors = CORRUPTORS | {"foreign_sentence": partial(foreign_sentence, others=others)}
    found: dict[tuple[str, str], list[list[str]]] = {}
    for case in kept:
        for kind, corruptor in corruptors.items():
            corrupted = corruptor(case.rewrite, rng_of(case.source, f"plant:{kind}", seed))
            if corrupted is None or corrupted.text == case.rewrite:
                continue
            reasons = found_in(case, corrupted.text)
            found.setdefault((case.group, kind), []).append(reasons)
            if show_all and not reasons:
                print("MISSED", case.group, kind, corrupted.what)
    return found


def explained(case: Case, rewrite: str, reasons: list[str]) -> str:
    columns = measured(case, rewrite).columns()
    telling = ("numbers", "units", "dates", "names", "quotations", "conflicts", "maths")
    return json.dumps({"reasons": reasons} | {k: columns[k] for k in telling}, ensure_ascii=False)


def alarm_rows(cases: list[Case], alarms: dict[str, Counter[str]]) -> Iterator[dict[str, Any]]:
    sizes = Counter(case.group for case in cases)
    for group, n in sizes.items():
        hits = alarms[group]["any"]
        by = {reason: count for reason, count in alarms[group].most_common() if reason != "any"}
        yield {"measurement": "false alarms", "group": group, **rate(hits, n), "by": by}


def detection_rows(found: dict[tuple[str, str], list[list[str]]]) -> Iterator[dict[str, Any]]:
    for (group, kind), reasons in sorted(found.items()):
        by = Counter(reason for given in reasons for reason in given)
        row = {"measurement": "detection", "group": group, "kind": kind}
        yield {**row, **rate(sum(map(bool, reasons)), len(reasons)), "by": dict(by.most_common(4))}


def layer_table(
    n: int, alarms: dict[str, Counter[str]], found: dict[tuple[str, str], list[list[str]]]
) -> str:
    """Each reason by itself, over all groups: share of the controls and of each planted kind."""
    kinds = sorted({kind for _group, kind in found})
    given = {k: [r for key, rs in found.items() if key[1] == k for r in rs] for k in kinds}
    mistaken = sum(alarms.values(), Counter[str]())
    names = {reason for lists in given.values() for r in lists for reason in r} | mistaken.keys()
    head = ["reason", f"false alarms ({n})", *(f"{k} ({len(given[k])})" for k in kinds)]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(kinds) + 1)}"]
    for name in sorted(names - {"any"}):
        shares = [sum(name in r for r in given[k]) / len(given[k]) for k in kinds]
        cells = [f"{mistaken[name] / n:.3f}", *(f"{s:.2f}" if s else "" for s in shares)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rate(hits: int, n: int) -> dict[str, Any]:
    low, high = wilson(hits, n)
    share = round(hits / n, 3) if n else None
    return {"n": n, "hits": hits, "rate": share, "interval": [round(low, 3), round(high, 3)]}


def speed(cases: list[Case]) -> dict[str, Any]:
    """MB of source and rewrite together, a second of one core, over all layers of code."""
    size = sum(len(case.source.encode()) + len(case.rewrite.encode()) for case in cases)
    start = time.process_time()
    for case in cases:
        measured(case, case.rewrite)
    seconds = time.process_time() - start
    return {"mb": round(size / 1e6, 3), "mb_per_s": round(size / 1e6 / seconds, 2)}


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| group | planted | n | found | share | 95% interval (Wilson) | by |"]
    lines.append("|---|---|---:|---:|---:|---|---|")
    for row in rows:
        low, high = row["interval"]
        by = ", ".join(f"{reason} {count}" for reason, count in row["by"].items())
        lines.append(
            f"| {row['group']} | {row.get('kind', 'nothing')} | {row['n']} | {row['hits']} |"
            f" {row['rate']:.3f} | {low:.3f} to {high:.3f} | {by} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
