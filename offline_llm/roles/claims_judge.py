"""The judge of claims, by rule: whether a text says each of some sentences, and where.

It compares words, numbers and negations with the sentence of the text that shares most with it.
What is put in wholly other words it takes for absent, and on top of that it errs at declared rates.
"""

import re
from typing import Any

from offline_llm.reading.sections import data, json_of, sections
from offline_llm.reading.words import found, sentences, stem_set
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(r"\b(?:not|never|cannot|no|none|nobody|nothing|without|\w+n't)\b", re.I)
_SAID = 0.2
"""Share of a sentence's stems from which on the text says it."""
_SAME = 0.8
"""From here on a negation on one side only contradicts."""
_QUOTED = 12
"""Words of a quotation."""


def judge_claims(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    text = str(data(read.get("text", "")))
    lines = [clause for line in sentences(text) for clause in re.split(r"(?<=;)\s+", line)]
    verdicts = []
    for name, sentence in json_of(read, "sentences", {}).items():
        verdict, line = _decided(str(sentence), lines, text)
        rng = rng_of(request.key, f"claims:{name}")
        errors = settings.claims_errors
        if rng.random() < (errors.blames if verdict == "said" else errors.misses):
            verdict = "absent" if verdict == "said" else "said"
        quote = "" if verdict == "absent" else " ".join(line.split()[:_QUOTED])
        verdicts.append({"id": name, "verdict": verdict, "quote": quote})
    return {"verdicts": verdicts}


def _decided(sentence: str, lines: list[str], text: str) -> tuple[str, str]:
    """(verdict, the line of the text that decides it)."""
    wanted = stem_set(sentence)
    if not lines:
        return "absent", text
    scores = [_shared(wanted, stem_set(*lines[max(0, i - 1) : i + 2])) for i in range(len(lines))]
    alone = [_shared(wanted, stem_set(line)) for line in lines]
    best = max(range(len(lines)), key=lambda i: (scores[i] + alone[i], -i))
    numbers = {n.replace(",", "") for n in _NUMBER.findall(sentence)}
    strange = numbers - {n.replace(",", "") for n in _NUMBER.findall(text)}
    if not wanted:
        return "said", lines[0]
    if scores[best] < _SAID or (strange and alone[best] < _SAME):
        return "absent", lines[best]
    denied = len(_NEGATION.findall(sentence)) % 2 != len(_NEGATION.findall(lines[best])) % 2
    if strange or (alone[best] >= _SAME and denied):
        return "contradicted", lines[best]
    return "said", lines[best]


def _shared(wanted: frozenset[str], known: frozenset[str]) -> float:
    return sum(found(word, known) for word in wanted) / max(1, len(wanted))
