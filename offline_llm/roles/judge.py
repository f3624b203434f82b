"""The judge: each criterion by rule from its words and the transcript, plus declared errors.

What had to be said must stand in the assistant's words, with no figure that neither a result nor
the user gave; what had to be done must show in a call that succeeded with arguments that somebody
gave; what had to be avoided must not show.
"""

import json
import re
from typing import Any

from offline_llm.reading.reading import mentions
from offline_llm.reading.results import error_of
from offline_llm.reading.sections import data, json_of, sections
from offline_llm.reading.toolbox import READ_VERBS
from offline_llm.reading.words import found, plain, sentences, stem, stem_set, stems
from offline_llm.roles.judge_manner import Line, effects, manner_fault, reads
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_AVOIDS = re.compile(
    r"\b(?:never|does not|do not|without calling|not called|nothing is changed by|no tool is)\b"
    r"|^(?:nothing|no)\b",
    re.IGNORECASE,
)
_SAYS = re.compile(r"\b(?:told|tells?|says?|said|informs?|answers?|names?|asks?|explains?)\b", re.I)
_DOES = re.compile(r"\b(?:done|does|changed|created|made|books?|sends?|calls?)\b", re.IGNORECASE)
_MANNER = re.compile(
    r"\b(?:polite|clear(?:ly)? and|last word|plain words|tone|style)\b", re.IGNORECASE
)
_DECLINES = re.compile(r"\b(?:will not|won't|no means|cannot|refus\w+|declin\w+)\b", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:sorry|cannot|can't|not able|unable|no way|no means|not allowed)\b", re.I
)
_EVIDENCE = 300
"""Characters of the transcript quoted as evidence at most."""


def judge(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    lines = transcript(data(read.get("transcript", "")))
    verdicts = []
    for criterion in json_of(read, "criteria", []):
        words, name = str(criterion.get("words", "")), str(criterion.get("criterion_id", ""))
        aspect = aspect_of(words)
        passed, evidence = decide(aspect, words, lines)
        rates = settings.judge_errors.false_reject if passed else settings.judge_errors.false_accept
        if rng_of(request.key, f"judge:{name}").random() < getattr(rates, aspect):
            passed, evidence = not passed, _last_words(lines)
        quote = evidence if any(evidence in x.text for x in lines) else _last_words(lines)
        said = {"quote": quote[:_EVIDENCE], "evidence": evidence[:_EVIDENCE]}
        verdicts.append({"criterion_id": name} | said | {"passed": passed})
    blame = {"evidence": "", "quote": "", "of": "none"}
    return {"statements": _statements(read, lines), "verdicts": verdicts, "cause": blame}


def _statements(read: dict[str, str], lines: list[Line]) -> list[dict[str, Any]]:
    """One finding for each statement: a claim of work that no call made is not shown."""
    told = [line.text for line in lines if line.kind == "agent"]
    heard = [line.text for line in lines if line.kind in ("user", "result")]
    fault = manner_fault(told, heard, sum(not reads(call) for call, _ in effects(lines)), "")
    found = []
    for statement in json_of(read, "statements of the assistant", []):
        says = str(statement.get("says", ""))
        amiss = fault is not None and (says in fault or fault in says)
        evidence = "no call made this" if amiss else "as the calls and results have it"
        found.append(
            {
                "id": str(statement.get("id", "")),
                "evidence": evidence,
                "quote": "",
                "finding": "not_shown" if amiss else "follows",
            }
        )
    return found


def aspect_of(words: str) -> str:
    """did, said, avoided or other: what kind of thing a criterion asks about."""
    head = words.split(":")[0]
    if _MANNER.search(head):
        return "other"
    for aspect, pattern in (("avoided", _AVOIDS), ("said", _SAYS), ("did", _DOES)):
        if pattern.search(head):
            return aspect
    return "other"


def transcript(value: Any) -> list[Line]:
    """Lines of a transcript given as messages, or as text with `who: words` on each line."""
    entries = value if isinstance(value, list) else str(value).splitlines()
    lines: list[Line] = []
    for entry in entries:
        if not isinstance(entry, dict):
            who, _, rest = str(entry).partition(":")
            entry = {"role": who.strip().lower(), "content": rest.strip()}
        role, text = str(entry.get("role", "")), entry.get("content") or ""
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        kind = {"tool": "result", "user": "user"}.get(role, "agent")
        if text:
            lines.append(Line(kind, text, failed=kind == "result" and bool(error_of(text))))
        for call in entry.get("tool_calls") or entry.get("calls") or []:
            made = call.get("function", call) if isinstance(call, dict) else {}
            lines.append(Line("call", str(made.get("arguments", "")), tool=str(made.get("name"))))
    return lines


def decide(aspect: str, words: str, lines: list[Line]) -> tuple[bool, str]:
    rest = re.sub(r"\(of: .*\)", "", words.partition(":")[2]).strip()
    if aspect == "said":
        if _DECLINES.search(words):
            line = next((x for x in lines if x.kind == "agent" and _REFUSES.search(x.text)), None)
            return line is not None, line.text if line else "nowhere refused"
        return _told(rest or words, lines)
    if aspect == "did":
        return _done(rest or words, lines)
    if aspect == "avoided":
        return _avoided(words, rest, lines)
    last = lines[-1] if lines else Line("user", "")
    if last.kind != "agent" or last.text.lstrip().startswith(("{", "[", "<")):
        return False, last.text
    told = [line.text for line in lines if line.kind == "agent"]
    heard = [line.text for line in lines if line.kind in ("user", "result")]
    fault = manner_fault(told, heard, sum(not reads(call) for call, _ in effects(lines)), words)
    return fault is None, fault or last.text


def _told(labels: str, lines: list[Line]) -> tuple[bool, str]:
    """A sentence of the assistant speaks of every label, and gives no figure of its own making."""
    known = " ".join(line.text for line in lines if line.kind in ("result", "user")).lower()
    evidence = ""
    for label in labels.split(";"):
        wanted = stem_set(label) - _FILL
        best, share = "", 0.0
        for line in lines:
            for sentence in sentences(line.text) if line.kind == "agent" else ():
                present = stem_set(plain(sentence))
                hits = sum(found(w, present) for w in wanted) / max(1, len(wanted))
                best, share = (sentence, hits) if hits > share else (best, share)
        if share < 0.5:
            return False, f"nothing on {label.strip()}"
        figures = [m.text for m in mentions(best, "") if m.kind in ("number", "id")]
        if any(f.lower() not in known for f in figures if len(f) > 1):
            return False, best
        evidence = evidence or best
    return True, evidence


_FILL = stem_set("user each number name")


def _done(goals: str, lines: list[Line]) -> tuple[bool, str]:
    """Each goal has a call of its own that succeeded, made with values that were given."""
    done, evidence = effects(lines), ""
    for goal in sentences(goals):
        if stems(goal)[:1] == (stem("nothing"),):
            continue
        call = max(done, key=lambda pair: _likeness(pair[0], goal), default=None)
        if call is None or _likeness(call[0], goal) < 0.5:
            return False, f"no call for: {goal}"
        if alien := _alien(call[0], lines):
            return False, f"{alien} comes from nowhere"
        evidence = evidence or f"{call[0].tool}: {call[1].text}"
    return True, evidence


def _likeness(call: Line, goal: str) -> float:
    """Share of the words of the tool's name that the goal has; what only looks counts less."""
    own, said = stems(plain(call.tool)), stem_set(goal)
    share = sum(found(word, said) for word in own) / max(1, len(own))
    return share * (0.8 if reads(call) and not READ_VERBS & said else 1.0)


def _alien(call: Line, lines: list[Line]) -> str:
    """A figure or date among the arguments that neither the user nor a result gave."""
    given = " ".join(x.text for x in lines if x.kind in ("user", "result"))
    known = {m.text[:10] for m in mentions(given[:20_000], "")} | set(re.findall(r"[\d.]+", given))
    for value in re.findall(r": (\d+(?:\.\d+)?|\"\d{4}-\d\d-\d\d[^\"]*\")", call.text):
        plain_value = value.strip('"')[:10]
        if plain_value not in known and plain_value.removesuffix(".0") not in known:
            return plain_value
    return ""


def _avoided(words: str, rest: str, lines: list[Line]) -> tuple[bool, str]:
    """No call that succeeded is of the kind that the words rule out."""
    ruled_out = stem_set(rest or words)
    for call, _ in effects(lines):
        wholly = re.search(r"(?i)^nothing|without calling any", words) and not rest
        wholly = wholly and not reads(call)
        if (
            wholly
            or call.tool in words
            or (rest and not reads(call) and _likeness(call, rest) >= 0.7)
        ):
            return False, f"{call.tool} {call.text}"
    return bool(lines) or not ruled_out, _last_words(lines)


def _last_words(lines: list[Line]) -> str:
    said = [line.text for line in lines if line.kind == "agent"] or [x.text for x in lines]
    return said[-1] if said else ""
