"""What a model is told of conversations beside their messages; it travels in the chat template."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from records.chat.declarations import STYLES, Style
from records.chat.k2 import KIMI
from records.config import Config
from records.errors import ConfigError

TEMPLATE = "chat_template.jinja"
"""Beside the tokenizer of an exported model; its first lines are `opening`."""


class ChatFormat(Config):
    """How a conversation is written, in training as for an answer."""

    declarations: Style = "json"
    """How tools are declared."""
    system: str = KIMI
    """System message of a conversation that has none; empty: it stays without."""
    thinking: bool = False
    """Whether every answer begins with `<think>...</think>`, as Kimi K2-Thinking's do."""


_OPENING = re.compile(
    r'\{%- set declarations = "(\w+)" -%\}\n'
    r'(?:\{%- set default_system = (".*") -%\}\n\{%- set thinking = (true|false) -%\}\n)?'
)


def opening(chat: ChatFormat) -> str:
    """The lines of a chat template that set the format."""
    system = json.dumps(chat.system, ensure_ascii=False)
    return (
        f'{{%- set declarations = "{chat.declarations}" -%}}\n'
        f"{{%- set default_system = {system} -%}}\n"
        f"{{%- set thinking = {json.dumps(chat.thinking)} -%}}\n"
    )


def format_in(folder: Path) -> ChatFormat | None:
    """What the folder's chat template says; None where there is none of ours. A template of an
    earlier version sets the declarations alone, and writes no system message of its own."""
    try:
        found = _OPENING.match((folder / TEMPLATE).read_text())
    except (OSError, ValueError):
        return None
    if found is None or found[1] not in STYLES:
        return None
    system = json.loads(found[2] or '""')
    values = {"declarations": found[1], "system": system, "thinking": found[3] == "true"}
    return ChatFormat.model_validate(values)


def format_of(model: Path) -> ChatFormat:
    """How conversations were written when the model was trained: by its chat template, or by the
    settings of its run; Kimi K2's format where that is not known. ConfigError for settings that
    are none."""
    for folder in (model, model / "model"):
        if (own := format_in(folder)) is not None:
            return own
    for folder in (model, model.parent):
        try:
            known = json.loads((folder / "config.json").read_text())
        except (OSError, ValueError):
            continue
        own = known.get("data") if isinstance(known, dict) else None
        if isinstance(own, dict) and "declarations" in own:
            return _of_run(own, folder / "config.json")
    return ChatFormat()


def _of_run(data: dict[str, Any], where: Path) -> ChatFormat:
    if data["declarations"] not in STYLES:
        raise ConfigError(
            f"{where}: data.declarations = {data['declarations']!r}; allowed: {', '.join(STYLES)}"
        )
    try:
        return ChatFormat(declarations=data["declarations"], system=data.get("system", ""))
    except ValidationError as error:
        raise ConfigError(f"{where}: data.system = {data['system']!r} is no text") from error
