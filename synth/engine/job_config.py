"""What a run of any kind is told of how it goes: roles, budget, concurrency, shards."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.settings.settings import OfflineSettings
from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.settings import merged, with_overrides
from synth.llm.settings.config import OFFLINE, BudgetConfig, RoleConfig
from synth.llm.settings.merging import ALL, expanded_roles, recorded_for
from synth.prompts.folder import PromptFolder
from synth.prompts.templates import replaced_by

Role = Literal["generator", "agent", "user", "simulator", "judge", "rewriter", "embedder"]


class OfflineConfig(Config):
    """How the offline model behaves as an endpoint; what it answers is its model's matter."""

    roles: tuple[Role, ...] = ()
    """Roles that the offline model is meant to play in a run whose other roles have an endpoint.
    Without them such a run is refused: its rules are no measure of anything, and easily overlooked
    among models."""
    misbehave: Misbehaviour = Misbehaviour()
    """Shares of requests that fail in declared ways, to see a run survive them."""
    latency_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Wait before each answer."""
    jitter_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Further wait of up to so long, drawn for each request."""

    def settings(self) -> OfflineSettings:
        return OfflineSettings(
            misbehave=self.misbehave, latency_s=self.latency_s, jitter_s=self.jitter_s
        )


class JobConfig(Config):
    """What a run of any kind is told of how it goes. What decides rows makes up its id."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        [
            "name",
            "budget",
            "concurrency",
            "shard_size",
            "max_failed",
            "stage_seconds",
            "offline",
            "workers",
            "outage_s",
            "around_attempts",
        ]
    )
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"prompts": None})
    KIND: ClassVar[str] = "run"
    """Keeps runs of different kinds apart, whatever their settings; stored with each start."""
    STAGES: ClassVar[tuple[str, ...]] = ()
    """Names of the stages in their order, as budgets and reports use them."""
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {}
    """The roles of the run, and who plays one that is not named: the offline model."""

    name: str = Field(default="demo", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""
    seed: int = Field(default=0, ge=0)
    """Another seed makes other draws everywhere, and so other rows."""
    roles: dict[Role, RoleConfig] = Field(default_factory=dict, validate_default=True)
    """Who plays what; where no role has an endpoint, the offline model plays all of them. A role's
    settings are put over the defaults of its kind of run. The entry `all` holds for every role but
    `embedder` wherever the role says nothing else; it is expanded and not recorded."""
    budget: BudgetConfig = BudgetConfig()
    """Hard limits in USD and tokens. A run that meets one stops cleanly and can be resumed."""
    concurrency: int = Field(default=16, ge=1, le=4096)
    """Items in flight at once. A few more than an endpoint's `max_in_flight` (an eighth) keep it
    full while some items work on their tools."""
    shard_size: int = Field(default=30, ge=1, le=100_000)
    """Items a commit: small loses little work to a kill, large makes fewer files."""
    max_failed: float = Field(default=0.2, ge=0.0, le=1.0)
    """Share of a stage's items that may fail before the stage does."""
    stage_seconds: dict[str, float] = Field(default_factory=dict)
    """Wall clock after which a stage starts no further shard; what is left stays pending."""
    workers: int = Field(default=0, ge=0, le=256)
    """Processes that make shards and validate tools; 1: none beside the run's own makes shards; 0:
    one for each core, in stages with work enough for them."""
    outage_s: float | None = Field(default=None, ge=0.0)
    """How long the run waits for an endpoint that is gone before it stops, with everything pending
    kept for the same command. None: without end in a terminal, an hour without one."""
    around_attempts: int = Field(default=3, ge=1, le=100)
    """Invocations in which an item may fail by what is around it (endpoint, sandbox, server) before
    it is committed as failed; until then it stays pending, and the same command makes it."""
    offline: OfflineConfig = OfflineConfig()
    """How the offline model behaves as an endpoint."""
    prompts: PromptFolder | None = None
    """The path of a folder of Markdown files that replace the project's prompts of the same names
    (those of `synth/prompts`, those in `shared` too). Their content decides rows, where they lie
    does not."""

    @model_validator(mode="before")
    @classmethod
    def _roles_come_together(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("roles"), dict):
            return values
        return values | {"roles": cls.whole_roles(values["roles"])}

    @model_validator(mode="after")
    def _every_role_is_played(self) -> Self:
        if unknown := sorted(self.roles.keys() - self.DEFAULT_ROLES.keys()):
            raise ValueError(
                f"roles has {', '.join(unknown)}; roles here: {', '.join(self.DEFAULT_ROLES)}"
            )
        roles = {role: self.roles.get(role, own) for role, own in self.DEFAULT_ROLES.items()}
        object.__setattr__(self, "roles", roles)  # frozen for everyone else
        for where in ("stage_seconds", "budget.stages"):
            named = self.stage_seconds if where == "stage_seconds" else self.budget.stages
            if unknown := sorted(named.keys() - set(self.STAGES)):
                raise ValueError(
                    f"{where} names no stage by {', '.join(unknown)}; "
                    f"stages: {', '.join(self.STAGES)}"
                )
        return self

    @classmethod
    def expanded_roles(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The roles as a user names them, with `all` and endpoints' files expanded."""
        return expanded_roles(given, cls.chat_roles())

    @classmethod
    def whole_roles(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The same over the defaults of this kind of run."""
        defaults: dict[str, RoleConfig] = {**cls.DEFAULT_ROLES}
        return {
            name: merged(defaults[name].model_dump(exclude_unset=True), own)
            if isinstance(own, dict) and name in defaults
            else own
            for name, own in cls.expanded_roles(given).items()
        }

    @classmethod
    def changed(
        cls, recorded: dict[str, Any], overrides: Sequence[str], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Recorded settings, which say everything, with what a user says now: by `--set`, and by
        options, whose word on all roles is for those that were recorded without. A role that gets
        another address keeps nothing of what belongs to the recorded one, its key above all."""
        of_roles = [one for one in overrides if one.lstrip().startswith(("roles.", "roles="))]
        others = [one for one in overrides if one not in of_roles]
        roles: dict[str, Any] = recorded["roles"]
        shared: dict[str, Any] = options.get("roles", {}).get(ALL, {})
        for name, own in roles.items():
            if name in cls.chat_roles() and own.get("base_url") != OFFLINE:
                own |= {key: value for key, value in shared.items() if own.get(key) is None}
        said = with_overrides({"roles": {}}, of_roles)["roles"]
        changed = said
        if isinstance(said, dict):
            now = cls.expanded_roles(said)
            kept = {name: recorded_for(own, now.get(name)) for name, own in roles.items()}
            changed = merged(kept, now)
        values = merged(recorded, {key: own for key, own in options.items() if key != "roles"})
        return with_overrides(values | {"roles": changed}, others)

    @classmethod
    def chat_roles(cls) -> list[str]:
        return [role for role in cls.DEFAULT_ROLES if role != "embedder"]

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """Those that the settings give something to do."""
        return dict(self.roles)

    def check_roles(self) -> None:
        """ConfigError where some roles have an endpoint and one that is needed has none, unless
        `offline.roles` says that it is meant; and for a budget in USD that could not bind."""
        self._check_endpoints()
        self._check_prices()

    def _check_endpoints(self) -> None:
        hosted = [role for role, own in self.roles.items() if own.base_url != OFFLINE]
        left_out = [role for role, own in self.roles_asked().items() if own.base_url == OFFLINE]
        missing = [role for role in left_out if role not in self.offline.roles]
        if not hosted or not missing:
            return
        names = ", ".join(f"roles.{role}" for role in missing)
        have, lack = (" has" if len(those) == 1 else " have" for those in (hosted, missing))
        meant = ", ".join(f'"{role}"' for role in (*self.offline.roles, *missing))
        raise ConfigError(
            f"{names}{lack} no endpoint, and {', '.join(hosted)}{have} one: the offline model "
            f"would play {', '.join(missing)} by its rules. Give {names} a base_url, or say that "
            f"it is meant: [offline] roles = [{meant}]"
        )

    def _check_prices(self) -> None:
        stages = (
            f"budget.stages.{n}" for n, own in self.budget.stages.items() if own.usd is not None
        )
        limits = [*(["budget"] if self.budget.usd is not None else []), *stages]
        unknown = [role for role, own in self.roles_asked().items() if not own.has_prices]
        if not limits or not unknown:
            return
        names = ", ".join(f"roles.{role}" for role in unknown)
        raise ConfigError(
            f"{limits[0]}.usd limits what the run costs, and {names} "
            f"{'has' if len(unknown) == 1 else 'have'} no prices, so nobody could tell. Give "
            "--price IN,OUT (USD for a million tokens; in a file usd_per_million_prompt and "
            "usd_per_million_completion, of a role or under [roles.all]), or limit tokens instead "
            "with --budget-tokens N (budget.tokens). Both prices at 0 say that a model is free"
        )

    def prompts_in_use(self) -> AbstractContextManager[None]:
        """Inside, prompts are rendered, and their versions told, as this run has them."""
        return replaced_by(self.prompts.replaced() if self.prompts is not None else None)

    def sandboxes_in_use(self) -> AbstractAsyncContextManager[None]:
        """Inside, sandboxes are leased from where this run's are."""
        return nullcontext()

    def live_sandboxes(self, here: int) -> int:
        """How many of them may be alive at once, where this machine holds so many."""
        return here

    @property
    def run_id(self) -> str:
        """Digest of what decides rows: the same command in a fresh folder has the same id."""
        return digest(self.KIND, self.identity())
