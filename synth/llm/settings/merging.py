"""How a role's settings come together from what is said of all roles, of its endpoint and of it.

A later one wins: the defaults of a role, those of the run's kind, `roles.all` with the file of its
endpoint below it, and the role's own with the file of its own endpoint below them. Tables such as
`profile` are merged setting by setting. Nothing of it is left in the configuration: `all` and
`endpoint` are expanded, so that what is recorded needs no file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from records.errors import ConfigError
from records.settings import merged, validate_as
from synth.llm.settings.config import OFFLINE, RoleConfig
from synth.llm.settings.endpoints import endpoint_settings

ALL = "all"
"""The entry of `roles` that holds for every role of a conversation; vectors are another thing."""

CONNECTION = ("base_url", "api_key_env", "headers", "query", "profile")
"""What belongs to one address. A role with another address takes none of it from `roles.all` or
from what was recorded, so that no key is sent to a server that it is not for."""

_PLACEHOLDER = re.compile(r"\b[A-Z]{4,}\b")
"""A word of an address that stands for one's own, such as RESOURCE."""


def expanded_roles(given: Mapping[str, Any], chat_roles: Sequence[str]) -> dict[str, Any]:
    """`roles` as it was written, with `all` and every `endpoint` expanded. What is no table stays
    as it is: a role's whole model, or a mistake that the validation names."""
    shared = given.get(ALL, {})
    if not isinstance(shared, dict):
        raise ConfigError(
            f"roles.{ALL} wants a table of settings that hold for every role, such as [roles.{ALL}]"
            f' with base_url = "http://localhost:8000/v1" below it, got {type(shared).__name__}'
        )
    validate_as(RoleConfig, shared, where=f"roles.{ALL}")
    shared = _with_endpoint(shared, ALL)
    roles = {name: own for name, own in given.items() if name != ALL}
    if shared:
        roles = {name: {} for name in chat_roles} | roles
    for name, own in roles.items():
        if isinstance(own, dict):
            whole = _with_endpoint(own, name)
            if name in chat_roles:
                whole = merged(_what_holds_for(whole, shared), whole)
            roles[name] = whole
    return roles


def recorded_for(recorded: Mapping[str, Any], own: Any) -> Mapping[str, Any]:
    """Of a role's recorded settings, those that stay where `own` is said of it now: none of what
    belongs to the recorded address where it gets another."""
    address = own.get("base_url") if isinstance(own, dict) else None
    if address is None or address == recorded.get("base_url"):
        return recorded
    return {name: value for name, value in recorded.items() if name not in CONNECTION}


def _with_endpoint(own: dict[str, Any], name: str) -> dict[str, Any]:
    """The settings over those of the endpoint's file that they name."""
    own = dict(own)
    endpoint = own.pop("endpoint", None)
    if endpoint is None:
        return own
    if not isinstance(endpoint, str):
        raise ConfigError(f"roles.{name}.endpoint = {endpoint!r}: a name or a path is text")
    whole = merged(endpoint_settings(endpoint), own)
    if own.get("base_url") is None and _PLACEHOLDER.search(whole.get("base_url", "ADDRESS")):
        like = f", like {whole['base_url']}" if "base_url" in whole else ""
        raise ConfigError(
            f"roles.{name}.endpoint = {endpoint!r}: its address is your own; give it as "
            f"roles.{name}.base_url{like}"
        )
    return whole


def _what_holds_for(own: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of what is said of all roles, the part for one with these settings of its own."""
    addresses = own.get("base_url"), shared.get("base_url")
    if None in addresses or addresses[0] == addresses[1]:
        return shared
    if addresses[0] == OFFLINE:  # models and prices are the endpoint's, too
        return {}
    return {name: value for name, value in shared.items() if name not in CONNECTION}
