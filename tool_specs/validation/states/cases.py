"""A call and the environment in which it was made, so that it can be made again."""

from typing import Any, NamedTuple

from tool_specs.domains.interpreter import CallResult, DomainEnvironment


class FuzzCase(NamedTuple):
    """One call: `environment` is as it was before, and nothing may call on it but a snapshot."""

    environment: DomainEnvironment
    arguments: dict[str, Any]
    result: CallResult
