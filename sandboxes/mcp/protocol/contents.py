"""What an agent reads of the contents that a server answers with."""

from collections.abc import Iterable
from typing import Any


def text_of_blocks(blocks: Iterable[Any]) -> str:
    """The text of content blocks; a line for each that is no text."""
    return "\n".join(map(_text_of_block, blocks))


def text_of_resources(contents: Iterable[Any]) -> str:
    """The text of a resource's contents; a line for each that is no text."""
    return "\n".join(map(_text_of_resource, contents))


def _text_of_block(block: Any) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        return _text_of_resource(block.resource)
    if block.type == "resource_link":
        return f"[resource {block.uri}]"
    return f"[{block.type}]"


def _text_of_resource(content: Any) -> str:
    return content.text if hasattr(content, "text") else f"[{content.mime_type or 'binary'}]"
