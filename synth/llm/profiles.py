"""The profiles of a run's endpoints: what was found out, beneath what the user has set.

What was found belongs to a pair of endpoint and model. It is kept with the dataset, so that a run
that goes on asks in the same forms.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError
from records.files import write_atomic
from records.settings import validate_as
from synth.llm.settings.config import EndpointKey, RoleConfig
from synth.llm.settings.profile import USUAL, Profile
from synth.llm.wire.shape import is_plain

ModelAt = tuple[EndpointKey, str]
"""A model at an endpoint."""


class InUse(NamedTuple):
    """A profile as requests use it."""

    profile: Profile
    """Every entry that has a usual value is filled in."""
    is_plain: bool
    """Requests travel as they are."""


class Profiles:
    """Those of one process. `on_learned` is told of each change that a request brings."""

    def __init__(
        self,
        found: Mapping[ModelAt, Profile] | None = None,
        *,
        on_learned: Callable[[ModelAt, Profile], None] = lambda where, profile: None,
    ) -> None:
        self.found = dict(found or {})
        self.on_learned = on_learned
        self._in_use: dict[tuple[EndpointKey, str, Profile], InUse] = {}

    def of(self, config: RoleConfig, model: str) -> InUse:
        where = (config.endpoint_key, model)
        key = (*where, config.profile)
        if key not in self._in_use:
            found = self.found.get(where, Profile())
            profile = config.profile.over(found).over(USUAL)
            self._in_use[key] = InUse(profile, is_plain(profile))
        return self._in_use[key]

    def change(self, where: ModelAt, **entries: Any) -> None:
        """Entries that hold from the next request on; what a user has set stays above them."""
        known = self.found.get(where, Profile())
        self.learn(where, known.model_copy(update=entries))

    def learn(self, where: ModelAt, profile: Profile, *, tell: bool = True) -> None:
        """What is known of a model from now on: these entries, and those of before that they do not
        name, since several processes learn at once."""
        self.found[where] = profile.over(self.found.get(where, Profile()))
        self._in_use = {key: used for key, used in self._in_use.items() if key[:2] != where}
        if tell:
            self.on_learned(where, profile)


def write_profiles(path: Path, found: Mapping[ModelAt, Profile]) -> None:
    entries = [
        {
            "endpoint": endpoint._asdict(),
            "model": model,
            "profile": profile.model_dump(mode="json", exclude_none=True),
        }
        for (endpoint, model), profile in sorted(found.items(), key=lambda one: repr(one[0]))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(entries, indent=1, ensure_ascii=False).encode())


def read_profiles(path: Path) -> dict[ModelAt, Profile]:
    """Empty where there is no file. ConfigError for one that this program cannot read."""
    if not path.exists():
        return {}
    try:
        return {
            _where(entry): validate_as(Profile, entry["profile"], where=entry["model"])
            for entry in _entries(path)
        }
    except (ValueError, LookupError, TypeError, ConfigError) as error:
        raise ConfigError(
            f"{path} holds no profiles that this program can read ({error}); delete it, and the "
            "next start finds them out again"
        ) from error


def _entries(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_bytes())


def _where(entry: Mapping[str, Any]) -> ModelAt:
    given = entry["endpoint"]
    pairs = {name: tuple(map(tuple, given[name])) for name in ("headers", "query")}
    return EndpointKey(**(given | pairs)), entry["model"]
