"""One way to number the messages and calls of a conversation that is shown.

Messages count from 1 as they stand on the page, results inside their calls: call 9.2 is the second
call of message 9. Checks count otherwise, each in its own way (`synth.rubrics`); their evidence is
told in the numbers of the page, which links then lead from.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from synth.render.transcript import ShownTurn


class LinkedPiece(NamedTuple):
    text: str
    anchor: str
    """Where it leads on the page; empty for the text between."""


def turn_anchor(turn: int) -> str:
    """`turn` counts from 0."""
    return f"message-{turn + 1}"


def call_anchor(turn: int, call: int) -> str:
    """Both count from 0."""
    return f"message-{turn + 1}-call-{call + 1}"


def call_words(turn: int, call: int, name: str) -> str:
    """`call 9.2 (find_boats)`; `turn` and `call` count from 0."""
    return f"call {turn + 1}.{call + 1} ({name})"


_CALL = re.compile(r"\bcall (\d+)\b")
_OF_THE_USER = re.compile(r"\bmessage (\d+) of the user\b")
_REPLY = re.compile(r"\breply (\d+)\b")
_MESSAGE = re.compile(r"\b(?:message|at) (\d+)\b")
_SHOWN = re.compile(r"\bcall (\d+)\.(\d+)\b|\bmessage (\d+)\b")


class PageNumbers:
    """The numbers of one conversation. `is_first`: whether its episode begins with it, so that
    messages that are counted over the whole episode are found in it."""

    def __init__(self, turns: Sequence[ShownTurn], *, is_first: bool = True) -> None:
        self._num_calls = [len(turn.calls) for turn in turns]
        self._calls = {
            made.call_index: call_words(t, c, made.name)
            for t, turn in enumerate(turns)
            for c, made in enumerate(turn.calls)
            if made.call_index is not None
        }
        numbered = list(enumerate(turns, 1)) if is_first else []
        self._users = [number for number, turn in numbered if turn.role == "user"]
        self._replies = [
            number
            for number, turn in numbered
            if turn.role == "assistant" and (turn.text.strip() or not turn.calls)
        ]
        self._places = {turn.place: number for number, turn in numbered}

    def told(self, kind: str, evidence: str) -> str:
        """What code found for a criterion of this kind, in the numbers of the page. What stands in
        another conversation of the episode says so."""
        match kind:
            case "economy" | "policy" | "fit":
                return _CALL.sub(self._call, evidence)
            case "call":
                of_user = self._counted(self._users, "message {} of the user")
                return _OF_THE_USER.sub(of_user, evidence)
            case "format":
                return _REPLY.sub(self._counted(self._replies, "reply {}"), evidence)
            case "turns":
                return _MESSAGE.sub(self._placed, evidence)
            case _:
                return evidence

    def linked(self, text: str) -> list[LinkedPiece]:
        """The text in pieces, of which those lead somewhere that name a message or a call."""
        pieces: list[LinkedPiece] = []
        end = 0
        for found in _SHOWN.finditer(text):
            if anchor := self._anchor(*found.groups()):
                pieces += [LinkedPiece(text[end : found.start()], "")]
                pieces += [LinkedPiece(found[0], anchor)]
                end = found.end()
        return [piece for piece in (*pieces, LinkedPiece(text[end:], "")) if piece.text]

    def _anchor(self, message: str | None, call: str | None, whole: str | None) -> str:
        number = _small(message or whole)
        if not 1 <= number <= len(self._num_calls):
            return ""
        if call is None:
            return turn_anchor(number - 1)
        is_there = 1 <= _small(call) <= self._num_calls[number - 1]
        return call_anchor(number - 1, _small(call) - 1) if is_there else ""

    def _call(self, found: re.Match[str]) -> str:
        return (
            self._calls.get(_small(found[1])) or f"another conversation's call (index {found[1]})"
        )

    def _placed(self, found: re.Match[str]) -> str:
        number = self._places.get(_small(found[1]))
        return f"message {number}" if number else f"index {found[1]} of the messages"

    @staticmethod
    def _counted(numbers: Sequence[int], otherwise: str) -> Callable[[re.Match[str]], str]:
        def told(found: re.Match[str]) -> str:
            nth = _small(found[1])
            is_known = 1 <= nth <= len(numbers)
            return f"message {numbers[nth - 1]}" if is_known else otherwise.format(found[1])

        return told


def _small(digits: str | None) -> int:
    """-1 for a number that is longer than any of a page."""
    return int(digits) if digits and len(digits) < 8 else -1
