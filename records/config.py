"""Base of every configuration: frozen, strict, and clear about what decides the output."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

RENAMED_ERROR = "renamed"
"""Type of the error about a setting under its earlier name."""


class Config(BaseModel):
    """A typo in a key is an error. `NOT_IDENTITY` names the fields that change how a run goes
    (URLs, prices, budgets, concurrency, counts) but not what a row says. `ADDED_LATER` names those
    that rows were made without. `RENAMED` has the earlier names of fields: they are refused with
    today's, and identities are made from them, so that every id from before stays what it is."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset()
    RENAMED: ClassVar[dict[str, str]] = {}
    """Today's name of a field -> its earlier one, which identities are made from."""
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Settings that are younger than stored rows, each with what `identity` gives for the value
    that the program had before there was the setting. They are part of the identity only where
    they differ from it, so every id that was made before stays what it is. Names are those of the
    identity. An entry stays, also when the default becomes another, unless the version of the stage
    whose rows it decides changes with it; a subclass takes over its parent's entries."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_earlier_names(cls, values: Any) -> Any:
        for name, earlier in cls.RENAMED.items():
            if isinstance(values, dict) and earlier in values:
                names = {"earlier": earlier, "name": name}
                raise PydanticCustomError(RENAMED_ERROR, "{earlier} is called {name} now", names)
        return values

    def identity(self) -> dict[str, Any]:
        """The settings that decide rows, as JSON values: what ids are digests of."""
        values = {
            self.RENAMED.get(name, name): _identity_value(getattr(self, name))
            for name in type(self).model_fields
            if name not in self.NOT_IDENTITY
        }
        before = self.ADDED_LATER
        return {
            name: value
            for name, value in values.items()
            if name not in before or value != before[name]
        }


def _identity_value(value: Any) -> Any:
    if isinstance(value, Config):
        return value.identity()
    if isinstance(value, dict):
        return {str(key): _identity_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_identity_value(item) for item in value]
    return value
