"""NeMo Automodel: its data set of chats over the form trl."""

import json

from nemo_automodel.components.datasets.llm.chat_dataset import ChatDataset
from plain import Seen, expected, export, mask, report, tokenizer, written

coder = tokenizer()
rows = ChatDataset(str(export() / "trl/data"), coder, split="train")
seen = Seen()
for read, ours in zip((rows[n] for n in range(len(rows))), expected(), strict=True):
    # it gives inputs and, one place on, what follows them; arguments it writes as ASCII text
    ids = list(read["input_ids"])
    assert written(ours, json.dumps).startswith(coder.decode(ids))
    learnt = [int(label != -100) for label in read["labels"]]
    assert learnt[: len(ids)] == mask(ours, coder, json.dumps)[1 : len(ids) + 1]
    seen.add(learnt[: len(ids)])
report("nemo-automodel", "trl", **seen.counts)
