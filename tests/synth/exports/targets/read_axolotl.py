"""axolotl: its strategy `chat_template` over the form trl, with the flag `train` of messages.

Arguments are text there, which it parses: from objects it takes nulls out before that."""

from axolotl.prompt_strategies.chat_template import ChatTemplatePrompter, ChatTemplateStrategy
from datasets import load_dataset
from plain import TEMPLATE, Seen, expected, export, mask, report, tokenizer, written

coder = tokenizer()
strategy = ChatTemplateStrategy(
    ChatTemplatePrompter(coder, TEMPLATE, max_length=100_000, message_field_training="train"),
    coder,
    train_on_inputs=False,
    sequence_len=100_000,
    roles_to_train=["assistant"],
    train_on_eos="turn",
    eot_tokens=["<|end|>"],
)
rows, seen = load_dataset(str(export() / "trl-text"), split="train"), Seen()
for row, ours in zip(rows, expected(), strict=True):
    read = strategy.tokenize_prompt(row)
    assert coder.decode(read["input_ids"]) == written(ours)
    learnt = [int(label != -100) for label in read["labels"]]
    assert learnt == mask(ours, coder)
    seen.add(learnt)
report("axolotl", "trl --arguments text", **seen.counts)
