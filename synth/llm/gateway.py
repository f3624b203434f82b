"""What all shards of a process share: endpoints, their gates and profiles, and the budget."""

import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from records.errors import ConfigError
from synth.llm.budget import Budget
from synth.llm.endpoint.batch import Batches
from synth.llm.endpoint.connection import ASGIApp, Endpoint
from synth.llm.endpoint.gate import Gate, MinuteLimits
from synth.llm.endpoint.limiter import Limiter
from synth.llm.profiles import Profiles
from synth.llm.settings.config import EndpointKey, RoleConfig
from synth.llm.wire.answer import ChatAnswer


class Exchange(NamedTuple):
    """One request as it was sent and its answer, for who wants to look."""

    stage: str
    role: str
    item: str
    step: str
    path: str
    body: bytes
    answer: ChatAnswer


class Gateway:
    """`async with` it in the event loop that uses it; roles with one endpoint share it."""

    def __init__(
        self,
        roles: Mapping[Any, RoleConfig],
        *,
        budget: Budget | None = None,
        offline_app: Callable[[], ASGIApp] | None = None,
        gate_of: Callable[[EndpointKey], Gate | None] = lambda endpoint: None,
        profiles: Profiles | None = None,
        patience_s: float = math.inf,
        on_waiting: Callable[[str, str | None], None] = lambda endpoint, words: None,
        on_exchange: Callable[[Exchange], None] | None = None,
        batches: Batches | None = None,
    ) -> None:
        """`offline_app` makes the offline model; needed when a role's URL is `offline`.
        `gate_of` gives the gate of an endpoint whose slots others share; None: its own, which waits
        for an endpoint that is gone as long as `patience_s` says and tells `on_waiting` of it.
        `batches` are closed with it; without them roles that want batches are asked at once.

        Raises ConfigError for a key that is not set, before anything is sent.
        """
        self.roles = dict(roles)
        self.budget = budget or Budget()
        self.profiles = profiles or Profiles()
        self.on_exchange = on_exchange
        self.batches = batches
        self._endpoints: dict[EndpointKey, Endpoint] = {}
        for role, config in self.roles.items():
            key = config.endpoint_key
            if key in self._endpoints:
                continue
            if config.is_offline and offline_app is None:
                raise ConfigError(f"roles.{role}.base_url is offline, but no provider is embedded")
            sharing = [c for c in roles.values() if c.endpoint_key == key]
            ceiling = min(c.max_in_flight for c in sharing)
            gate = gate_of(key) or Gate(
                Limiter(ceiling),
                name=config.base_url,
                limits=MinuteLimits(
                    _smallest(c.requests_per_minute for c in sharing),
                    _smallest(c.tokens_per_minute for c in sharing),
                ),
                patience_s=patience_s,
                on_waiting=on_waiting,
            )
            self._endpoints[key] = Endpoint(
                config,
                role=role,
                max_in_flight=ceiling,
                app=offline_app() if config.is_offline and offline_app else None,
                gate=gate,
            )

    def role(self, name: str) -> tuple[RoleConfig, Endpoint]:
        config = self.roles.get(name)
        if config is None:
            raise ConfigError(f"no model is configured for role {name!r}, only for {[*self.roles]}")
        return config, self._endpoints[config.endpoint_key]

    def gate(self, endpoint: EndpointKey) -> Gate:
        """Of the endpoint with this key."""
        return self._endpoints[endpoint].gate

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.batches is not None:
            await self.batches.close()
        for endpoint in self._endpoints.values():
            await endpoint.close()


def _smallest(limits: Any) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
