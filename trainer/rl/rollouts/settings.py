"""How the rollouts of an iteration are made. The report gives no values: all here are ours."""

from typing import Literal, Self

from pydantic import Field, model_validator

from records.config import Config


class RepeatSettings(Config):
    """When an answer counts as saying the same over and over."""

    tokens: int = Field(default=128, ge=2)
    """Its last tokens that are looked at."""
    period: int = Field(default=32, ge=1)
    """Longest stretch that they may repeat, in tokens; at most half of `tokens`."""

    @model_validator(mode="after")
    def _is_repeated(self) -> Self:
        if 2 * self.period > self.tokens:
            raise ValueError(
                f"period must be at most half of tokens = {self.tokens}, or nothing is repeated; "
                f"got {self.period}"
            )
        return self


class RolloutSettings(Config):
    """Groups, limits of an episode, and where a phase is cut."""

    samples: int = Field(default=8, ge=1)
    """Episodes of each task: K."""
    in_flight: int = Field(default=64, ge=1)
    """Episodes that are open beside each other. In the deterministic mode they go on together, and
    best number no more than the policy has slots: a turn then goes on from what its slot holds."""
    deterministic: bool = False
    """Whether what is drawn hangs on nothing but tasks, seeds and weights, to the last bit, however
    often the run was stopped: episodes take their turns together, and wait for the slowest. Holds
    for environments that keep within their time."""
    token_budget: int = Field(default=512, ge=1)
    """Tokens that the policy may draw in an episode, which is cut there; what that costs is the
    penalty of `learning.budget`. Best below the policy's own limit of an answer: one that runs to
    that limit is `endless`, and cannot be learnt from."""
    token_budgets: dict[str, int] = Field(default_factory=dict)
    """Family -> its own budget."""
    segment_tokens: int | None = Field(default=None, ge=1)
    """Tokens that an episode may draw in one iteration; then it pauses until the next. None: as
    many as its budget allows."""
    phase_tokens: int | None = Field(default=None, ge=1)
    """Tokens of all episodes of an iteration, after which those that are not over pause; passes
    that are under way are drawn to the end of their chunk."""
    phase_s: float | None = Field(default=None, gt=0)
    """Seconds of an iteration's rollouts, after which those that are not over pause."""
    most_iterations: int = Field(default=4, ge=1)
    """In which an episode may be open; then it ends as `too_old`."""
    most_turns: int = Field(default=20, ge=1)
    """Answers of an episode."""
    silent_answers: int = Field(default=1, ge=1)
    """Answers without a word or a call, one after the other, that end an episode as `silent`."""
    silence: Literal["leave_out", "fails"] = "leave_out"
    """What a silent episode is worth. leave_out: it has no reward and moves nothing; fails: 0, and
    it is learnt from. Left out, silence can grow: whatever is said is pushed down where it fails,
    and silence never is. Watch `outcome/silent`."""
    repeats: RepeatSettings | None = RepeatSettings()
    """None: answers may say the same over and over."""
    chunk_tokens: int = Field(default=16, ge=1)
    """Tokens after which answers are looked at: for budgets and repetition, and so that others may
    join in."""
    step_s: float = Field(default=60.0, gt=0)
    """Seconds that an environment has to begin an episode, and for each step."""
    grace_s: float = Field(default=5.0, ge=0)
    """Seconds more in which an environment that did not answer is seen to be late, and not to hang.
    Closing an episode has as long."""
    begin_tries: int = Field(default=3, ge=1)
    """Of an environment that says it may be well the next time."""
    part_samples: int = Field(default=32, ge=1)
    """Episodes that have ended are written in parts of so many; in the deterministic mode a part is
    what was in flight together."""

    @model_validator(mode="after")
    def _hang_on_no_clock(self) -> Self:
        if self.deterministic and self.phase_s is not None:
            raise ValueError(
                f"phase_s = {self.phase_s} cuts by the clock, which the deterministic mode does "
                "not look at; set phase_tokens or segment_tokens"
            )
        if wrong := {family: n for family, n in self.token_budgets.items() if n < 1}:
            raise ValueError(f"token_budgets are at least 1, got {wrong}")
        return self

    def budget_of(self, family: str) -> int:
        """Tokens that the policy may draw in an episode of the family."""
        return self.token_budgets.get(family, self.token_budget)
