"""The judge: each criterion by rule from its words and the transcript, plus declared errors.

Values that a criterion names must stand where they count: in the assistant's words when something
had to be said, in calls and their results when something had to be done.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from records.seeds import rng_of
from synth.offline.reading import Mention, mentions
from synth.offline.request import ChatRequest
from synth.offline.results import error_of
from synth.offline.sections import data, json_of, sections
from synth.offline.settings import OfflineSettings
from synth.offline.words import found, plain, sentences, stem_set, stems

_AVOIDS = re.compile(
    r"\b(?:no|not|never|nothing|without|none|neither|refus\w+|declin\w+)\b|n't\b", re.IGNORECASE
)
_SAYS = re.compile(
    r"\b(?:tells?|told|says?|said|inform\w*|mention\w*|report\w*|explain\w*|communicat\w*|answers?"
    r"|learns?|names?|asks?|state[sd]?|gives? the user)\b",
    re.IGNORECASE,
)
_MANNER = re.compile(r"\b(?:polite|clear|concise|tone|style|plain|friendly|readable|help)", re.I)
_RULES = re.compile(r"\b(?:rules?|polic(?:y|ies))\b", re.IGNORECASE)
_REFUSES = re.compile(r"\bsays? clearly that\b.*\b(?:not|no)\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:sorry|cannot|can't|unable|not able|not allowed|not possible|no way|may not|must not"
    r"|won't|will not|do not have)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"(?:^|(?<=[.;])\s+)Nothing else\b[^.]*\.")
"""A frame around what was to be done; nobody sees from a transcript what else has changed."""
_EVIDENCE = 300
"""Characters of the transcript quoted as evidence at most."""


@dataclass(frozen=True)
class Line:
    """One thing that happened: `kind` is user, agent, call or result."""

    kind: str
    text: str
    failed: bool = False


def judge(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    lines = transcript(data(read.get("transcript", "")))
    verdicts = []
    for criterion in json_of(read, "rubric", []):
        words, name = str(criterion.get("words", "")), str(criterion.get("criterion_id", ""))
        aspect = aspect_of(words)
        passed, evidence = decide(aspect, words, lines)
        rates = settings.judge_errors.false_reject if passed else settings.judge_errors.false_accept
        if rng_of(request.key, f"judge:{name}").random() < getattr(rates, aspect):
            passed, evidence = not passed, _last_words(lines)
        verdicts.append({"criterion_id": name, "passed": passed, "evidence": evidence[:_EVIDENCE]})
    return {"verdicts": verdicts}


def aspect_of(words: str) -> str:
    """did, said, avoided or other: what kind of thing a criterion asks about."""
    words = _ASIDE.sub("", words)
    if _REFUSES.search(words):
        return "said"
    if _AVOIDS.search(words):
        return "avoided"
    if _SAYS.search(words):
        return "said"
    return "other" if _MANNER.search(words) else "did"


def transcript(value: Any) -> list[Line]:
    """Lines of a transcript given as messages, as objects of another form, or as plain text."""
    if isinstance(value, str):
        return [_plain_line(line) for line in value.splitlines() if line.strip()]
    lines: list[Line] = []
    for entry in value if isinstance(value, list) else []:
        if not isinstance(entry, dict):
            lines.append(_plain_line(str(entry)))
            continue
        role = str(entry.get("role") or entry.get("who") or entry.get("from") or "")
        text = entry.get("content") or entry.get("text") or entry.get("says") or ""
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        kind = _kind(role, entry)
        if text:
            lines.append(Line(kind, text, kind == "result" and bool(error_of(text))))
        for call in entry.get("tool_calls") or entry.get("calls") or []:
            shown = call.get("function", call) if isinstance(call, dict) else call
            lines.append(Line("call", json.dumps(shown, ensure_ascii=False)))
    return lines


def _kind(role: str, entry: dict[str, Any]) -> str:
    if role in ("tool", "result") or "tool_call_id" in entry:
        return "result"
    return "user" if role in ("user", "person") else "call" if role == "call" else "agent"


def _plain_line(line: str) -> Line:
    head, _, rest = line.partition(":")
    return Line(_kind(head.strip().lower(), {}), rest.strip() or line)


def decide(aspect: str, words: str, lines: list[Line]) -> tuple[bool, str]:
    words = _ASIDE.sub("", words)
    if _REFUSES.search(words):
        refusals = [x for x in lines if x.kind == "agent" and _REFUSAL.search(x.text)]
        return bool(refusals), refusals[-1].text if refusals else _last_words(lines)
    if _RULES.search(words) and aspect == "did":
        return True, _last_words(lines)  # no rule can be seen broken without reading its sense
    told, _, of = words.partition(" (of:")
    if aspect == "said" and of:
        return _told(told.rpartition(":")[2], [line for line in lines if line.kind == "agent"])
    wanted = [m for m in mentions(words, "") if m.kind != "name" or " " in m.text]
    if aspect == "said":
        return _all_in(wanted, words, [line for line in lines if line.kind == "agent"])
    if aspect == "did":
        return _all_in(wanted, words, _effects(lines))
    if aspect == "avoided":
        return _nothing_of(words, lines)
    last = _last_words(lines)
    return bool(last) and not last.lstrip().startswith(("{", "[", "<")), last


def _effects(lines: list[Line]) -> list[Line]:
    """Calls that succeeded and what they returned."""
    kept: list[Line] = []
    pending: list[Line] = []
    for line in lines:
        if line.kind == "call":
            pending.append(line)
        elif line.kind == "result":
            call = pending.pop(0) if pending else None
            if not line.failed:
                kept += [call, line] if call else [line]
    return kept


def _all_in(wanted: list[Mention], words: str, lines: list[Line]) -> tuple[bool, str]:
    """Every named value stands in the lines; with none named, most of the words do."""
    if not wanted:
        return _words_in(words, lines)
    evidence = ""
    for mention in wanted:
        line = next((line for line in lines if _stands_in(mention, line.text)), None)
        if line is None:
            return False, f"nowhere: {mention.text}"
        evidence = evidence or _passage(line.text, mention)
    return True, evidence


def _told(labels: str, lines: list[Line]) -> tuple[bool, str]:
    """Each label, or most of its words, stands in the assistant's words."""
    evidence = ""
    for label in labels.split(";"):
        held, passage = _words_in(label, lines)
        if not held:
            return False, f"nowhere: {label.strip()}"
        evidence = evidence or passage
    return True, evidence


def _words_in(words: str, lines: list[Line]) -> tuple[bool, str]:
    wanted = stem_set(words) - stem_set("assistant agent user customer tool call told tells says")
    best, evidence = 0.0, ""
    for line in lines:
        present = stem_set(plain(line.text))
        share = sum(found(w, present) for w in wanted) / max(1, len(wanted))
        if share > best:
            best, evidence = share, line.text
    return best >= 0.4, evidence


def _nothing_of(words: str, lines: list[Line]) -> tuple[bool, str]:
    """No call that succeeded is of the kind that the words rule out."""
    ruled_out = set(stems(words))
    for line in _effects(lines):
        if line.kind != "call":
            continue
        name = re.search(r'"(?:name|tool)":\s*"([^"]+)"', line.text)
        own = stems(plain(name.group(1))) if name else ()
        if own and all(word in ruled_out for word in own):
            return False, line.text
    return True, _last_words(lines)


def _stands_in(mention: Mention, text: str) -> bool:
    said = mention.text.lower().removesuffix(":00")
    plain_text = text.lower().replace("_", " ")
    if said in text.lower() or said.replace("_", " ") in plain_text:
        return True
    others = mentions(text[:4000], "")
    return any(m.text.lower().startswith(said) or _equal(m.text, mention.text) for m in others)


def _equal(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def _passage(text: str, mention: Mention) -> str:
    for sentence in sentences(text):
        if mention.text.lower() in sentence.lower():
            return sentence
    return text


def _last_words(lines: list[Line]) -> str:
    return next((line.text for line in reversed(lines) if line.kind == "agent"), "")
