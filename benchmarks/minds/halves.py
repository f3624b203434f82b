"""The two halves of the benchmark: one to develop with, one that is opened for reporting only.

A half is a file of JSON lines, `{"writer", "scene", "endings"}` each. The reporting half is
compressed, so that nobody reads it in passing, and its digest was committed before the checks that
it measures were written. Every opening is noted with commit and date in `openings.jsonl`.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from benchmarks.minds.pieces import Piece
from records.errors import ConfigError

Half = Literal["development", "reporting"]

FOLDER = Path(__file__).parent
DEVELOPMENT = FOLDER / "development.jsonl"
REPORTING = FOLDER / "reporting.jsonl.xz"
DIGEST = FOLDER / "reporting.sha256"
OPENINGS = FOLDER / "openings.jsonl"


def pieces_in(half: Half) -> list[Piece]:
    """Every piece of a half, by name. ConfigError where the reporting half is not the one whose
    digest was committed."""
    if half == "development":
        return _pieces(DEVELOPMENT.read_text(encoding="utf-8"))
    text = lzma.decompress(REPORTING.read_bytes()).decode()
    found, committed = digest_of(text), DIGEST.read_text(encoding="utf-8").split()[0]
    if found != committed:
        raise ConfigError(f"{REPORTING.name} has the digest {found}, not the committed {committed}")
    return _pieces(text)


def note_opening(commit: str | None, judge: str) -> None:
    """Append that the reporting half was opened, by which commit, for which judge."""
    at = datetime.now(UTC).replace(microsecond=0).isoformat()
    with OPENINGS.open("a", encoding="utf-8") as handle:
        handle.write(json.dumps({"at": at, "commit": commit, "judge": judge}) + "\n")


def written(scenes: Iterable[dict[str, Any]]) -> str:
    """The text of a half's file: one scene with its endings a line."""
    return "".join(json.dumps(s, ensure_ascii=False, sort_keys=True) + "\n" for s in scenes)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _pieces(text: str) -> list[Piece]:
    scenes = [json.loads(line) for line in text.splitlines()]
    pieces = [Piece(s["scene"], ending, s["writer"]) for s in scenes for ending in s["endings"]]
    return sorted(pieces, key=lambda piece: piece.name)
