"""Kinds of criteria: what a rubric may ask for, and the code that tells whether it was met.

A kind is a name, the model of its `check`, and a function of a check and an episode. The built-in
ones (`synth.rubrics.built_in`) and those of an extension are made alike. `nl` is the one kind
without code.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from records.errors import ConfigError
from synth.rubrics.criteria import JUDGED, NAME, Criterion, Rubric, Strict
from synth.rubrics.episode import Episode, Verdict

CheckT = TypeVar("CheckT", bound=Strict)


@dataclass(frozen=True, slots=True)
class Kind(Generic[CheckT]):
    name: str
    """A snake_case word: column `kind` of `verdicts`, and part of drop reasons."""

    words: str
    """What it asks of an episode, in a sentence: for errors and for people who read them."""

    check: type[CheckT]
    """What a criterion of the kind says in its `check`."""

    verdict: Callable[[CheckT, Episode], Verdict]
    """Total, and without effect: it also sees episodes that are still going on."""

    def criterion(
        self, criterion_id: str, words: str, check: CheckT, *, weight: float, mandatory: bool
    ) -> Criterion:
        return Criterion(
            id=criterion_id,
            words=words,
            weight=weight,
            mandatory=mandatory,
            kind=self.name,
            check=check.model_dump(mode="json"),
        )


class Kinds:
    """The kinds that are known, by name, and the checking of criteria by them."""

    def __init__(self, kinds: Iterable[Kind[Any]], *, version: str) -> None:
        """`version` names the code of all of them; it stands with every verdict."""
        self.version = version
        self._kinds: dict[str, Kind[Any]] = {}
        for kind in kinds:
            if not re.fullmatch(NAME, kind.name):
                raise ConfigError(f"kind {kind.name!r} is no snake_case word")
            if kind.name in (*self._kinds, JUDGED):
                raise ConfigError(f"kind {kind.name!r} is defined twice; give one another name")
            self._kinds[kind.name] = kind

    @property
    def by_name(self) -> Mapping[str, Kind[Any]]:
        return self._kinds

    def problem_with(self, criterion: Criterion) -> str | None:
        """Why the criterion cannot be checked; None where it can, by code or by a judge."""
        try:
            if criterion.kind != JUDGED:
                self._read(criterion)
        except ConfigError as error:
            return str(error)
        return None

    def check(self, criterion: Criterion, episode: Episode) -> Verdict | None:
        """The verdict on one criterion, or None where only a judge can tell. ConfigError for one
        that is no kind's (see `problem_with`)."""
        if criterion.kind == JUDGED:
            return None
        kind, check = self._read(criterion)
        return kind.verdict(check, episode)

    def _read(self, criterion: Criterion) -> tuple[Kind[Any], Strict]:
        what = f"criterion {criterion.id!r}"
        kind = self._kinds.get(criterion.kind)
        if kind is None:
            known = ", ".join([*self._kinds, JUDGED])
            raise ConfigError(f"{what}: there is no kind {criterion.kind!r}; kinds: {known}")
        try:
            return kind, kind.check.model_validate(criterion.check or {})
        except ValidationError as error:
            (first, *_) = error.errors()
            place = ".".join(map(str, ("check", *first["loc"])))
            raise ConfigError(
                f"{what}: {place} = {first['input']!r}: {first['msg']} ({kind.name}: {kind.words})"
            ) from error

    def check_all(self, rubric: Rubric, episode: Episode) -> dict[str, Verdict]:
        """Verdicts of all criteria that code can check, by criterion id, in rubric order."""
        verdicts = ((c.id, self.check(c, episode)) for c in rubric.criteria)
        return {i: verdict for i, verdict in verdicts if verdict is not None}
