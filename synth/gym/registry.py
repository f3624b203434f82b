"""Which environments there are, by the name of their family, and all of one run together."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import Field, ValidationError, field_validator

from records.config import Config
from records.digest import canonical_json
from records.errors import ConfigError
from records.files import make_folder
from synth.gym.core.asking import ROLES, Asking
from synth.gym.core.environment import GymEnvironment, GymSplit, GymTask
from synth.gym.files import EnvironmentFile, load_environment
from synth.gym.grounding.environment import GroundedAnswers
from synth.gym.grounding.settings import GroundingSettings
from synth.gym.instructions.environment import Instructions, InstructionsConfig
from synth.gym.maths.puzzles import Puzzles, PuzzlesSettings
from synth.gym.maths.reasoning import ReasoningQuestions, ReasoningSettings
from synth.gym.maths.rows import MathsQuestions, MathsSettings
from synth.gym.open_prompts import OpenPrompts, OpenPromptsSettings
from synth.gym.programs.programs import Programs
from synth.gym.programs.settings import ProgramSettings
from synth.gym.safety.environment import Safety
from synth.gym.safety.settings import SafetySettings
from synth.gym.tool_use.settings import ToolUseSettings
from synth.gym.tool_use.tool_use import ToolUse
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.llm.settings.merging import expanded_roles


class GymSurroundings(NamedTuple):
    """What a run has for its environments."""

    folder: Path | None = None
    """To keep things in, if there is one."""
    asking: Asking = Asking()
    """The models that play roles; by itself none."""


class Family(NamedTuple):
    settings: type[Config]
    make: Callable[[Any, GymSurroundings], GymEnvironment]


def _tool_use(settings: ToolUseSettings, run: GymSurroundings) -> GymEnvironment:
    return ToolUse(settings, journal=run.folder and run.folder / "tool_use.sqlite")


FAMILIES: Mapping[str, Family] = {
    "grounding": Family(
        GroundingSettings, lambda settings, run: GroundedAnswers(settings, asking=run.asking)
    ),
    "instructions": Family(InstructionsConfig, lambda settings, _: Instructions(settings)),
    "maths": Family(MathsSettings, lambda settings, _: MathsQuestions(settings)),
    "open": Family(OpenPromptsSettings, lambda settings, _: OpenPrompts(settings)),
    "programs": Family(ProgramSettings, lambda settings, _: Programs(settings)),
    "puzzles": Family(PuzzlesSettings, lambda settings, _: Puzzles(settings)),
    "reasoning": Family(ReasoningSettings, lambda settings, _: ReasoningQuestions(settings)),
    "safety": Family(SafetySettings, lambda settings, run: Safety(settings, run.asking)),
    "tool_use": Family(ToolUseSettings, _tool_use),
}
"""Name of a family -> what it is made of. A family is added with one line."""


class GymConfig(Config):
    """Which environments a run plays."""

    families: dict[str, Any] = Field(default_factory=dict)
    """Name of a family -> its settings, such as `families.reasoning.seed = 1`. `docs/gym.md` lists
    the families."""
    files: tuple[EnvironmentFile, ...] = ()
    """Python files that each define an environment of the user's own. They run with all that this
    program may do, so a run that is started from the UI has none."""
    roles: dict[str, RoleConfig] = Field(default_factory=dict)
    """Models that environments ask, by role, as in any run: `judge` decides what code leaves open,
    `attacker` words what the users of `safety` say. Without a judge, an episode that needs it has
    no reward. `base_url` has to be said, also where it is `offline`, whose rules are for dry
    runs."""
    budget: BudgetConfig = BudgetConfig()
    """Hard limits of what the roles may cost, over all that the run's folder holds; the only stage
    is `gym_roles`. What does not fit has no reward."""

    @field_validator("roles", mode="before")
    @classmethod
    def _whole_roles(cls, roles: Any) -> Any:
        if not isinstance(roles, Mapping):
            return roles
        whole = expanded_roles(dict(roles), ROLES)
        for name, own in whole.items():
            if name not in ROLES:
                raise ValueError(f"there is no role {name!r}; there are {', '.join(ROLES)}")
            if isinstance(own, Mapping) and "base_url" not in own:
                raise ValueError(
                    f"{name} has no base_url: the /v1 URL of a server, or `offline` for a dry run"
                )
        return whole

    @field_validator("families", mode="before")
    @classmethod
    def _known(cls, families: Any) -> Any:
        if not isinstance(families, Mapping):
            raise ValueError("families are named, each with a table of settings")
        known: dict[str, Config] = {}
        for name, settings in families.items():
            if name not in FAMILIES:
                raise ValueError(f"there is no family {name!r}; there are {', '.join(FAMILIES)}")
            kind = FAMILIES[name].settings
            try:
                known[name] = kind.model_validate(
                    settings.model_dump() if isinstance(settings, Config) else settings
                )
            except ValidationError as error:
                raise ValueError(f"{name}: {error}") from error
        return known


class Gym:
    """The environments of a run."""

    def __init__(
        self, environments: Sequence[GymEnvironment], asking: Asking | None = None
    ) -> None:
        """`asking` is closed with it."""
        self._asking = asking
        names = Counter(environment.family for environment in environments)
        if twice := sorted(name for name, count in names.items() if count > 1):
            raise ConfigError(
                f"several environments are called {', '.join(twice)}; give the one in your file "
                "another `family`"
            )
        self.environments: Mapping[str, GymEnvironment] = {
            environment.family: environment for environment in environments
        }

    @classmethod
    def of(cls, config: GymConfig, folder: Path | None = None, *, live: int | None = None) -> "Gym":
        """`folder`: where environments keep what is to outlive a run that is killed, such as what
        simulated users said. `live`: sandboxes of each environment at once whose settings do not
        say it themselves; None: what this machine holds. ConfigError for a file that is no
        environment, for settings that an environment refuses, and where there is none at all."""
        if not config.families and not config.files:
            raise ConfigError(
                f"gym names no environment; set families.NAME, one of {', '.join(FAMILIES)}, or "
                "files"
            )
        if folder is not None:
            make_folder(folder)
        asking = Asking(
            config.roles, journal=folder and folder / "roles.sqlite", budget=config.budget
        )
        run = GymSurroundings(folder, asking)
        try:
            environments = [
                FAMILIES[name].make(_with_live(own, live), run)
                for name, own in config.families.items()
            ]
            environments += [load_environment(file) for file in config.files]
            return cls(environments, asking)
        except BaseException:
            asking.close_now()
            raise

    def tasks(self) -> list[GymTask]:
        """Of all families, in their order. ConfigError for a family without tasks, and for tasks
        that are not as `GymTask` says or of which two have one id."""
        tasks: list[GymTask] = []
        known: dict[str, str] = {}
        for family, environment in self.environments.items():
            own = environment.tasks()
            if not own:
                raise ConfigError(f"gym family {family!r} has no tasks; ask for some, or leave it")
            for task in own:
                if why := _problem_with(task, family):
                    raise ConfigError(f"gym family {family!r}, task {task.task_id!r}: {why}")
                if task.task_id in known:
                    raise ConfigError(
                        f"gym family {family!r}: task id {task.task_id!r} comes again (first in "
                        f"{known[task.task_id]!r}); an id is a digest of what decides the task"
                    )
                known[task.task_id] = family
            tasks += own
        return tasks

    async def close(self) -> None:
        """All of them, whatever one of them raises."""
        async with AsyncExitStack() as stack:
            if self._asking is not None:
                stack.push_async_callback(self._asking.close)
            for environment in self.environments.values():
                stack.push_async_callback(environment.close)


def _with_live(settings: Config, live: int | None) -> Config:
    says_none = isinstance(settings, ToolUseSettings | ProgramSettings) and settings.live is None
    return settings.model_copy(update={"live": live}) if says_none else settings


def _problem_with(task: GymTask, family: str) -> str | None:
    if task.family != family:
        return f"its family is {task.family!r}"
    if task.split not in get_args(GymSplit):
        return f"its split is {task.split!r}; there are {', '.join(get_args(GymSplit))}"
    if not task.task_id or not isinstance(task.task_id, str):
        return "its id is no text"
    if not all(isinstance(tag, str) and ":" in tag for tag in task.tags):
        return f"its tags are {task.tags!r}; a tag is FACET:VALUE, such as kind:sum"
    try:
        canonical_json(task.body)
    except (TypeError, ValueError) as error:
        return f"its body is no JSON: {error}"
    return None
