"""What the readers share: a chat template, a tokenizer for it, and what both ought to make of rows.

Nothing of this project is imported here: the readers run where it is not installed.
"""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

TEMPLATE = """
{%- if tools %}{{ "<|tools|>" }}
  {%- for tool in tools %}{{ tool | tojson }}{% endfor %}{{ "<|end|>" }}
{%- endif %}
{%- for message in messages %}
  {{- "<|" ~ message.role ~ "|>" }}
  {%- set said = namespace(text=message.content or "") %}
  {%- for call in message.tool_calls or [] %}
    {%- set given = call.function.arguments %}
    {%- set given = given if given is string else given | tojson %}
    {%- set said.text = said.text ~ "<|call|>" ~ call.function.name ~ " " ~ given %}
  {%- endfor %}
  {%- if message.role == "assistant" and message.train is not false %}
    {%- generation %}{{ said.text ~ "<|end|>" }}{% endgeneration %}
  {%- else %}{{ said.text ~ "<|end|>" }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|assistant|>" }}{% endif %}"""
"""As chat templates are that trainers learn with; what has `train` false is not marked."""

MARKS = [f"<|{name}|>" for name in ("system", "user", "assistant", "tool", "tools", "call", "end")]


def tokenizer() -> Any:
    """Every letter is a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": MARKS, "pad_token": "<|pad|>"})
    made.chat_template = TEMPLATE
    return made


def dumped(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pieces(row: dict[str, Any], arguments: Callable[[Any], str] = dumped) -> list[tuple[str, bool]]:
    """(text, whether it is learnt) of a row of the form trl, by hand and not by the template;
    `arguments` writes those of a call, as it is done on the way to the template."""
    made = [("<|tools|>" + "".join(map(dumped, row["tools"])) + "<|end|>", False)]
    for message, learnt in zip(row["messages"], row["train_turns"], strict=True):
        said = message["content"] + "".join(
            f"<|call|>{call['function']['name']} {arguments(call['function']['arguments'])}"
            for call in message.get("tool_calls") or ()
        )
        made += [(f"<|{message['role']}|>", False), (f"{said}<|end|>", learnt)]
    return made


def written(row: dict[str, Any], arguments: Callable[[Any], str] = dumped) -> str:
    return "".join(text for text, _ in pieces(row, arguments))


def mask(row: dict[str, Any], coder: Any, arguments: Callable[[Any], str] = dumped) -> list[int]:
    """Our flags on the tokens of our messages."""
    return [
        int(learnt)
        for text, learnt in pieces(row, arguments)
        for _ in coder.encode(text, add_special_tokens=False)
    ]


def export() -> Path:
    """The folder that holds an export in each form, and `expected.json`: rows of the form trl."""
    return Path(sys.argv[1])


def expected() -> list[dict[str, Any]]:
    return json.loads((export() / "expected.json").read_text())


class Seen:
    """What a program has read of rows whose tokens are compared, counted."""

    def __init__(self) -> None:
        self.counts = {"rows": 0, "tokens": 0, "learnt": 0}

    def add(self, learnt: list[int]) -> None:
        """A row, by its mask."""
        for name, number in zip(self.counts, (1, len(learnt), sum(learnt)), strict=True):
            self.counts[name] += number


def report(package: str, form: str, **found: int) -> None:
    """The last line of a reader: what of an export in a form it has found as it ought to be."""
    about = {"package": package, "version": version(package), "format": form}
    print(json.dumps(about | found))  # noqa: T201
