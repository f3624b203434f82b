"""Texts, faithful rewrites of them, and rewrites with one planted change: see README.md here."""

import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.measured import machine
from synth.rephrasing.fidelity.checks import TextKind

FOLDER = Path(__file__).parent
OPENINGS = FOLDER / "openings.jsonl"

REPORTING_SHA256 = "a57d651be02770a5350fb9afbdc4e6fe3b2d2b7f7c7d19ac928e9f5a755246c4"
"""Of the half that is only reported on, committed before any check was changed."""

EXACT = frozenset(("number", "unit", "date", "name", "quotation", "formula", "code"))
"""Kinds of changes that code is to find; of all others the meaning is another one."""

NOTES = "learning_notes"
"""The style of mathematics."""

_MARK = re.compile(r"@@ (source|rewrite|changed|part)\b(.*)")

Half = Literal["tuning", "reporting"]


class RewrittenPart(NamedTuple):
    """A part of a document with a rewrite of it."""

    document: str
    part: int
    genre: str
    language: str
    style: str
    source: str
    rewrite: str
    change: str | None
    """The kind of the planted change; None where the rewrite is faithful."""
    what: str
    """What the change is, in words."""

    @property
    def kind(self) -> TextKind:
        return "maths" if self.style == NOTES else "knowledge"


def texts_of(half: Half) -> list[RewrittenPart]:
    """All parts of a half. Opening the reporting half is noted; ValueError where it is another file
    than the one that was committed."""
    data = (FOLDER / f"{half}.txt").read_bytes()
    if half == "reporting":
        if (found := hashlib.sha256(data).hexdigest()) != REPORTING_SHA256:
            raise ValueError(f"reporting.txt has the digest {found}, not {REPORTING_SHA256}")
        opened = {"opened": time.strftime("%Y-%m-%d %H:%M"), "commit": machine()["commit"]}
        with OPENINGS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(opened) + "\n")
    return list(_parts(data.decode()))


def _parts(text: str) -> Iterator[RewrittenPart]:
    sources: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for what, said, parts in _sections(text):
        match what:
            case "source":
                document, genre, language = said
                about = {"document": document, "genre": genre, "language": language}
                sources[document] = about, parts
            case "rewrite":
                about, originals = sources[said[0]]
                for number, (source, rewrite) in enumerate(zip(originals, parts, strict=True)):
                    own = {"part": number, "style": said[1], "source": source, "rewrite": rewrite}
                    yield RewrittenPart(**about, **own, change=None, what="")
            case _:
                document, number, style, change, words = said
                about, originals = sources[document]
                [rewrite] = parts
                own = {"part": int(number), "style": style, "source": originals[int(number)]}
                yield RewrittenPart(**about, **own, rewrite=rewrite, change=change, what=words)


def _sections(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """(kind, what its line says, parts) of each section."""
    section: tuple[str, list[str], list[str]] | None = None
    for line in text.split("\n"):
        found = _MARK.fullmatch(line)
        if found is None:
            if section and section[2]:
                section[2][-1] += line + "\n"
        elif found[1] == "part":
            assert section is not None, "a part before any section"
            section[2].append("")
        else:
            if section:
                yield _stripped(section)
            section = found[1], [word.strip() for word in found[2].split("|")], []
    if section:
        yield _stripped(section)


def _stripped(section: tuple[str, list[str], list[str]]) -> tuple[str, list[str], list[str]]:
    what, said, parts = section
    return what, said, [part.strip("\n") for part in parts]
