"""A domain as an MCP server: its tools over one environment whose state lasts as long as the
server.

Any agent framework can so work in our environments. The rows of each entity are resources, which
shows what calls changed; a call that the tool refuses is a result with `isError`, as the protocol
asks.
"""

import json
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types.jsonrpc import INVALID_PARAMS

from tool_specs.domains.catalogue import annotations
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Program

PAGE = 100
"""Tools of one page of tools/list."""

_SCHEME = "world"


class DomainServer:
    """One environment, shared by all sessions: what one client does, the next one sees."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.environment = domain, DomainEnvironment.of(domain)
        self._tools = [tool_of(program) for program in domain.programs.values()]
        self.server: Server[Any] = Server(
            domain.name,
            title=domain.title,
            instructions=instructions_of(domain),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    async def run_stdio(self) -> None:
        """Until standard input ends."""
        async with stdio_server() as (read, write):
            await self.server.run(read, write, self.server.create_initialization_options())

    async def run_http(self, port: int) -> None:
        """Streamable HTTP on loopback at /mcp, until interrupted. Port 0 takes a free one."""
        import uvicorn

        app = self.server.streamable_http_app()
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port)).serve()

    async def _list_tools(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = _offset(params.cursor if params else None, len(self._tools))
        end = start + PAGE
        following = str(end) if end < len(self._tools) else None
        return types.ListToolsResult(tools=self._tools[start:end], next_cursor=following)

    async def _call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = self.environment.call(params.name, params.arguments or {})
        text = json.dumps(result.observation, ensure_ascii=False)
        whole = isinstance(result.observation, dict) and not result.is_error
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=result.observation if whole else None,
            is_error=result.is_error,
        )

    async def _list_resources(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        entities = self.domain.entities.items()
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=name,
                    uri=f"{_SCHEME}://{self.domain.name}/{name}",
                    description=entity.description,
                    mime_type="application/json",
                )
                for name, entity in entities
            ]
        )

    async def _read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        entity = uri.removeprefix(f"{_SCHEME}://{self.domain.name}/")
        if entity not in self.domain.entities:
            raise MCPError(INVALID_PARAMS, f"no resource {uri!r}")
        rows = json.dumps(self.environment.rows(entity), ensure_ascii=False)
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=rows)
        return types.ReadResourceResult(contents=[content])


def tool_of(program: Program) -> types.Tool:
    """As `tools/list` has it."""
    schema = program.output_schema
    return types.Tool(
        name=program.spec.name,
        description=program.spec.description,
        input_schema=program.spec.input_schema(),
        output_schema=schema if schema.get("type") == "object" else None,
        annotations=types.ToolAnnotations.model_validate(annotations(program)),
    )


def instructions_of(domain: Domain) -> str:
    """What an agent has to know: the place, its clock, and the rules that no tool enforces."""
    rules = "".join(f"\n- {rule.text}" for rule in domain.policy)
    return f"{domain.description}\nIt is {domain.now}." + (f"\nRules:{rules}" if rules else "")


def _offset(cursor: str | None, num_tools: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 6 or int(cursor) >= num_tools:
        raise MCPError(INVALID_PARAMS, f"unknown cursor {cursor[:40]!r}")
    return int(cursor)
