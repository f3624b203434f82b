"""What `synth tools evolve` is told, and the domains that it starts from."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.errors import ConfigError
from synth.catalogue.proposals.judge_config import DescribedConfig
from synth.catalogue.proposals.quotas import QuotaConfig
from synth.catalogue.proposals.schemas import MAX_TOOLS
from synth.engine.job_config import Role
from synth.llm.settings.config import RoleConfig
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files

MAX_BATCHES = 20
"""Batches of one domain at most: after so many, what still comes is more of the same."""


class EvolveConfig(DescribedConfig):
    """An evolution run. Without quotas, which tools a batch gives does not depend on how many are
    asked for. Quotas count what the rounds before it have given to all domains."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = DescribedConfig.NOT_IDENTITY | {
        "count",
        "specialise",
        "workers",
    }
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **DescribedConfig.ADDED_LATER,
            "derived_share": 0.36,
            "max_generation": 2,
            "per_skeleton": 2,
            "quotas": QuotaConfig(on=False).identity(),
        }
    )
    KIND: ClassVar[str] = "evolve"
    STAGES: ClassVar[tuple[str, ...]] = (
        "specialise",
        *(f"evolve-{k}" for k in range(MAX_BATCHES)),
    )
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        "generator": RoleConfig(max_tokens=24_000),
        "judge": RoleConfig(max_tokens=4_000),
    }

    name: str = Field(default="evolve", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""
    domains: tuple[str, ...] = Field(default=("all",), min_length=1)
    """Domains of the taxonomy by name, `all` of them, or paths of domain files."""
    batch_size: int = Field(default=25, ge=4, le=MAX_TOOLS)
    """Tools that are asked for at a time in one domain."""
    derived_share: float = Field(default=0.36, ge=0.0, le=1.0)
    """Share of a domain's later batches that is derived from the domain alone; the others are made
    of its tools. What is made of tools made of tools says less that is new with each generation."""
    max_generation: int = Field(default=2, ge=0, le=20)
    """Generations of tools that are made of others: names and descriptions have to stay sayable."""
    per_skeleton: int = Field(default=2, ge=1, le=1_000)
    """Tools of one domain whose programs may be alike but for names and values."""
    quotas: QuotaConfig = QuotaConfig()
    """What keeps tools believable: a tool over a quota is dropped."""
    concurrency: int = Field(default=8, ge=1, le=4096)
    """Batches in flight at once."""
    shard_size: int = Field(default=8, ge=1, le=100_000)
    """Batches a commit."""

    count: int = Field(default=500, ge=1, le=10_000_000)
    """Tools to have in the end, counting those that the dataset holds of these domains."""
    specialise: int = Field(default=0, ge=0, le=10_000)
    """Narrower domains to make of those named, before tools are evolved in them too."""


def check_domains(config: EvolveConfig) -> None:
    """ConfigError for a domain that the run names and that cannot be read."""
    load_taxonomy([name for name in config.domains if name.endswith((".yaml", ".yml"))])
    known = taxonomy_files()
    if unknown := [name for name in _names(config) if name not in known]:
        load_taxonomy(unknown[:1])  # says what is wrong with it


def domains_of(config: EvolveConfig) -> list[Domain]:
    """The domains that the run starts from, in order of their names."""
    found: dict[str, Domain] = {}
    known = taxonomy_files()
    paths = [known[name] for name in (known if "all" in config.domains else _names(config))]
    paths += [Path(name) for name in config.domains if name.endswith((".yaml", ".yml"))]
    for path in paths:
        domain = load_domain(path)
        if domain.name in found:
            raise ConfigError(f"domains: {domain.name!r} is given twice")
        found[domain.name] = domain
    return [found[name] for name in sorted(found)]


def _names(config: EvolveConfig) -> list[str]:
    paths = (".yaml", ".yml")
    return [name for name in config.domains if name != "all" and not name.endswith(paths)]
