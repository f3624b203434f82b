"""Near-duplicates among conversations: what user and agent say and what is called, without results.

Results come from the environment and are alike wherever two tasks look at the same rows. Of a group
the best by rank stays, so the order of rows changes nothing.
"""

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from synth.curation.candidates import CurationCandidate
from synth.matching.similarity import near_repeats, sketch
from synth.rubrics.reading.messages import text_of


def conversation_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """What is compared of a conversation."""
    lines = []
    for message in messages:
        if message["role"] not in ("user", "assistant"):
            continue
        lines.append(text_of(message))
        for call in message.get("tool_calls") or ():
            called = call["function"]
            lines.append(f"{called['name']} {called['arguments']}")
    return "\n".join(line for line in lines if line)


class Conversations:
    """Texts of conversations by trajectory. They wait in a file, since all of them would fill the
    memory, with a sketch of each at hand. Close it, or use it as a context."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        self._places: dict[str, tuple[int, int]] = {}
        self._sketches: dict[str, bytes] = {}

    def __enter__(self) -> "Conversations":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, trajectory_id: str, text: str) -> None:
        data = text.encode(errors="replace")
        self._places[trajectory_id] = (self._file.seek(0, 2), len(data))
        self._file.write(data)
        self._sketches[trajectory_id] = sketch(text)

    def text(self, trajectory_id: str) -> str:
        place, size = self._places[trajectory_id]
        self._file.seek(place)
        return self._file.read(size).decode()

    def repeats(self, ranked: Sequence[CurationCandidate], *, near: float) -> dict[str, str]:
        """Id of a conversation that repeats a better one -> the better one's. Those on code are
        left out, and so are those that were not added."""
        ids = [c.trajectory_id for c in ranked if c.bug_id is None]
        ids = [one for one in ids if one in self._places]
        sketches = [self._sketches[i] for i in ids]
        found = near_repeats(sketches, lambda n: self.text(ids[n]), near=near)
        return {ids[later]: ids[earlier] for later, earlier in found.items()}
