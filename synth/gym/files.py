"""Environments in files of users: one Python file that defines `ENVIRONMENT = MyQuestions()`.

A file runs in this process with all that the process may do, so only files that the user has named
are run, and none of a run that was started from the UI. What goes wrong in one is told as the
file's, with its line.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from records.errors import ConfigError, ItemError, SynthError
from synth.engine.user_code import UserFile, fault_in
from synth.gym.core.environment import GymEnvironment, GymEpisode, GymStep, GymTask
from synth.llm.wire.request import Message

FAILED = "environment_raised"
"""Reason of the ItemError of an episode whose environment failed."""

_NEEDED = ("tasks", "begin", "close")


class EnvironmentFile(UserFile):
    """A file that defines `ENVIRONMENT`."""

    WHAT = "an environment"
    EXAMPLE = "my_sums.py"


def load_environment(file: EnvironmentFile) -> GymEnvironment:
    """Run the file and take its `ENVIRONMENT`, whose faults are told as the file's: ConfigError for
    those of its tasks, ItemError for those of one episode, which costs no other."""
    path, environment = file.path, file.run().get("ENVIRONMENT")
    family = getattr(environment, "family", None)
    lacking = [name for name in _NEEDED if not callable(getattr(environment, name, None))]
    if environment is None or isinstance(environment, type) or lacking:
        raise ConfigError(
            f"{path} must define ENVIRONMENT = MyQuestions(), of a class that has "
            f"{', '.join(_NEEDED)}, such as a subclass of synth.gym.core.questions.Questions; its "
            f"ENVIRONMENT is {environment!r}"
        )
    if not isinstance(family, str) or not family.isidentifier():
        raise ConfigError(
            f"{path}: ENVIRONMENT.family is {family!r}; name it in letters, digits and _, such as "
            'family = "my_sums"'
        )
    return _Guarded(path, family, environment)


def unguarded(environment: GymEnvironment) -> GymEnvironment:
    """What `load_environment` took of a file; another environment as it is."""
    return environment.environment if isinstance(environment, _Guarded) else environment


class _Guarded:
    def __init__(self, path: str, family: str, environment: GymEnvironment) -> None:
        self.family = family
        self._path, self.environment = path, environment

    def tasks(self) -> Sequence[GymTask]:
        try:
            tasks = list(self.environment.tasks())
        except Exception as error:
            raise ConfigError(f"{self._path}: tasks() failed: {self._fault(error)}") from error
        for task in tasks:
            if not isinstance(task, GymTask):
                raise ConfigError(
                    f"{self._path}: tasks() gave {task!r}, which is no GymTask of "
                    "synth.gym.core.environment"
                )
        return tasks

    async def begin(self, task: GymTask, seed: int) -> GymEpisode:
        try:
            return _GuardedEpisode(self, await self.environment.begin(task, seed))
        except SynthError:
            raise
        except Exception as error:
            raise self.failed("begin", error) from error

    async def close(self) -> None:
        await self.environment.close()

    def failed(self, what: str, error: Exception) -> ItemError:
        return ItemError(FAILED, f"{self._path}: {what}(): {self._fault(error)}")

    def _fault(self, error: Exception) -> str:
        return fault_in(self._path, error)


class _GuardedEpisode:
    def __init__(self, environment: _Guarded, episode: GymEpisode) -> None:
        self._environment, self._episode = environment, episode
        self.messages: list[Message] = episode.messages
        self.tools: Sequence[Mapping[str, Any]] = episode.tools

    async def step(self, action: Message) -> GymStep:
        try:
            return await self._episode.step(action)
        except SynthError:
            raise
        except Exception as error:
            raise self._environment.failed("step", error) from error
        finally:
            self.messages, self.tools = self._episode.messages, self._episode.tools

    async def close(self) -> None:
        await self._episode.close()
