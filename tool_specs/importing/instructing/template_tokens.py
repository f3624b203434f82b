"""Tokens of chat templates, by family of models: a description has no business with another turn.

The list is `template_tokens.json`, read from the templates that the families publish. A text that
merely speaks of a token is stopped, too: shown to the model whose token it is, it ends a turn all
the same.
"""

import json
import re
import unicodedata
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("template_tokens.json")


@cache
def template_tokens() -> dict[str, tuple[str, ...]]:
    """Family -> its tokens as its template writes them."""
    listed: dict[str, list[str]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return {family: tuple(tokens) for family, tokens in listed.items()}


def holds_template_token(text: str) -> bool:
    """Whether the text holds any token, however its bars and blanks are written."""
    return any(mark in text for mark in "<[]\uff1c\ufe64") and bool(_any().search(_compact(text)))


def _compact(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower()
    return re.sub(r"[\s_\u2581\\]+", "", folded)


@cache
def _any() -> re.Pattern[str]:
    tokens = {_compact(token) for listed in template_tokens().values() for token in listed}
    return re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))))
