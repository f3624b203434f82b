"""A server's resources and prompts as tools that read, by the names that clients give them.

No server lists these tools: they are made here from what it says it has.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from mcp import Client, MCPError
from mcp_types import ServerCapabilities

from records.errors import ItemError
from sandboxes.mcp.protocol.contents import text_of_blocks, text_of_resources
from sandboxes.mcp.protocol.pages import BoundRequest, Listed, all_pages
from tool_specs.importing.names import mapped_names
from tool_specs.language.schemas import Validator

OfferKind = Literal["list_resources", "read_resource", "list_prompts", "get_prompt"]


class _Made(NamedTuple):
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


_URI = {
    "type": "string",
    "minLength": 1,
    "description": "URI of the resource as it is listed, or a listed template with its "
    "placeholders filled in.",
}
_NAME = {"type": "string", "minLength": 1, "description": "Name of the prompt as it is listed."}
_ARGUMENTS = {
    "type": "object",
    "description": "Values of the prompt's arguments by their names, all of them text.",
    "additionalProperties": {"type": "string"},
}

_TOOLS: dict[OfferKind, _Made] = {
    "list_resources": _Made(
        "List the resources of the server, and the templates of URIs that lead to more of them.", {}
    ),
    "read_resource": _Made(
        "Read one resource of the server. Returns its content.", {"uri": _URI}, ("uri",)
    ),
    "list_prompts": _Made(
        "List the prompts that the server has ready, and the arguments that each takes.", {}
    ),
    "get_prompt": _Made(
        "Get one prompt of the server with its arguments filled in. Returns its messages.",
        {"name": _NAME, "arguments": _ARGUMENTS},
        ("name",),
    ),
}

_TOLD = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments")
"""What is told of a listed resource, template or prompt."""


def names_of_offers(
    server: str, capabilities: ServerCapabilities, tools: Iterable[str]
) -> dict[str, OfferKind]:
    """Name -> what it does, for what the server says it has. `tools`: the names of its own tools;
    a name that one of them has, or is mapped to, gets the server's name before it."""
    own = mapped_names(tools)
    taken = {*own, *own.values()}
    found: dict[str, OfferKind] = {}
    for kind in _TOOLS:
        has = capabilities.resources if "resource" in kind else capabilities.prompts
        name: str = kind
        while name in taken:
            name = f"{server}_{name}"
        if has is not None:
            found[name] = kind
    return found


async def offered_tools(
    client: Client, offers: Mapping[str, OfferKind], server: str, asking: BoundRequest
) -> list[dict[str, Any]]:
    """Those of the offers behind which there is something, in the form of `tools/list`."""
    has_resources = has_prompts = False
    kinds = {*offers.values()}
    if "list_resources" in kinds:
        has_resources = bool(await _listed(client, "resources", server, asking)) or bool(
            await _listed(client, "resource_templates", server, asking)
        )
    if "list_prompts" in kinds:
        has_prompts = bool(await _listed(client, "prompts", server, asking))
    return [
        {
            "name": name,
            "description": _TOOLS[kind].description,
            "inputSchema": _TOOLS[kind].schema(),
            "annotations": {"readOnlyHint": True},
        }
        for name, kind in offers.items()
        if (has_resources if "resource" in kind else has_prompts)
    ]


async def _listed(
    client: Client, what: Listed, server: str, asking: BoundRequest
) -> list[dict[str, Any]]:
    """None where the server refuses the list, or has none that can be read: that costs nobody its
    tools."""
    try:
        return await all_pages(client, what, server, asking)
    except (MCPError, ItemError):
        return []


def wrong_arguments(kind: OfferKind, arguments: Mapping[str, Any]) -> str | None:
    """Why the tool cannot be called so, for the agent to read."""
    return "; ".join(Validator(_TOOLS[kind].schema()).problems(dict(arguments))) or None


async def text_of_offer(
    client: Client, kind: OfferKind, arguments: Mapping[str, Any], server: str, asking: BoundRequest
) -> str:
    """What the tool returns; `arguments` fit its schema. Raises what asking the server raises."""
    if kind == "list_resources":
        resources = await all_pages(client, "resources", server, asking)
        templates = await _listed(client, "resource_templates", server, asking)
        return _told({"resources": resources, "resourceTemplates": templates})
    if kind == "list_prompts":
        return _told({"prompts": await all_pages(client, "prompts", server, asking)})
    async with asking():
        if kind == "read_resource":
            read = await client.read_resource(arguments["uri"], cache_mode="bypass")
            return text_of_resources(read.contents)
        prompt = await client.get_prompt(arguments["name"], arguments.get("arguments") or {})
    return "\n\n".join(f"{m.role}: {text_of_blocks([m.content])}" for m in prompt.messages)


def _told(lists: Mapping[str, list[dict[str, Any]]]) -> str:
    shown = {
        name: [{key: one[key] for key in _TOLD if key in one} for one in listed]
        for name, listed in lists.items()
    }
    return json.dumps(shown, ensure_ascii=False)
