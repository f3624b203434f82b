"""What the log of the offline model's server holds (`offline_llm.server.request_log`)."""

import json
from pathlib import Path
from typing import NamedTuple


class Logged(NamedTuple):
    """What a log holds."""

    asked: dict[str, int]
    """Digest of a request's body -> how often it came."""
    tokens: int
    """Prompt and completion tokens of everything answered with 200."""
    prompt_tokens: int
    completion_tokens: int
    open_requests: int
    """Asked and not answered."""

    @property
    def requests(self) -> int:
        return sum(self.asked.values())


def read_log(path: Path) -> Logged:
    """The log so far; a last line that is still being written is left out."""
    asked: dict[str, int] = {}
    prompt = completion = num_open = 0
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        entry = json.loads(line)
        if entry["event"] == "asked":
            asked[entry["digest"]] = asked.get(entry["digest"], 0) + 1
            num_open += 1
        else:
            prompt += entry["prompt_tokens"]
            completion += entry["completion_tokens"]
            num_open -= 1
    return Logged(asked, prompt + completion, prompt, completion, num_open)
