"""Which model plays which role, where it is reached, what it costs, and what a run may spend."""

import re
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from records.config import Config
from records.errors import ConfigError
from records.model_names import OFFLINE_MODEL, in_digests, todays
from records.seeds import share_of

OFFLINE = "offline"
"""The base URL of the offline model: the same client code, in process."""

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SET_BY_US = frozenset(
    {
        "model",
        "messages",
        "tools",
        "response_format",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "seed",
        "n",
        "stream",
    }
)


class ModelConfig(Config):
    name: str = Field(min_length=1)
    """As the endpoint knows the model."""
    weight: float = Field(default=1.0, gt=0.0)
    """Share of the items that this model plays, relative to the other weights of the role."""

    @field_validator("name")
    @classmethod
    def _todays_name(cls, value: str) -> str:
        return todays(value)  # recorded settings may hold an earlier one

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"name": in_digests(self.name)}


class RoleConfig(Config):
    """One role. Roles with the same base URL and key share connections and concurrency."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {
            "base_url",
            "api_key_env",
            "usd_per_million_prompt",
            "usd_per_million_completion",
            "license",
            "max_in_flight",
            "timeout_s",
            "retries",
            "backoff_s",
        }
    )

    base_url: str = OFFLINE
    """`offline`, or the `/v1` URL of an OpenAI-compatible server."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; none for servers without keys."""
    models: tuple[ModelConfig, ...] = Field(
        default=(ModelConfig(name=OFFLINE_MODEL),), min_length=1
    )
    """Models that share the role, each item played by one of them."""
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """None leaves it to the server, which some models insist on."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from; None leaves it to the
    server."""
    max_tokens: int = Field(default=2048, ge=1)
    """Sent with every request, and part of the worst case that the budget reserves."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name under which the server expects it."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, such as `chat_template_kwargs`."""
    send_reasoning: bool = False
    """Leave `reasoning_content` of earlier turns in the messages that the model is sent."""
    usd_per_million_prompt: float = Field(default=0.0, ge=0.0)
    """Price of a million prompt tokens in USD, for budgets, estimates and the ledger."""
    usd_per_million_completion: float = Field(default=0.0, ge=0.0)
    """Price of a million completion tokens in USD."""
    license: str = "unknown"
    """Terms under which the model's output may be used, for the dataset card."""
    max_in_flight: int = Field(default=128, ge=1, le=4096)
    """Ceiling of the adaptive concurrency; of roles that share an endpoint the smallest holds."""
    timeout_s: float = Field(default=600.0, gt=0.0)
    """Wall clock of one request, waiting for a slot excluded."""
    retries: int = Field(default=6, ge=0, le=20)
    """Further tries after a failure that may pass."""
    backoff_s: float = Field(default=0.5, ge=0.0, le=60.0)
    """Longest wait before the first retry; doubles each time up to a minute."""

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        if value == OFFLINE or re.fullmatch(r"https?://[^/\s@?#]+(/[^\s@?#]*)?", value):
            return value
        allowed = "`offline` or an http(s) URL without user, password, ? and #"
        if held := [mark for mark in "@?#" if mark in value]:  # may hold a secret: not repeated
            raise ConfigError(f"base_url must be {allowed}; the value given contains {held[0]}")
        raise ValueError(f"base_url must be {allowed}, got {value!r}")

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _ENV_NAME.fullmatch(value):  # likely the key itself
            raise ConfigError(
                "api_key_env must be the name of an environment variable (letters, digits, _);"
                " the value given is not shown because it may be a key"
            )
        return value

    @field_validator("models")
    @classmethod
    def _distinct(cls, value: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
        names = [model.name for model in value]
        if len(set(names)) < len(names):
            raise ValueError(f"models must have distinct names, got {names}")
        return value

    @field_validator("extra_body")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_SET_BY_US & value.keys()):
            raise ValueError(f"extra_body may not hold {', '.join(taken)}: the client sets them")
        return value

    def model_of(self, item: str, role: str) -> str:
        """The model that plays `role` for `item`: by weight, and the same at every step."""
        if len(self.models) == 1:
            return self.models[0].name
        point = share_of(item, f"model:{role}") * sum(model.weight for model in self.models)
        for model in self.models:
            point -= model.weight
            if point < 0:
                return model.name
        return self.models[-1].name  # rounding left a crumb of the last weight

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (
            prompt_tokens * self.usd_per_million_prompt
            + completion_tokens * self.usd_per_million_completion
        ) / 1e6


class LimitConfig(Config):
    usd: float | None = Field(default=None, ge=0.0)
    """USD at most, by the prices of the roles; None is no limit."""
    tokens: int | None = Field(default=None, ge=0)
    """Prompt and completion tokens together."""


class BudgetConfig(LimitConfig):
    """Hard limits of a run and, within it, of single stages. None is no limit."""

    stages: dict[str, LimitConfig] = Field(default_factory=dict)
    """Limits of single stages by name, within those of the run."""
