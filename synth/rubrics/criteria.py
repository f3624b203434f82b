"""A task's rubric: criteria, each of a kind and with a weight, and the rule by which they accept.

What a kind checks is its own affair (`synth.rubrics.built_in`, and the extensions of a run): here
`check` is data. Code checks every kind but `nl`; the judge sees only `id` and `words`.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

CheckedScalar = str | int | float


class Strict(BaseModel):
    """Immutable, and a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ExpectedChange(Strict):
    op: Literal["create", "update", "delete"]
    entity: str
    match: dict[str, Any]
    """create: every field of the new row but its generated id; update: the new values of exactly
    the fields that change; delete: nothing. The value `{"$new": i}` stands for the id that the
    environment gave to the row of `changes[i]`; `{"$from": a, "$to": b}` for any number, date or
    moment between the two, which depends on the time taken."""

    id: str | None = None
    """Which row. None: a row whose id the environment makes up, matched by its content."""

    free: tuple[str, ...] = ()
    """Fields of the row that may take any value: what the user left to whoever does it."""


class Incidental(Strict):
    entity: str
    fields: tuple[str, ...]
    """May change, or not, to anything. An empty list frees the whole entity."""

    ids: tuple[str, ...] = ()
    """Frees these rows alone. Left out of what is stored where there are none."""

    @model_serializer(mode="wrap")
    def _stored(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored = serialize(self)
        return {k: v for k, v in stored.items() if k != "ids" or self.ids}

    def is_of(self, change: Mapping[str, Any]) -> bool:
        """Whether it frees something of the row that was changed."""
        return self.entity == change["entity"] and (not self.ids or change["id"] in self.ids)


class EqualRows(Strict):
    """Rows that differ in nothing but their ids, which nobody has said."""

    entity: str
    ids: tuple[str, ...] = Field(min_length=2)


class StateCheck(Strict):
    """Net effect of the whole episode: exactly `changes` and, `incidental` apart, no other."""

    changes: tuple[ExpectedChange, ...]
    incidental: tuple[Incidental, ...] = ()
    equal: tuple[EqualRows, ...] = ()
    """Each row of a group may stand for each other one. Left out of what is stored where there is
    none."""

    @model_serializer(mode="wrap")
    def _stored(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored = serialize(self)
        return {k: v for k, v in stored.items() if k != "equal" or self.equal}


ANY_TOOL = "*"


class CallCheck(Strict):
    tool: str
    """Name of a tool, or `*` for any."""

    must: Literal["occur", "not_occur"]
    arguments: dict[str, Any] | None = None
    """Only calls whose arguments contain these count. None: every call of the tool."""

    before: str | None = None
    """Only calls made before the first successful call of this tool count."""

    before_turn: int | None = Field(default=None, ge=1)
    """Only calls made before the user's message of this number count; 1 is the opening."""

    changing: bool = False
    """Only calls that changed something count."""

    actor: Literal["agent", "user"] = "agent"
    """Whose calls count: a user may own tools, too."""


class ValuePlace(Strict):
    """Where a value stands in the state at the end."""

    entity: str
    id: str
    field: str


class CommunicateCheck(Strict):
    values: tuple[CheckedScalar, ...] = Field(min_length=1)
    """Each must be told to the user, in any usual spelling."""

    places: tuple[ValuePlace | None, ...] = ()
    """Of which record each value must be told, as far as that is known; empty where it is of
    none."""


class PolicyCheck(Strict):
    rules: tuple[str, ...] = Field(min_length=1)
    """Ids of rules in the domain's policy that no call may violate."""


class FormatCheck(Strict):
    """The agent has the last word, in plain words, and leaks no tool markup."""


class TurnsCheck(Strict):
    """Messages follow one another so that a trainer can take them."""


class FitCheck(Strict):
    """Every call that was carried out names an offered tool and fits its schema."""


class TestCheck(Strict):
    """Tests that must pass on what the agent left, run where the agent never was."""

    fail_to_pass: tuple[str, ...] = Field(min_length=1)
    """Those that fail on what the task begins with."""

    pass_to_pass: tuple[str, ...] = ()
    """Those that pass then, and still must."""


JUDGED = "nl"
"""The kind that only a judge can tell; it has no check."""

NAME = r"^[a-z][a-z0-9_]*$"


class Criterion(Strict):
    id: str = Field(pattern=NAME)
    words: str
    """What a judge reads. Names no check, state or internal id that the transcript lacks."""

    weight: float = Field(gt=0)
    mandatory: bool
    kind: str = Field(pattern=NAME)
    check: dict[str, Any] | None = None
    """What the kind's code checks, as JSON values; None where there is nothing to say."""


class Decision(NamedTuple):
    accepted: bool
    share: float
    """Weighted mean score of the criteria that have one, in [0, 1]."""

    failed: tuple[str, ...]
    """Ids of mandatory criteria that did not pass, in rubric order."""


class Rubric(Strict):
    pass_threshold: float = Field(default=0.7, ge=0.0, le=1.0)
    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Rubric":
        ids = [criterion.id for criterion in self.criteria]
        if repeated := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"criterion ids must be unique, repeated: {', '.join(repeated)}")
        return self


def decide(rubric: Rubric, scores: Mapping[str, float]) -> Decision:
    """Accepted when every mandatory criterion scores 1 and the weighted share is enough.

    A criterion without a score is left out of the share, so that the code-checked part can be
    decided alone; a mandatory one without a score has not passed.
    """
    ids = {criterion.id for criterion in rubric.criteria}
    if unknown := scores.keys() - ids:
        raise ValueError(f"scores for criteria not in the rubric: {', '.join(sorted(unknown))}")
    scored = [c for c in rubric.criteria if c.id in scores]
    total = sum(c.weight for c in scored)
    share = sum(c.weight * scores[c.id] for c in scored) / total if total else 0.0
    failed = tuple(c.id for c in rubric.criteria if c.mandatory and scores.get(c.id, 0.0) < 1.0)
    return Decision(not failed and share >= rubric.pass_threshold, share, failed)
