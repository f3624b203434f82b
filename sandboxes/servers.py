"""Definitions of MCP servers: how one is started in a sandbox, what its state is, what people
ask of it. Definitions of the servers that come with the project are data: `servers/*.yaml`."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from records.config import Config
from records.errors import ConfigError
from sandboxes.template import Bind, Limits

FOLDER = Path(__file__).parent / "servers"


SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def slots_in(value: Any) -> set[str]:
    """Names of the slots that a goal's arguments ask for."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return set().union(*(slots_in(item) for item in items))
    return set(SLOT.findall(value)) if isinstance(value, str) else set()


def fill(value: Any, slots: Mapping[str, str]) -> Any:
    """`value` with each `{slot}` replaced; KeyError for one that has no value."""
    if isinstance(value, dict):
        return {key: fill(item, slots) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, slots) for item in value]
    return SLOT.sub(lambda m: slots[m[1]], value) if isinstance(value, str) else value


class Fixture(Config):
    """The world that a server starts in: made anew in every sandbox, with the clock stopped."""

    files: dict[str, str] = Field(default_factory=dict)
    """Written into the workspace first, by path relative to it."""

    setup: str = ""
    """Shell script run in the workspace after that, under `set -eu`."""


class Communicated(Config):
    """Where the value stands that the user must be told."""

    call: int = Field(default=0, ge=0)
    """Index of the goal's call whose observation holds it."""

    regex: str | None = None
    """Its first group, or all of it, searched in the observation's text (multiline)."""

    path: str | None = None
    """Or the observation is JSON and this dotted path (keys and indices) leads to the value."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.regex is None) == (self.path is None):
            raise ValueError("give exactly one of regex and path")
        return self


class GoalCall(Config):
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Literal values; a string `{slot}` is replaced by the slot's value, also inside lists."""


class Goal(Config):
    """One thing a user may want done, as calls that really run in the fixture."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    wish: str
    """What the user wants, in a few words, with `{slot}` in them."""

    calls: tuple[GoalCall, ...] = Field(min_length=1)
    requires: tuple[str, ...] = ()
    """Goals that must come earlier in the same task, with the same slot values."""

    conflicts: tuple[str, ...] = ()
    """Goals that cannot stand in the same task: each changes what the other counts on."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Parameter -> the words in which a user would name its value."""

    writes: bool = False
    communicate: Communicated | None = None


class ServerConfig(Config):
    """One MCP server. A new server from outside needs no more than name and command."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {"start_timeout_s", "venv", "npm_prefix", "optional"}
    )

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = ""
    description: str = ""
    category: str = "software_apps"
    command: list[str] = Field(min_length=1)
    """A command that a Python environment or an npm prefix provides, `python`, or a program of the
    system; then its arguments. Paths in it are paths inside the sandbox."""

    venv: Path | None = None
    """The virtual environment that provides the command; the running one if None."""

    npm_prefix: Path | None = None
    """The folder whose `node_modules` provides the command; `npm` in the running environment if
    None."""

    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    fixtures: dict[str, Fixture] = Field(default_factory=lambda: {"default": Fixture()})
    probes: dict[str, list[str]] = Field(default_factory=dict)
    """Entity -> a command run in the same sandbox; each line it prints is a row of the state."""

    clock: str = "2026-03-02T09:00:00"
    start_timeout_s: float = Field(default=30.0, gt=0, le=600)
    call_timeout_s: float = Field(default=30.0, gt=0, le=600)
    limits: Limits = Limits()
    may_write: bool = False
    """Whether tools that are not read-only may be used at all."""

    resettable: bool = False
    """Whether its whole state is in the workspace, so that making the fixture again renews it."""

    read_only_tools: tuple[str, ...] = ()
    """Tools that only read, though the server does not say so."""

    samples: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Tool -> arguments that work in the default fixture, for the check that it repeats itself."""

    license: str = "unknown"
    """SPDX id that covers the tools' texts."""

    split: str = Field(default="train", pattern=r"^(train|heldout_domain)$")
    optional: bool = False
    """Left out without complaint where its command is not installed."""

    slots: dict[str, list[str]] = Field(default_factory=dict)
    goals: tuple[Goal, ...] = ()

    @model_validator(mode="after")
    def _goals_refer_to_what_is_there(self) -> Self:
        ids = [goal.id for goal in self.goals]
        for goal in self.goals:
            unknown = {*goal.requires, *goal.conflicts} - set(ids)
            unknown |= {slot for call in goal.calls for slot in slots_in(call.arguments)} - set(
                self.slots
            )
            if unknown or ids.count(goal.id) > 1:
                raise ValueError(f"goal {goal.id}: unknown or repeated names {sorted(unknown)}")
        return self


@cache
def builtin_servers() -> dict[str, ServerConfig]:
    """The definitions that come with the project, by name; whether they can run is not asked."""
    configs = [load_server(path) for path in sorted(FOLDER.glob("*.yaml"))]
    return {config.name: config for config in configs}


def load_server(path: Path) -> ServerConfig:
    """Read one definition. ConfigError naming file and field for whatever is wrong with it."""
    try:
        return ServerConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read server definition {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"server definition {path} is not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"server definition {path}: {where}: {first['msg']}") from error
