"""Faults in replies, by rule: written into one, looked for in two endings, and none put in where a
reply is to be told in other words. It knows a few kinds of faults and finds no place for others."""

import json
import re
from typing import Any

from offline_llm.reading.sections import data, json_of, sections
from offline_llm.reading.words import sentences
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings

_ADDED = {
    "further work": "I have also cancelled your older order.",
    "side effect": "I have also emailed you a summary.",
    "mocks": "Learn to read next time.",
}
"""Words of a fault -> what a reply that has it ends with."""
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
_FEW = 3
"""Words below which a sentence says nothing."""


def write_fault(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    reply = str(data(read.get("reply to edit", "")))
    wanted = str(json_of(read, "fault", {}).get("fault", ""))
    made = {"why": "no rule for this fault", "has_place": False, "result": "", "reply": ""}
    if added := next((text for words, text in _ADDED.items() if words in wanted), None):
        made |= {"why": "nothing shows it", "reply": f"{reply.rstrip()} {added}", "wrong": added}
    elif "number, amount" in wanted and (figure := _FIGURE.search(reply)):
        start, end = figure.span()
        other = figure[0][:-1] + str((int(figure[0][-1]) + 1) % 10)
        made |= {"why": f"not {figure[0]}", "reply": reply[:start] + other + reply[end:]}
        made["wrong"] = other
    return {"wrong": ""} | made | {"has_place": bool(made["reply"])}


def paraphrase(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    return {"reply": f"Certainly. {data(sections(request).get('reply', ''))}"}


def second_reading(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    """The ending that did less for the same words, said more, said much less, or tells a figure
    that stands nowhere else."""
    read = sections(request)
    endings = [json_of(read, f"ending {name}", {}).get("transcript", []) for name in "ab"]
    told = [
        " ".join(str(e.get("content")) for e in ending if e.get("role") == "assistant")
        for ending in endings
    ]
    known = read.get("beginning", "") + json.dumps(
        [e for ending in endings for e in ending if e.get("role") != "assistant"]
    )
    own = [[s for s in sentences(text) if s not in sentences(told[1 - i])]
           for i, text in enumerate(told)]  # fmt: skip
    own = [[s for s in lines if len(s.split()) >= _FEW] for lines in own]
    calls = [sum(len(e.get("calls", ())) for e in ending) for ending in endings]
    found: tuple[int, str] | None = None
    if not any(own) and calls[0] != calls[1]:
        found = calls.index(min(calls)), told[0]
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
