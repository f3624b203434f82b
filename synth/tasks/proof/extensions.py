"""Extensions: Python files of the user's own that add kinds of criteria, and criteria to tasks.

A file defines `EXTENSION = Extension(kinds=..., criteria=...)`. It runs in this process with all
that the process may do, so only files that the user has named are run, and none of a run that was
started from the UI. The digest of its content is part of every id that it has a say in.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from records.errors import ConfigError
from synth.engine.user_code import UserFile, fault_in
from synth.rubrics.built_in import BUILT_IN, Episode, Kind, Kinds, Verdict
from synth.rubrics.criteria import Criterion
from synth.tasks.goals.goals import Draft


def _none(_: Draft) -> Iterable[Criterion]:
    return ()


@dataclass(frozen=True)
class Extension:
    """What an extension file defines as `EXTENSION`."""

    kinds: Sequence[Kind[Any]] = ()
    criteria: Callable[[Draft], Iterable[Criterion]] = _none
    """Criteria to add to the rubric of a task, which has not been put into words yet. The task is
    kept only if its reference plan passes them. A function of its argument alone."""


class ExtensionFile(UserFile):
    """A file that defines `EXTENSION`."""

    WHAT = "an extension"
    EXAMPLE = "my_kinds.py"


@dataclass(frozen=True)
class Extensions:
    """Those of a run, loaded."""

    kinds: Kinds = BUILT_IN
    """The built-in ones and theirs."""
    digests: tuple[str, ...] = ()
    """Parts of the ids of tasks; none where there are no extensions."""
    loaded: tuple[tuple[str, Extension], ...] = ()
    """(path, what it defines)."""

    def criteria(self, draft: Draft) -> list[Criterion]:
        """What they add to a task's rubric, in the order of the files. ConfigError for a file that
        fails, or that adds what cannot be checked."""
        added: list[Criterion] = []
        for path, extension in self.loaded:
            try:
                own = list(extension.criteria(draft))
            except Exception as error:
                raise ConfigError(
                    f"{path}: criteria(draft) failed: {fault_in(path, error)}"
                ) from error
            for criterion in own:
                if not isinstance(criterion, Criterion):
                    raise ConfigError(
                        f"{path}: criteria(draft) gave {criterion!r}, which is no Criterion; "
                        "make one with KIND.criterion(id, words, check, weight=..., mandatory=...)"
                    )
                if why := self.kinds.problem_with(criterion):
                    raise ConfigError(f"{path}: {why}")
            added += own
        return added


NO_EXTENSIONS = Extensions()


def load_extensions(files: Iterable[ExtensionFile]) -> Extensions:
    """Run the files and take their `EXTENSION`. ConfigError says which file, line and fault."""
    files = tuple(files)
    if not files:
        return NO_EXTENSIONS
    loaded = [(file.path, _load(file.path, file.sha256)) for file in files]
    digests = tuple(file.sha256[:16] for file in files)
    kinds = BUILT_IN
    for (path, extension), own in zip(loaded, digests, strict=True):
        known = kinds.by_name.values()
        try:
            kinds = Kinds([*known, *extension.kinds], version=f"{kinds.version}+{own}")
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
    return Extensions(kinds, digests, tuple(loaded))


@cache
def _load(path: str, sha256: str) -> Extension:
    extension = ExtensionFile.model_construct(path=path, sha256=sha256).run().get("EXTENSION")
    if not isinstance(extension, Extension):
        raise ConfigError(
            f"{path} must define EXTENSION = Extension(kinds=[...], criteria=...), of "
            f"synth.tasks.proof.extensions; its EXTENSION is {extension!r}"
        )
    for kind in extension.kinds:
        if not isinstance(kind, Kind):
            raise ConfigError(
                f"{path}: kinds holds {kind!r}, which is no Kind of synth.rubrics.built_in"
            )
    kinds = tuple(_guarded(kind, path) for kind in extension.kinds)
    return replace(extension, kinds=kinds)


def _guarded(kind: Kind[Any], path: str) -> Kind[Any]:
    """The kind, whose faults are told as faults of the file and not of this project."""

    def verdict(check: Any, episode: Episode) -> Verdict:
        what = f"{path}: kind {kind.name!r}"
        try:
            found = kind.verdict(check, episode)
        except Exception as error:
            raise ConfigError(f"{what} failed: {fault_in(path, error)}") from error
        fits = isinstance(found, Verdict) and isinstance(found.evidence, str)
        if not fits or not 0.0 <= found.score <= 1.0 or found.passed != (found.score == 1.0):
            raise ConfigError(
                f"{what} gave {found!r}; a Verdict has passed, a score from 0 to 1 that is 1 "
                "exactly when passed, and evidence in words"
            )
        return found

    return replace(kind, verdict=verdict)
