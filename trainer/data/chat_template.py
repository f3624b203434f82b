"""The chat format as other programs read it: a Jinja template beside the exported tokenizer.

It writes what `conversations.conversation_of` and `chat.encode_chat` make of the same messages, and
marks what is learnt with `{% generation %}`. It cannot do what needs tokens: text that spells a
special token becomes one, unless the program that renders it sees to that.
"""

import json
from pathlib import Path
from typing import Any

from trainer.data.chat_format import TEMPLATE, ChatFormat, format_in, opening
from trainer.data.tokenizer import SETTINGS

RESPONSE_TEMPLATE: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_assistant|>assistant<|im_middle|>",
    "fields": {
        "tool_calls": {
            "open_pattern": (
                r"(?:<\|tool_calls_section_begin\|>)?<\|tool_call_begin\|>"
                r"(?:functions\.)?(?P<name>[^:<]+)(?::\d+)?<\|tool_call_argument_begin\|>"
            ),
            "close_pattern": r"<\|tool_call_end\|>(?:<\|tool_calls_section_end\|>)?",
            "repeats": True,
            "content": "text",
            "transform": {
                "type": "function",
                "function": {"name": "{name}", "arguments": "{content}"},
            },
        },
        "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
        "content": {"close": ["<|im_end|>", "[EOS]"], "content": "text"},
    },
}
"""In which form reasoning and calls are written, for transformers (from 5.23), whose server reads
it from `tokenizer_config.json`. Arguments stay the text that the model wrote."""

_SOURCE = Path(__file__).with_name("chat_template.j2")


def chat_template(chat: ChatFormat) -> str:
    """The content of `chat_template.jinja` for a model that was trained on this format."""
    return opening(chat) + _SOURCE.read_text()


def has_other_template(folder: Path) -> bool:
    """Whether the model of a folder says that it speaks another chat format than ours."""
    if (folder / TEMPLATE).exists():
        return format_in(folder) is None
    try:
        settings = json.loads((folder / SETTINGS).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and bool(settings.get("chat_template"))
