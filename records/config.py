"""Base of every configuration: frozen, strict, and clear about what decides the output."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A typo in a key is an error. `NOT_IDENTITY` names the fields that change how a run goes
    (URLs, prices, budgets, concurrency, counts) but not what a row says."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset()

    def identity(self) -> dict[str, Any]:
        """The settings that decide rows, as JSON values: what ids are digests of."""
        return {
            name: _identity_value(getattr(self, name))
            for name in type(self).model_fields
            if name not in self.NOT_IDENTITY
        }


def _identity_value(value: Any) -> Any:
    if isinstance(value, Config):
        return value.identity()
    if isinstance(value, dict):
        return {str(key): _identity_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_identity_value(item) for item in value]
    return value
