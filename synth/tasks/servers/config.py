"""The settings of the search for goals on real MCP servers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from records.config import Config


class ServerGoalsConfig(Config):
    """How goals are found on servers whose definition lists none."""

    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"fill_bare": True})

    servers: Literal["without_goals", "all", "none"] = "without_goals"
    """Servers on which goals are looked for: those whose definition lists none, all, or none."""

    wanted: int = Field(default=12, ge=1, le=200)
    """Goals of a server after which no more are asked for."""

    rounds: int = Field(default=3, ge=1, le=20)
    """How often the generator is asked for goals of one server at most. Each time it is told which
    ones are there already, and why others were not kept."""

    look_calls: int = Field(default=10, ge=0, le=40)
    """Calls that the generator may make to look around before it proposes goals."""

    fill_bare: bool = True
    """Whether a server that begins empty, and of which nothing else is said, is first filled by its
    own tools, so that there is something to ask for."""
