"""Ready descriptions of endpoints: TOML files that hold settings of a role, by name or by path.

Those with a name lie in `configs/endpoints/`, in a checkout and in an installed wheel alike.
"""

from pathlib import Path
from typing import Any

from records.errors import ConfigError
from records.settings import read_settings, validate_as
from synth.llm.settings.config import RoleConfig

FOLDER = Path(__file__).parents[3] / "configs" / "endpoints"
"""Beside the packages: the wheel installs it there, too."""


def endpoint_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def endpoint_settings(name: str) -> dict[str, Any]:
    """The settings of a file, by its name in `configs/endpoints/` or by its path. ConfigError for a
    file that is missing or holds what is no setting of a role."""
    path = _path_of(name)
    values = read_settings(path)
    if "endpoint" in values:
        raise ConfigError(f"{path}: endpoint names a file like this one; write its settings here")
    validate_as(RoleConfig, values, where=str(path))
    return values


def _path_of(name: str) -> Path:
    if name.endswith(".toml"):
        if not Path(name).is_file():
            raise ConfigError(f"endpoint = {name!r}: there is no such file; {_names()}")
        return Path(name)
    if name not in endpoint_names():
        raise ConfigError(
            f"endpoint = {name!r} is no ready endpoint; {_names()}, or the path of a .toml file"
        )
    return FOLDER / f"{name}.toml"


def _names() -> str:
    return f"ready endpoints: {', '.join(endpoint_names())}"
