"""Controlled stochasticity: what a tool call comes to, drawn above whatever executes the tool.

A draw hangs on (episode seed, tool, arguments, how often this very call was made before), so it
does not depend on the order of parallel calls, and a retry is a draw of its own. Errors are put in
place of an execution, so they never touch state; the other kinds change what a read is seen to
return, and never befall a call that may write.
"""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from records.seeds import rng_of

OutcomeKind = Literal[
    "success",
    "transient_error",
    "rate_limit",
    "permission_denied",
    "empty",
    "partial",
    "stale",
    "malformed",
]

BEFORE_EXECUTION: frozenset[OutcomeKind] = frozenset(
    {"transient_error", "rate_limit", "permission_denied"}
)
"""The tool is not run: the caller only sees the error."""

READS_ONLY: frozenset[OutcomeKind] = frozenset({"empty", "partial", "stale", "malformed"})
"""An agent that is told too little about a write would do it twice."""


class FaultInjectionConfig(Config):
    weights: dict[OutcomeKind, float] = Field(
        default={
            "success": 0.915,
            "transient_error": 0.045,
            "rate_limit": 0.025,
            "permission_denied": 0.003,
            "empty": 0.003,
            "partial": 0.003,
            "stale": 0.003,
            "malformed": 0.003,
        }
    )
    """Relative frequency of each kind among the calls that can have it (`synth report` counts
    both): only reads come back changed. Most of the defaults are what an agent can get over
    by calling again: with five calls, three trajectories in ten meet at least one of them."""

    max_in_a_row: int = Field(default=2, ge=0)
    """Injected errors of one tool that may follow each other; the next call of it goes through."""

    @model_validator(mode="after")
    def _weights_are_a_distribution(self) -> "FaultInjectionConfig":
        if bad := {kind: w for kind, w in self.weights.items() if not 0 <= w < float("inf")}:
            raise ValueError(f"weights must be finite and not negative, got {bad}")
        if sum(self.weights.values()) <= 0:
            raise ValueError(f"weights must not all be 0, got {self.weights}")
        return self


class Draw(NamedTuple):
    kind: OutcomeKind
    rng: random.Random
    """For the form that the outcome takes; seeded like the draw itself."""


class FaultInjector:
    """The faults drawn for one episode."""

    def __init__(self, config: FaultInjectionConfig, seed: int) -> None:
        self._config = config
        self._seed = str(seed)
        self._made: dict[str, int] = {}
        self._errors_in_a_row: dict[str, int] = {}

    def draw(self, tool: str, arguments: Mapping[str, Any], *, read_only: bool) -> Draw:
        signature = digest(tool, arguments)
        index = self._made.get(signature, 0)
        self._made[signature] = index + 1
        rng = rng_of(self._seed, f"outcome:{signature}", index)
        kind = self._kind(rng, signature, index)
        in_a_row = self._errors_in_a_row.get(tool, 0)
        if kind in READS_ONLY and not read_only:
            kind = "success"
        if kind != "success" and in_a_row >= self._limit():
            kind = "success"
        self._errors_in_a_row[tool] = 0 if kind == "success" else in_a_row + 1
        return Draw(kind, rng)

    def _limit(self) -> float:
        return self._config.max_in_a_row

    def _kind(self, rng: random.Random, signature: str, index: int) -> OutcomeKind:
        kinds = sorted(self._config.weights)
        return rng.choices(kinds, [self._config.weights[kind] for kind in kinds])[0]

    def snapshot(self) -> dict[str, dict[str, int]]:
        return {"made": dict(self._made), "in_a_row": dict(self._errors_in_a_row)}

    def restore(self, snapshot: Mapping[str, Mapping[str, int]]) -> None:
        self._made = dict(snapshot["made"])
        self._errors_in_a_row = dict(snapshot["in_a_row"])


class RecordedFaults(FaultInjector):
    """The faults that a stored trajectory met, in the forms they took then."""

    def __init__(self, calls: Iterable[tuple[str, Any, str]], seed: int) -> None:
        """`calls` are (tool, arguments, kind) of every recorded call, in call order."""
        super().__init__(FaultInjectionConfig(), seed)
        self._recorded: dict[tuple[str, int], OutcomeKind] = {}
        counts: dict[str, int] = {}
        for tool, arguments, kind in calls:
            signature = digest(tool, arguments)
            index = counts[signature] = counts.get(signature, -1) + 1
            self._recorded[signature, index] = _known(kind)

    def _limit(self) -> float:
        return float("inf")

    def _kind(self, rng: random.Random, signature: str, index: int) -> OutcomeKind:
        super()._kind(rng, signature, index)  # moves the generator on, so that the forms agree
        return self._recorded.get((signature, index), "success")


def _known(kind: str) -> OutcomeKind:
    for known in get_args(OutcomeKind):
        if kind == known:
            return known
    raise ValueError(f"unknown outcome {kind!r}; known: {', '.join(get_args(OutcomeKind))}")


class InjectedError(NamedTuple):
    code: str
    message: str
    """`{tool}` and `{n}` (a number of seconds) are filled in."""


FAULTS: dict[str, tuple[InjectedError, ...]] = {
    "transient_error": (
        InjectedError(
            "timeout", "{tool} did not answer within {n} seconds. Nothing was done; try again."
        ),
        InjectedError(
            "unavailable", "Service temporarily unavailable (503). Please retry the request."
        ),
        InjectedError("unavailable", "The backend of {tool} is restarting. Nothing was changed."),
        InjectedError("connection_error", "Connection was reset before the request was handled."),
    ),
    "rate_limit": (
        InjectedError("rate_limited", "Too many requests. Retry after {n} seconds."),
        InjectedError(
            "rate_limited", "Rate limit for {tool} reached (429); the call was not executed."
        ),
    ),
    "permission_denied": (
        InjectedError("permission_denied", "This session may not call {tool}."),
        InjectedError(
            "permission_denied", "Access denied (403): {tool} needs a role you do not have."
        ),
    ),
}


def fault_of(draw: Draw, tool: str) -> tuple[str, str]:
    """(error code, observation text) of a call that an injected error kept from running."""
    fault = draw.rng.choice(FAULTS[draw.kind])
    message = fault.message.format(tool=tool, n=draw.rng.choice((5, 10, 15, 30)))
    return fault.code, error_text(fault.code, message)


def error_text(code: str, message: str) -> str:
    """The one form in which errors that are not the tool's own reach an agent."""
    return json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False)


def reshaped(draw: Draw, text: str) -> str | None:
    """What a read is seen to return under `draw`; None where it has nothing to leave out."""
    if draw.kind == "malformed":
        return text[: int(len(text) * draw.rng.uniform(0.3, 0.8))] if len(text) > 2 else None
    try:
        value = json.loads(text)
    except ValueError:
        return _fewer_lines(draw.kind, text)
    holder, key = _longest_list({"": value}, least=1 if draw.kind == "empty" else 2)
    if holder is None:
        return None
    rows = holder[key]
    holder[key] = [] if draw.kind == "empty" else rows[: len(rows) // 2]
    if draw.kind == "partial":
        note = {"partial": True, "message": f"{len(holder[key])} of {len(rows)} results returned."}
        value = value | note if isinstance(value, dict) else {"results": holder[key], **note}
    elif key == "":
        value = holder[key]
    return json.dumps(value, ensure_ascii=False)


def _fewer_lines(kind: str, text: str) -> str | None:
    lines = text.splitlines()
    if kind == "empty":
        return "" if text else None
    if len(lines) < 2:
        return None
    kept = lines[: len(lines) // 2]
    return "\n".join([*kept, f"[partial result: {len(kept)} of {len(lines)} lines]"])


def _longest_list(value: dict[str, Any], *, least: int) -> tuple[Any, str]:
    """(object, field) of the longest list in `value` or one level below it, or (None, "") where
    none has so many items."""
    spots = [(value, key) for key in value]
    spots += [(inner, k) for inner in value.values() if isinstance(inner, dict) for k in inner]
    spots = [(holder, key) for holder, key in spots if isinstance(holder[key], list)]
    found = max(spots, key=lambda spot: len(spot[0][spot[1]]), default=(None, ""))
    return found if found[0] is not None and len(found[0][found[1]]) >= least else (None, "")
