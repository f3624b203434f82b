"""Definitions of MCP servers: how one is started in a sandbox, what its state is, what people
ask of it. Definitions of the servers that come with the project are data: `servers/*.yaml`."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from records.config import Config
from sandboxes.core.template import Bind, Limits
from sandboxes.core.workspace_files import WorkspaceFiles
from sandboxes.egress.forwarding import is_set_by_us
from sandboxes.egress.proxy import destination
from sandboxes.mcp.packages.requested import ServerPackages
from tool_specs.domains.loading import definitions_in

FOLDER = Path(__file__).parent / "servers"


SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def slots_in(value: Any) -> set[str]:
    """Names of the slots that a goal's arguments ask for."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return set().union(*(slots_in(item) for item in items))
    return set(SLOT.findall(value)) if isinstance(value, str) else set()


def fill(value: Any, slots: Mapping[str, str | int]) -> Any:
    """`value` with each `{slot}` replaced; a string that is all slot becomes its value, type and
    all. KeyError for a slot without a value."""
    if isinstance(value, dict):
        return {key: fill(item, slots) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, slots) for item in value]
    if not isinstance(value, str):
        return value
    if whole := SLOT.fullmatch(value):
        return slots[whole[1]]
    return SLOT.sub(lambda match: str(slots[match[1]]), value)


def _host(entry: str) -> str:
    destination(entry)
    return entry


Host = Annotated[str, AfterValidator(_host)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Fixture(Config):
    """The environment that a server starts in: made anew in every sandbox, with the clock
    stopped."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"folder"})
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"contents": {}, "description": ""})

    folder: Path | None = None
    """What is in this folder lies in the workspace at the start. Relative to the definition."""

    contents: WorkspaceFiles = Field(default_factory=dict)
    """The files of `folder`, read when the definition was."""

    description: str = ""
    """What there is to be, in words: "a workshop with a dozen customers and their open orders". A
    run has the server's own tools make it, once (`synth.tasks.servers.filling`)."""

    files: dict[str, str] = Field(default_factory=dict)
    """Written into the workspace after that, by path relative to it."""

    setup: str = ""
    """Shell script run in the workspace after that, under `set -eu`."""


class Communicated(Config):
    """A value that the user must be told, and where it stands in what the calls returned: what
    `path` and `regex` lead to, or `value` itself."""

    label: str
    """What it is, as the user would ask for it."""

    call: int = Field(default=0, ge=0)
    """Index of the goal's call whose observation holds it."""

    path: str | None = None
    """The observation is JSON, and this dotted path of keys and indices leads to the value."""

    regex: str | None = None
    """Searched in that value, or in the whole observation without a path, with ^ and $ at lines.
    The value is its first group."""

    value: str | None = None
    """The value, which the observation holds word for word; in place of `path` and `regex`."""

    number: bool = False
    """Compared as a number, so that "8 hours" tells 8.0."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        leads = self.path is not None or self.regex is not None
        if leads == (self.value is not None):
            raise ValueError("give either value, or path or regex")
        if self.path is None and self.regex is not None and not re.compile(self.regex).groups:
            raise ValueError(f"regex {self.regex!r} needs a group, which is the value")
        return self

    def value_in(self, observation: str) -> str | float | None:
        """The value, None where the observation does not hold it."""
        found: Any = observation
        try:
            if self.value is not None:
                found = self.value if holds(observation, self.value) else None
            if self.path is not None:
                found = json.loads(observation)
                for key in self.path.split("."):
                    found = found[int(key) if isinstance(found, list) else key]
            if self.regex is not None:
                match = re.search(self.regex, str(found), re.MULTILINE)
                found = match and match[1]
            if isinstance(found, bool) or not isinstance(found, str | int | float):
                return None
            return float(found) if self.number else str(found)
        except (ValueError, KeyError, IndexError, TypeError):
            return None


def pattern_of(value: str) -> str:
    """A pattern whose group is the value where it stands as a whole, and not as a part of a longer
    word or number: `18:00` in `2026-03-02T18:00:00`, `5.75` in `+5.75h`, but not `18` in `1880`."""
    end = r"(?=[^\W\d_]{0,3}(?!\w))" if value[-1:].isdigit() else r"(?!\w)"
    return rf"(?:(?<![\w.])|(?<=\dT))({re.escape(value)})(?!\.\d){end}"


def holds(text: str, value: str) -> bool:
    """Whether the value stands in the text as a whole."""
    return re.search(pattern_of(value), text) is not None


class GoalCall(Config):
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Literal values; `{slot}` in a string, also inside lists, stands for the slot's value."""


class GoalTwin(Config):
    """Another state in which the same words ask for other calls: what shows that the goal is
    decided by what is there."""

    before: tuple[GoalCall, ...] = Field(min_length=1)
    """Calls that make that state out of the fixture."""

    calls: tuple[GoalCall, ...] = Field(min_length=1)
    """Calls that grant the goal there."""


class ServerGoal(Config):
    """One thing a user may want done, as calls that really run in the default fixture."""

    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"composed": [], "twin": None, "volatile_rows": {}}
    )

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    wish: str
    """What the user wants, in the imperative, with `{slot}` where it names a value."""

    calls: tuple[GoalCall, ...] = Field(min_length=1)
    requires: tuple[str, ...] = ()
    """Goals that come earlier in the same task, with the same slot values."""

    conflicts: tuple[str, ...] = ()
    """Goals that cannot come earlier in the same task: they take away what this one needs."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Parameter -> what people call it. Parameters without a label are not for the user to know."""

    writes: bool = False
    communicate: tuple[Communicated, ...] = ()
    form: str = Field(default="plain", pattern=r"^(plain|chosen|described|for_each|conditional)$")
    """How the goal has to be read to know which calls it takes: see docs/tasks.md."""

    twin: GoalTwin | None = None
    """Of a goal that is not plain."""

    seen_by: tuple[GoalCall, ...] = ()
    """Of a goal whose effect the state does not show: reading calls that answer otherwise once it
    is done. The episode is then checked by the calls that it made."""

    composed: tuple[str, ...] = ()
    """`CALL.PARAMETER` of the arguments that the assistant composes or chooses itself, such as a
    query: others that come to the same are as good."""

    volatile: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Entity of the state -> fields that come out otherwise each time or are changed by reading,
    too, and are not compared. No field: the whole entity."""

    volatile_rows: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Entity of the state -> ids of rows that are not compared, such as the path of a `file`."""

    def told(self, observations: Sequence[str]) -> list[str | float | None]:
        """The values to tell, in order, from the observations of the goal's calls."""
        return [one.value_in(observations[one.call]) for one in self.communicate]


class ServerConfig(Config):
    """One MCP server. A new server from outside needs no more than name and command."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {"start_timeout_s", "venv", "npm_prefix", "optional", "starts", "start"}
    )
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"elicitation": True, "sampling": True, "packages": None}
    )

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = ""
    description: str = ""
    category: str = "software_apps"
    command: tuple[str, ...] = Field(min_length=1)
    """A command that a Python environment or an npm prefix provides, `python`, or a program of the
    system; then its arguments. Paths in it are paths inside the sandbox."""

    venv: Path | None = None
    """The virtual environment that provides the command; the running one if None."""

    npm_prefix: Path | None = None
    """The folder whose `node_modules` provides the command; `npm` in the running environment if
    None."""

    packages: ServerPackages | None = None
    """What is installed before it starts, and provides its command: `uvx` and `npx` in a definition
    come to this."""

    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    fixtures: dict[str, Fixture] = Field(default_factory=lambda: {"default": Fixture()})
    probes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Entity -> a command run in the same sandbox; each line it prints is a row of the state. Of a
    server without probes that may write, the state is what lies in the workspace: tables of SQLite,
    rows of JSON, texts and folders."""

    clock: str = "2026-03-02T09:00:00"
    start_timeout_s: float = Field(default=30.0, gt=0, le=600)
    call_timeout_s: float = Field(default=30.0, gt=0, le=600)
    limits: Limits = Limits()
    writes: bool | None = None
    """Whether its tools may change anything; where not, only read-only tools are used, and a call
    of another is refused. Not said: they may where the server has neither hosts nor secrets, since
    then it can change nothing but its throwaway workspace."""

    try_writes: bool = False
    """Whether goals that change something are tried out to find tasks, though the server has hosts
    or secrets. Each is executed several times, on whatever it reaches."""

    hosts: tuple[Host, ...] = ()
    """The hosts that it may reach, `NAME`, `NAME:PORT` (443 without) or `NAME:PORT=ADDRESS`; there
    is no other network. See `sandboxes.egress.proxy`."""

    secrets: tuple[Variable, ...] = ()
    """Names of environment variables. Their values are given to the server's process alone."""

    resettable: bool = False
    """Whether its whole state is in the workspace, so that making the fixture again renews it. What
    it draws at random is never seeded: one process serves many episodes."""

    read_only_tools: tuple[str, ...] = ()
    """Tools that only read, though the server does not say so."""

    samples: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Tool -> arguments that work in the default fixture, for the check that it repeats itself."""

    license: str = "unknown"
    """SPDX id that covers the tools' texts."""

    split: str = Field(default="train", pattern=r"^(train|heldout_domain)$")
    elicitation: bool = True
    """Whether the simulated user fills in the forms that it asks for. Else they are declined."""

    sampling: bool = True
    """Whether the agent's model writes the texts that it asks for. Else they are refused."""

    optional: bool = False
    """Left out without complaint where its command is not installed."""

    starts: dict[str, WorkspaceFiles] = Field(default_factory=dict)
    """What runs had the server's own tools fill it with, by id: what then lay in the workspace. Not
    for definitions to say."""

    start: str = ""
    """The one that tasks start from now; none if empty."""

    slots: dict[str, tuple[str | int, ...]] = Field(default_factory=dict)
    """Name -> values that a goal may be about, all of them true of the default fixture."""

    goals: tuple[ServerGoal, ...] = ()

    @property
    def reaches_out(self) -> bool:
        """Whether it can change anything beyond its sandbox."""
        return bool(self.hosts or self.secrets)

    @property
    def may_be_seeded(self) -> bool:
        """Whether what it draws at random may be a seeded stream. What it sends to hosts needs
        secrets that nobody can work out."""
        return not (self.reaches_out or self.resettable)

    @property
    def may_write(self) -> bool:
        """Whether tools that change something may be called."""
        return not self.reaches_out if self.writes is None else self.writes

    @property
    def may_try_writes(self) -> bool:
        """Whether goals that change something may be tried out to find tasks."""
        return self.may_write and (self.try_writes or not self.reaches_out)

    @model_validator(mode="after")
    def _secrets_are_no_settings(self) -> Self:
        if both := sorted({*self.env} & {*self.secrets}):
            raise ValueError(f"env and secrets both have {both}; a secret's value stands nowhere")
        return self

    @model_validator(mode="after")
    def _one_fixture_is_made_from_words(self) -> Self:
        """Tools fill the server once, so that of other fixtures nobody would read the words."""
        others = [name for name, one in self.fixtures.items() if one.description]
        if others := sorted({*others} - {"default"}):
            raise ValueError(
                f"fixtures {', '.join(others)} have a description, which only `default` may have; "
                "give them a folder, files or a setup"
            )
        return self

    @model_validator(mode="after")
    def _the_way_out_is_ours(self) -> Self:
        names = {*self.secrets, *(self.env if self.hosts else ())}
        if taken := sorted(name for name in names if is_set_by_us(name)):
            raise ValueError(
                f"secrets and env may not name {', '.join(taken)}: where a server has hosts, these "
                "variables are set to the proxy that leads to them"
            )
        return self

    @model_validator(mode="after")
    def _goals_refer_to_what_is_there(self) -> Self:
        ids = [goal.id for goal in self.goals]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"goals {sorted(repeated)} are defined twice")
        for goal in self.goals:
            slots = slots_in([goal.wish, *(call.arguments for call in goal.calls)])
            if unknown := {*goal.requires, *goal.conflicts} - {*ids} | slots - {*self.slots}:
                raise ValueError(f"goal {goal.id} names {sorted(unknown)}, which do not exist")
            if any(one.call >= len(goal.calls) for one in goal.communicate):
                raise ValueError(f"goal {goal.id} communicates from a call that it does not make")
        return self


@cache
def builtin_servers() -> dict[str, ServerConfig]:
    """The definitions that come with the project, by name; whether they can run is not asked."""
    return {config.name: config for config in definitions_in(FOLDER, ServerConfig)}
