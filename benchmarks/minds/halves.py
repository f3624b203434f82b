"""The two halves of the benchmark: one to develop with, one that is opened for reporting only.

A half is a file of JSON lines, `{"writer", "scene", "endings"}` each. The reporting half is
compressed, so that nobody reads it in passing. Its digest was committed after the words of the
criteria were written, and before a value of a reply was read by today's code (`AUTHORS.md`).
Every opening is noted with commit and date in `openings.jsonl`.
"""

import hashlib
import json
import lzma
from collections import Counter
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
USER_TURNS = FOLDER / "user_turns.jsonl.xz"
USER_TURNS_DIGEST = FOLDER / "user_turns.sha256"
OPENINGS = FOLDER / "openings.jsonl"


def pieces_in(half: Half) -> list[Piece]:
    """Every piece of a half, in a fixed order. ConfigError where the reporting half is not the one
    whose digest was committed."""
    if half == "development":
        return _pieces(DEVELOPMENT.read_text(encoding="utf-8"))
    return _pieces(_opened(REPORTING, DIGEST))


def user_turns() -> dict[str, Any]:
    """`{"turns": [...]}`: turns of simulated users by another mind. ConfigError as above."""
    text = _opened(USER_TURNS, USER_TURNS_DIGEST)
    return {"turns": [json.loads(line) for line in text.splitlines()]}


def note_opening(commit: str | None, what: str, judge: str) -> None:
    """Append what was opened for reporting, by which commit, for which judge."""
    at = datetime.now(UTC).replace(microsecond=0).isoformat()
    with OPENINGS.open("a", encoding="utf-8") as handle:
        handle.write(json.dumps({"at": at, "commit": commit, "of": what, "judge": judge}) + "\n")


def written(scenes: Iterable[dict[str, Any]]) -> str:
    """The text of a half's file: one scene with its endings a line."""
    return "".join(json.dumps(s, ensure_ascii=False, sort_keys=True) + "\n" for s in scenes)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _opened(path: Path, digest: Path) -> str:
    text = lzma.decompress(path.read_bytes()).decode()
    found, committed = digest_of(text), digest.read_text(encoding="utf-8").split()[0]
    if found != committed:
        raise ConfigError(f"{path.name} has the digest {found}, not the committed {committed}")
    return text


def _pieces(text: str) -> list[Piece]:
    scenes = [json.loads(line) for line in text.splitlines()]
    pieces = [Piece(s["scene"], ending, s["writer"]) for s in scenes for ending in s["endings"]]
    # endings of one scene lie far apart, so that no judge compares them
    places: Counter[tuple[str, str]] = Counter()
    rounds: dict[str, int] = {}
    for piece in pieces:
        scene = (piece.writer, piece.scene["scene"])
        rounds[piece.name] = places[scene]
        places[scene] += 1
    return sorted(pieces, key=lambda piece: (rounds[piece.name], piece.name))
