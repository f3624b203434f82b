"""verl: its data set of conversations by the class in the export, and its data set of prompts."""

import json

from omegaconf import OmegaConf
from plain import Seen, expected, export, mask, report, tokenizer, written
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.utils.import_utils import load_extern_object

folder = export() / "verl"
coder = tokenizer()
rows_class = load_extern_object(str(folder / "verl_rows.py"), "JsonConversations")
files = [str(path) for path in sorted((folder / "data").glob("train-*.parquet"))]
settings = OmegaConf.create({"pad_mode": "no_padding", "max_length": 100_000})
rows, seen = rows_class(files, coder, settings), Seen()
for read, ours in zip((rows[n] for n in range(len(rows))), expected(), strict=True):
    assert coder.decode(read["input_ids"].tolist()) == written(ours)
    # its class learns what comes after the header of each assistant's message
    assert read["loss_mask"].tolist() == mask(ours, coder)
    seen.add(read["loss_mask"].tolist())

files = [str(path) for path in sorted((folder / "rl").glob("train-*.parquet"))]
settings = OmegaConf.create(
    {
        "prompt_key": "prompt",
        "max_prompt_length": 100_000,
        "cache_dir": str(export() / "verl-cache"),
    }
)
prompts = RLHFDataset(files, coder, settings)
for read in (prompts[n] for n in range(len(prompts))):
    assert [message["role"] for message in read["raw_prompt"]] == ["system", "user"]
    assert json.loads(read["reward_model"]["ground_truth"])["criteria"]
    assert json.loads(read["extra_info"]["tools"])
report("verl", "verl", **seen.counts, prompts=len(prompts))
