"""ms-swift: its preprocessor of messages over the form trl."""

import json
from typing import Any

from datasets import load_dataset
from plain import expected, export, report
from swift.dataset.preprocessor import MessagesPreprocessor


def main() -> None:
    rows = load_dataset(str(export() / "trl"), split="train")
    read = MessagesPreprocessor()(rows, load_from_cache_file=False, strict=True)
    calls = 0
    for row, ours in zip(read, expected(), strict=True):
        assert row["tools"] == ours["tools"]
        wanted = []
        for message, learnt in zip(ours["messages"], ours["train_turns"], strict=True):
            flag = False if message["role"] == "assistant" and not learnt else None
            made = [c["function"] for c in message.get("tool_calls") or ()]
            if message["content"] or not made:  # what is said stands before the calls
                wanted.append((message["role"], message["content"], flag))
            wanted += [("tool_call", one, flag) for one in made]
            calls += len(made)
        assert [(m["role"], content_of(m), m.get("loss")) for m in row["messages"]] == wanted
    report("ms-swift", "trl", rows=len(read), calls=calls)


def content_of(message: dict[str, Any]) -> Any:
    content = message["content"]
    is_text = message["role"] == "tool_call" and isinstance(content, str)
    return json.loads(content) if is_text else content


main()
