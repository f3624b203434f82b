"""What `synth domain write` is told, and the files of the domains that it writes."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.errors import ConfigError
from synth.catalogue.proposals.judge_config import DescribedConfig
from synth.engine.job_config import Role
from synth.llm.settings.config import RoleConfig
from tool_specs.domains.taxonomy import files_named

HOUR_S = 3600.0
"""Answers of six programs take long, and some models are silent while they think."""


class WriteConfig(DescribedConfig):
    """A run that writes domains. What is asked for one domain does not depend on the others."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = DescribedConfig.NOT_IDENTITY | {"domains", "workers"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {**DescribedConfig.ADDED_LATER, "jobs": 0}
    )
    KIND: ClassVar[str] = "write"
    STAGES: ClassVar[tuple[str, ...]] = ("write-domains",)
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        "generator": RoleConfig(max_tokens=24_000, timeout_s=HOUR_S, idle_timeout_s=HOUR_S),
        "judge": RoleConfig(max_tokens=4_000),
    }

    name: str = Field(default="write", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the ledger."""
    domains: tuple[str, ...] = Field(min_length=1)
    """Domains of the taxonomy by name, patterns such as `smart_home/*`, or paths of files."""
    tools: int = Field(default=12, ge=1, le=60)
    """Tools that each domain is to have in the end, counting those that its file has."""
    batch_size: int = Field(default=6, ge=2, le=12)
    """Tools of one request at most."""
    policy_rules: int = Field(default=5, ge=0, le=8)
    """Rules that a domain without policy is asked for; 0 asks for none."""
    jobs: int = Field(default=4, ge=0, le=8)
    """Jobs that a domain of devices without tools and jobs is asked for at most; 0 asks for
    none."""
    per_skeleton: int = Field(default=2, ge=1, le=1_000)
    """Tools of one domain whose programs may be alike but for names and values."""
    concurrency: int = Field(default=64, ge=1, le=4096)
    """Domains in flight at once."""
    shard_size: int = Field(default=1, ge=1, le=100_000)
    """Domains a commit."""


def files_of(config: WriteConfig) -> dict[str, Path]:
    """The file of each domain by its name, in order of names. ConfigError for a name or pattern
    that nothing in the taxonomy has, and for two files of one name."""
    found: dict[str, Path] = {}
    for name in config.domains:
        matching = files_named(name)
        if twice := [n for n, path in matching.items() if found.get(n, path) != path]:
            raise ConfigError(f"domains: {twice[0]!r} is given twice")
        found |= matching
    return dict(sorted(found.items()))
