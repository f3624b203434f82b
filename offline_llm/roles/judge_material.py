"""What a judge by rule knows of an episode: who said what, what calls did, what values stand."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from offline_llm.reading.filling import Words
from offline_llm.reading.reading import mentions, today_of
from offline_llm.reading.reckoning import reckoned
from offline_llm.reading.results import error_of
from offline_llm.reading.sections import data, json_of
from offline_llm.reading.words import plain, stem_set


@dataclass(frozen=True)
class Line:
    """One thing that happened: `kind` is user, agent, call or result."""

    kind: str
    text: str
    tool: str = ""
    failed: bool = False


@dataclass(frozen=True)
class JudgedMaterial:
    """The sections of a request for a judgement."""

    instructions: str
    tools: Sequence[dict[str, Any]]
    changes: Sequence[dict[str, Any]]
    lines: Sequence[Line]

    @classmethod
    def of(cls, read: dict[str, str]) -> "JudgedMaterial":
        return cls(
            str(data(read.get("instructions of the assistant", ""))),
            json_of(read, "tools of the assistant", []),
            json_of(read, "what the calls changed", []),
            _lines(json_of(read, "transcript", [])),
        )

    def texts(self, kind: str) -> list[str]:
        return [line.text for line in self.lines if line.kind == kind]

    @cached_property
    def known(self) -> str:
        """What anybody but the assistant said or did, in lower case."""
        return " ".join(self._known_parts)

    @cached_property
    def words(self) -> frozenset[str]:
        """Their stems."""
        return stem_set(*self._known_parts)

    @cached_property
    def _known_parts(self) -> list[str]:
        parts = (json.dumps(part, ensure_ascii=False) for part in (self.tools, self.changes))
        said = (*self.texts("user"), *self.texts("result"), self.instructions, *parts)
        return [part for part in map(_in_lower_case, said) if part]

    @cached_property
    def returned(self) -> frozenset[str]:
        """Stems of what tools returned."""
        return stem_set(*map(plain, self.texts("result")))

    @cached_property
    def today(self) -> str:
        return today_of(self.instructions)

    @cached_property
    def reckoned(self) -> frozenset[str]:
        """The answers to what the user asks that needs no tool."""
        return frozenset(reckoned(Words(text, self.today)) for text in self.texts("user"))

    @cached_property
    def days(self) -> frozenset[str]:
        """Dates that stand somewhere, as in 2026-03-04."""
        said = (m.text[:10] for text in self.texts("user") for m in mentions(text, self.today))
        return frozenset(re.findall(r"\d{4}-\d\d-\d\d", self.known)).union(said)

    @cached_property
    def outcomes(self) -> list[tuple[int, Line]]:
        """Calls, as failed as their results, each with the place of its result."""
        pending: list[Line] = []
        kept: list[tuple[int, Line]] = []
        for place, line in enumerate(self.lines):
            if line.kind == "call":
                pending.append(line)
            elif line.kind == "result" and pending:
                kept.append((place, replace(pending.pop(0), failed=line.failed)))
        return kept


@lru_cache(maxsize=1024)
def _in_lower_case(text: str) -> str:
    """In lower case, with single spaces; the same tools and instructions come again and again."""
    return " ".join(text.replace("_", " ").replace("\\", "").split()).casefold()


def _lines(entries: list[dict[str, Any]]) -> list[Line]:
    lines: list[Line] = []
    for entry in entries:
        role, text, calls = entry["role"], _text(entry.get("content", "")), entry.get("calls", [])
        kind = {"tool": "result", "user": "user"}.get(role, "agent")
        if text and not calls:  # beside calls it thinks aloud
            lines.append(Line(kind, text, failed=kind == "result" and bool(error_of(text))))
        lines += [Line("call", _text(call["arguments"]), tool=call["name"]) for call in calls]
    return lines


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
