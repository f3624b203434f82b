"""Faults in replies, by rule: written into one, looked for in two endings, and none put in where a
reply is to be told in other words. It finds no place for kinds that no rule is told of."""

import json
import re
from pathlib import Path
from typing import Any

from offline_llm.reading.sections import data, json_of, sections
from offline_llm.reading.words import sentences
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings

_RULES = [json.loads(x) for x in Path(__file__).with_suffix(".jsonl").read_text().splitlines()]
"""Words of a fault, and the answer with places for parts of the reply. None reads the material."""
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
_FEW = 3
"""Words below which a sentence says nothing."""


def write_fault(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    reply = str(data(read.get("reply to edit", "")))
    wanted = str(json_of(read, "fault", {}).get("fault", ""))
    rule = next((rule for rule in _RULES if rule["words"] in wanted), {"reply": "", "wrong": ""})
    found = _FIGURE.search(reply)
    start, end = found.span() if found else (0, 0)
    figure, before, after = reply[start:end], reply[:start], reply[end:]
    other = figure[:-1] + str((int(figure[-1:] or 0) + 1) % 10)
    parts = {"reply": reply.rstrip(), "half": reply[: len(reply) // 2].rstrip(), "figure": figure}
    parts |= {"first": next(iter(sentences(reply)), ""), "other": other}
    parts |= {"changed": before + other + after, "either": f"{before}{figure} or {other}{after}"}
    parts["wrong"] = rule["wrong"].format(**parts)
    made = {n: rule.get(n, "").format(**parts) for n in ("result", "reply", "wrong")}
    has_place = bool(made["reply"]) and (found is not None or "{other}" not in rule["wrong"])
    return {"why": "nothing shows it", "has_place": has_place} | made


def paraphrase(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    return {"reply": f"Certainly. {data(sections(request).get('reply', ''))}"}


def second_reading(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    """The ending that bears out less of the same words, said more, said much less, or tells a
    figure that stands nowhere else."""
    read = sections(request)
    endings = [json_of(read, f"ending {name}", {}).get("transcript", []) for name in "ab"]
    told = [
        " ".join(str(e.get("content")) for e in ending if e.get("role") == "assistant")
        for ending in endings
    ]
    seen = [
        read.get("beginning", "") + json.dumps([e for e in one if e.get("role") != "assistant"])
        for one in endings
    ]
    known = "".join(seen)
    own = [[s for s in sentences(text) if s not in sentences(told[1 - i])]
           for i, text in enumerate(told)]  # fmt: skip
    own = [[s for s in lines if len(s.split()) >= _FEW] for lines in own]
    words = [word.strip(".,") for word in told[0].split()]
    lacks = [(text.count("error"), sum(word not in text for word in words)) for text in seen]
    found: tuple[int, str] | None = None
    if told[0] == told[1] and lacks[0] != lacks[1]:
        found = lacks.index(max(lacks)), told[0]
    elif bool(own[0]) != bool(own[1]):
        faulty = 0 if own[0] else 1
        found = faulty, own[faulty][-1]
    elif all(own):
        strange = [any(f not in known for f in _FIGURE.findall(" ".join(s))) for s in own]
        lengths = [len(text) for text in told]
        faulty = strange.index(True) if sum(strange) == 1 else lengths.index(min(lengths))
        found = faulty, own[faulty][0]
    name = "neither" if found is None else "ab"[found[0]]
    return {"evidence": "by what only one says", "quote": found[1] if found else "", "faulty": name}
