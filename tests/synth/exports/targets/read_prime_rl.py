"""prime-rl: the package `renderers`, which makes tokens and masks of its rows, over the form trl.

prime-rl itself is on no package index. It knows no flags, learns every message of the assistant
from its header on, and takes nulls out of objects before it comes here.
"""

from datasets import load_dataset
from plain import Seen, expected, export, pieces, report, tokenizer, written
from renderers.base import build_training_sample
from renderers.default import DefaultRenderer


def num_tokens(text: str) -> int:
    return len(coder.encode(text, add_special_tokens=False))


coder, seen = tokenizer(), Seen()
renderer = DefaultRenderer(coder)
rows = load_dataset(str(export() / "trl"), split="train")
for row, ours in zip(rows, expected(), strict=True):
    read = build_training_sample(
        renderer,
        row["messages"],
        role_to_mask=lambda message: message["role"] == "assistant",
        tools=row["tools"],
    )
    assert coder.decode(read.token_ids) == written(ours)
    tools, *spoken = pieces(ours)
    learnt = [0] * num_tokens(tools[0])
    for (header, _), (said, _) in zip(spoken[::2], spoken[1::2], strict=True):
        learnt += [int(header == "<|assistant|>")] * num_tokens(header + said)
    assert [int(one) for one in read.loss_mask] == learnt
    seen.add(learnt)
report("renderers", "trl", **seen.counts)
