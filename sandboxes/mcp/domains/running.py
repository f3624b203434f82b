"""A domain as a part of a joined server: its tools over one environment, in this process."""

import json
from collections.abc import Mapping
from typing import Any

from sandboxes.mcp.domains.domain_server import tool_of
from sandboxes.mcp.protocol.questions import AnswerServer
from sandboxes.mcp.protocol.results import McpResult, clip
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations


class RunningDomain:
    """One environment from the domain's seed. A call that the domain's rules forbid is refused and
    changes nothing, as one that the tool itself refuses."""

    def __init__(self, domain: Domain) -> None:
        self._environment = DomainEnvironment.of(domain)
        self._rules = {rule.id: rule.text for rule in domain.policy}
        self._tools = [
            tool_of(program).model_dump(mode="json", by_alias=True, exclude_none=True)
            for name, program in domain.programs.items()
            if name not in domain.file.user_tools
        ]

    async def list_tools(self) -> list[dict[str, Any]]:
        """As on the wire; without those that only users call."""
        return self._tools

    async def call(
        self, name: str, arguments: Mapping[str, Any], answers: AnswerServer | None = None
    ) -> McpResult:
        """The answer as JSON. Nothing is ever asked in a call."""
        if broken := policy_violations(self._environment, name, dict(arguments)):
            rules = " ".join(self._rules[rule] for rule in broken)
            return McpResult(f"This call is against the rules: {rules}", True, "policy_violation")
        result = self._environment.call(name, dict(arguments))
        text = json.dumps(result.observation, ensure_ascii=False)
        return McpResult(clip(text), result.is_error, result.error_code)

    async def state(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Entity -> key -> row."""
        tables = self._environment.state.tables
        return {
            name: {str(row[entity.key]): dict(row) for row in tables[name].rows()}
            for name, entity in self._environment.domain.entities.items()
        }
