"""Which model plays which role, where it is reached, what it costs, and what a run may spend."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from records.config import Config
from records.errors import ConfigError
from records.model_names import OFFLINE_MODEL, in_digests, todays
from records.seeds import share_of
from synth.llm.settings.profile import Profile

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
        "stream_options",
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


class EndpointKey(NamedTuple):
    """What tells one endpoint from another: roles with the same one share connections, limits and
    rates."""

    base_url: str
    api_key_env: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    proxy: str | None = None
    ca_file: str | None = None


class TokenUsage(NamedTuple):
    """Tokens of one answer, as the server counts them."""

    prompt: int
    completion: int
    cached: int = 0
    """Of the prompt's, those that the server had in its cache."""
    reasoning: int = 0
    """Of the completion's, those that the model reasoned with."""


class RoleConfig(Config):
    """One role. Roles at the same endpoint (`endpoint_key`) share connections and limits."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {
            "endpoint",
            "base_url",
            "api_key_env",
            "headers",
            "query",
            "proxy",
            "ca_file",
            "profile",
            "batch",
            "usd_per_million_prompt",
            "usd_per_million_completion",
            "usd_per_million_cached_prompt",
            "usd_per_million_reasoning",
            "license",
            "max_in_flight",
            "requests_per_minute",
            "tokens_per_minute",
            "timeout_s",
            "idle_timeout_s",
            "retries",
            "backoff_s",
        }
    )
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"reasoning_effort": None})

    endpoint: str | None = None
    """A ready description of an endpoint, by the name of a file in `configs/endpoints/` or the path
    of one: its settings hold wherever the role says nothing else."""
    base_url: str = OFFLINE
    """`offline`, or the `/v1` URL of an OpenAI-compatible server."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; none for servers without keys."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers of every request: header -> name of the environment variable that holds its
    value, such as `api-key = "AZURE_OPENAI_API_KEY"`."""
    query: dict[str, str] = Field(default_factory=dict)
    """Parameters of the URL, such as `api-version = "2024-10-21"`."""
    proxy: str | None = None
    """URL of an HTTP proxy that requests go through."""
    ca_file: str | None = None
    """File of certificates (PEM) that the server's is checked against, beside the system's."""
    profile: Profile = Profile()
    """What the endpoint can do; what is left out is found by the probe."""
    models: tuple[ModelConfig, ...] = Field(
        default=(ModelConfig(name=OFFLINE_MODEL),), min_length=1
    )
    """Models that share the role, each item played by one of them. A name or a list of names is
    enough where no weights are given."""
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """None leaves it to the server, which some models insist on."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from; None leaves it to the
    server."""
    max_tokens: int = Field(default=2048, ge=1)
    """The most tokens of an answer: sent with every request, and part of the worst case that the
    budget reserves. An answer that is cut is asked for again with twice the room, twice at most."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """How much the model reasons, in the form that the profile names; None leaves it to the
    server."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, such as `chat_template_kwargs`."""
    send_reasoning: bool = False
    """Leave `reasoning_content` of earlier turns in the messages that the model is sent."""
    batch: bool = False
    """Send requests through the server's batch endpoint: half the price at many vendors, answers
    within hours. For roles that nobody waits for: generator and judge."""
    usd_per_million_prompt: float | None = Field(default=None, ge=0.0)
    """Price of a million prompt tokens in USD, for budgets, estimates and the ledger. None is
    unknown: a budget in USD is then refused; 0 is a model that costs nothing."""
    usd_per_million_completion: float | None = Field(default=None, ge=0.0)
    """Price of a million completion tokens in USD."""
    usd_per_million_cached_prompt: float | None = Field(default=None, ge=0.0)
    """Price of a million prompt tokens that the server had in its cache; None: as any other."""
    usd_per_million_reasoning: float | None = Field(default=None, ge=0.0)
    """Price of a million tokens of reasoning; None: as any other of the completion."""
    license: str = "unknown"
    """Terms under which the model's output may be used, for the dataset card."""
    max_in_flight: int = Field(default=128, ge=1, le=4096)
    """Ceiling of the adaptive concurrency; of roles that share an endpoint the smallest holds."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests that the endpoint is sent in a minute at most; None: what its headers say, if they
    say it. Of roles that share an endpoint the smallest holds."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Tokens, prompt and completion, that a minute may use at most; None as above."""
    timeout_s: float = Field(default=600.0, gt=0.0)
    """Wall clock of one request, waiting for a slot excluded."""
    idle_timeout_s: float = Field(default=90.0, gt=0.0)
    """Wall clock between two pieces of a streamed answer."""
    retries: int = Field(default=6, ge=0, le=20)
    """Further tries after a failure that may pass."""
    backoff_s: float = Field(default=0.5, ge=0.0, le=60.0)
    """Longest wait before the first retry; doubles each time up to a minute."""

    def identity(self) -> dict[str, Any]:
        # ids from before the profile had it are digests of this entry, too
        return super().identity() | {"max_tokens_field": "max_tokens"}

    @property
    def endpoint_key(self) -> EndpointKey:
        return EndpointKey(
            self.base_url,
            self.api_key_env,
            tuple(sorted(self.headers.items())),
            tuple(sorted(self.query.items())),
            self.proxy,
            self.ca_file,
        )

    @property
    def is_offline(self) -> bool:
        return self.base_url == OFFLINE

    @property
    def has_prices(self) -> bool:
        """Whether the cost of a request can be told; the offline model costs nothing."""
        known = (self.usd_per_million_prompt, self.usd_per_million_completion)
        return self.is_offline or None not in known

    @model_validator(mode="before")
    @classmethod
    def _field_moved_to_the_profile(cls, values: Any) -> Any:
        """Recorded settings may still hold `max_tokens_field` itself."""
        if isinstance(values, dict) and "max_tokens_field" in values:
            values = dict(values)
            field = values.pop("max_tokens_field")
            if field != "max_tokens" and isinstance(values.get("profile", {}), dict):
                values["profile"] = {"max_tokens_field": field} | values.get("profile", {})
        return values

    @field_validator("proxy")
    @classmethod
    def _proxy_without_password(cls, value: str | None) -> str | None:
        if value is not None and "@" in value:
            raise ConfigError(
                "proxy must be a URL without user and password, which would be kept with the "
                "dataset; give them to the proxy by the variables HTTPS_PROXY and HTTP_PROXY"
            )
        return value

    @field_validator("query")
    @classmethod
    def _query_without_keys(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if re.search(
                r"(^|[-_])(key|token|secret|password|sig|signature)$", name, re.IGNORECASE
            ):
                raise ConfigError(
                    f"query.{name} looks like a key, which would be kept with the dataset; name a "
                    "variable in api_key_env or headers instead"
                )
        return value

    @field_validator("headers")
    @classmethod
    def _headers_name_variables(cls, value: dict[str, str]) -> dict[str, str]:
        for header, variable in value.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", header):
                raise ValueError(f"{header!r} is no name of a header")
            if not _ENV_NAME.fullmatch(variable):  # likely the value itself
                raise ConfigError(
                    f"headers.{header} must be the name of an environment variable (letters,"
                    " digits, _) that holds the header's value; what is given is not shown because"
                    " it may be a secret"
                )
        return value

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

    @field_validator("models", mode="before")
    @classmethod
    def _names_are_enough(cls, value: Any) -> Any:
        models = [value] if isinstance(value, str) else value
        if not isinstance(models, list | tuple):
            return models
        return [{"name": model} if isinstance(model, str) else model for model in models]

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

    def cost_usd(self, usage: TokenUsage) -> float:
        """At the role's prices; what has none costs nothing."""
        prompt, completion = (
            self.usd_per_million_prompt or 0.0,
            self.usd_per_million_completion or 0.0,
        )
        cached = _or(self.usd_per_million_cached_prompt, prompt)
        reasoning = _or(self.usd_per_million_reasoning, completion)
        return (
            (usage.prompt - usage.cached) * prompt
            + usage.cached * cached
            + (usage.completion - usage.reasoning) * completion
            + usage.reasoning * reasoning
        ) / 1e6

    def worst_usd(self, prompt: int, completion: int) -> float:
        """Of a request with so many tokens at most, whichever price they turn out to have."""
        dearest_in = max(
            self.usd_per_million_prompt or 0.0, self.usd_per_million_cached_prompt or 0.0
        )
        dearest_out = max(
            self.usd_per_million_completion or 0.0, self.usd_per_million_reasoning or 0.0
        )
        return (prompt * dearest_in + completion * dearest_out) / 1e6


def _or(price: float | None, other: float) -> float:
    return other if price is None else price


class LimitConfig(Config):
    usd: float | None = Field(default=None, ge=0.0)
    """USD at most, by the prices of the roles; None is no limit."""
    tokens: int | None = Field(default=None, ge=0)
    """Prompt and completion tokens together."""


class BudgetConfig(LimitConfig):
    """Hard limits of a run and, within it, of single stages. None is no limit."""

    stages: dict[str, LimitConfig] = Field(default_factory=dict)
    """Limits of single stages by name, within those of the run."""
