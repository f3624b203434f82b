"""What the policy as its own critic is told. The report gives no values: defaults are ours."""

from pydantic import Field, field_validator

from records.config import Config


class CriticSettings(Config):
    """Rewards for tasks that no code can check: the policy ranks its own answers."""

    enabled: bool = False
    """Whether the policy compares answers: those to tasks without a verifiable reward, to rank
    them, and rewarded ones, to learn from code how and to be measured by it."""
    opponents: int = Field(default=4, ge=2)
    """Others of its group that an answer is compared with where a group has more than 6; an even
    number. In smaller ones each is compared with each. 4 is ours."""
    answer_tokens: int = Field(default=8, ge=1)
    """Tokens of a verdict, which is one word; a model that thinks needs more."""
    held_back: float = Field(default=0.3, gt=0.0, lt=1.0)
    """Share of the verifiable tasks whose pairs the critic never learns from: by them it is
    measured. 0.3 is ours."""
    measured_pairs: int = Field(default=16, ge=1)
    """Pairs of those tasks that it is asked about in an iteration, at most."""
    window: int = Field(default=200, ge=1)
    """Last measured pairs that its agreement with code is told by. Its rewards are off while the
    lower end of the interval over them does not exceed chance."""
    lesson_pairs: int = Field(default=16, ge=1)
    """Pairs of the other tasks whose right verdicts an iteration learns, in both orders, at
    most."""
    lesson_tokens: int = Field(default=2048, ge=8)
    """Tokens of a pair with its verdict; longer ones, and those that fill a slot, are not learnt
    from."""
    weight: float = Field(default=0.1, ge=0.0)
    """Of the cross-entropy of right verdicts, in nats a learnt token, beside the objective's loss
    as it is. 0: the critic does not learn. 0.1 is ours."""

    @field_validator("opponents")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"opponents must be even, so that all have as many; got {value}")
        return value
