"""TRL takes what is exported for it: a real step of its trainers, and what it makes of each token.

The model and its tokenizer are made on the spot; every letter of the data is a token.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from synth.exports.export import export_dataset
from tests.synth.exports.attempts import write_attempts
from tests.synth.exports.loading import load

TEMPLATE = """
{%- if tools %}{{ "<|tools|>" }}
  {%- for tool in tools %}{{ tool | tojson }}{% endfor %}{{ "<|end|>" }}
{%- endif %}
{%- for message in messages %}
  {{- "<|" ~ message.role ~ "|>" }}
  {%- set said = namespace(text=message.content or "") %}
  {%- for call in message.tool_calls or [] %}
    {%- set function = call.function %}
    {%- set called = function.name ~ " " ~ (function.arguments | tojson) %}
    {%- set said.text = said.text ~ "<|call|>" ~ called %}
  {%- endfor %}
  {%- if message.role == "assistant" and message.train is not false %}
    {%- generation %}{{ said.text ~ "<|end|>" }}{% endgeneration %}
  {%- else %}{{ said.text ~ "<|end|>" }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|assistant|>" }}{% endif %}"""
"""As chat templates are that TRL trains with; what a message's `train` takes out is not marked."""

MARKS = [f"<|{name}|>" for name in ("system", "user", "assistant", "tool", "tools", "call", "end")]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trl")
    dataset = write_attempts(folder / "data")
    without = [False, False, False, False, False, True, False, True]
    rows = [
        {**row, "train_turns": without} if row["accepted"] else row
        for row in dataset.rows("curation")
        if row["curation_id"] == "curation-2"
    ]
    for row in rows:
        row["curation_id"] = "curation-3"
    dataset.commit(run_id="run-1", stage="curation", shard=5, tables={"curation": rows})
    for name in ("trl", "preferences"):
        export_dataset(dataset, folder / name, format=name)
    return folder


def tokenizer_for() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS, "pad_token": "<|pad|>"})
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def model_for(tokenizer: Any) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **size,
    )
    return LlamaForCausalLM(config)


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "output_dir": str(folder / "out"),
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "max_length": 4096,
        **more,
    }


@pytest.mark.slow
def test_a_step_of_sft_learns_the_tokens_that_may_be_learnt(exported: Path, tmp_path: Path) -> None:
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    rows = load(exported / "trl", split="train")
    tokenizer = tokenizer_for()
    trainer = SFTTrainer(
        model=model_for(tokenizer),
        args=SFTConfig(**settings(tmp_path, assistant_only_loss=True)),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    model, train_rows = trainer.model, trainer.train_dataset
    assert model is not None
    assert train_rows is not None
    before = {name: one.clone() for name, one in model.named_parameters()}
    prepared = [train_rows[index] for index in range(len(rows))]
    for row, made in zip(rows, prepared, strict=True):
        assert made["input_ids"] == tokenizer.encode(written(row), add_special_tokens=False)
        assert learnt_by(made) == expected_mask(row, tokenizer)
        assert 0 < sum(learnt_by(made)) < len(made["input_ids"])
    batch = trainer.data_collator(prepared[:2])
    for labels, made in zip(batch["labels"].tolist(), prepared, strict=False):
        kept = [label != -100 for label in labels[: len(made["input_ids"])]]
        assert kept == [bool(one) for one in learnt_by(made)]
    result = trainer.train()
    assert result.training_loss > 0
    moved = [name for name, one in model.named_parameters() if (one != before[name]).any()]
    assert moved


def learnt_by(made: dict[str, Any]) -> list[int]:
    """TRL's own mask, under the name that its version has."""
    if "assistant_masks" in made:
        return list(made["assistant_masks"])
    return [int(label != -100) for label in made["labels"]]


def written(row: dict[str, Any]) -> str:
    return "".join(text for text, _ in pieces(row))


def pieces(row: dict[str, Any]) -> list[tuple[str, bool]]:
    """(text, whether it is learnt), by hand and not by the template."""

    def dumped(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    made = [("<|tools|>" + "".join(map(dumped, row["tools"])) + "<|end|>", False)]
    for message, learnt in zip(row["messages"], row["train_turns"], strict=True):
        said = message["content"] + "".join(
            f"<|call|>{call['function']['name']} {dumped(call['function']['arguments'])}"
            for call in message.get("tool_calls") or ()
        )
        made += [(f"<|{message['role']}|>", False), (f"{said}<|end|>", learnt)]
    return made


def expected_mask(row: dict[str, Any], tokenizer: Any) -> list[int]:
    """Our flags on the tokens of our messages."""
    return [
        int(learnt)
        for text, learnt in pieces(row)
        for _ in tokenizer.encode(text, add_special_tokens=False)
    ]


@pytest.mark.slow
def test_a_step_of_dpo_compares_what_comes_after_the_shared_prompt(
    exported: Path, tmp_path: Path
) -> None:
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    rows = load(exported / "preferences", split="train")
    tokenizer = tokenizer_for()
    trainer = DPOTrainer(
        model=model_for(tokenizer),
        ref_model=model_for(tokenizer),  # else it is loaded by the model's name, and ours has none
        args=DPOConfig(**settings(tmp_path)),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    [row], made = list(rows), trainer.train_dataset[0]
    for side in ("chosen", "rejected"):
        both = {"messages": row["prompt"] + row[side], "tools": row["tools"]}
        both["train_turns"] = [False] * len(both["messages"])
        ids = tokenizer.encode(written(both), add_special_tokens=False)
        assert made["prompt_ids"] + made[f"{side}_ids"] == ids
        first = tokenizer.decode(made[f"{side}_ids"])
        assert re.match(r"<\|call\|>rent_boat|It is rented", first)
    assert tokenizer.decode(made["prompt_ids"]).endswith("<|assistant|>")
    batch = trainer.data_collator([made])
    lengths = [len(made[f"{side}_ids"]) for side in ("chosen", "rejected")]
    assert batch["completion_mask"].sum(dim=1).tolist() == lengths
    assert trainer.train().training_loss > 0
