"""From a folder to a sampler: what cannot work is refused before anything is allocated."""

import json
from pathlib import Path

import pytest
import tokenizers
import torch
from tokenizers import models

from records.errors import ConfigError
from tests.trainer.configs import small
from trainer.data.tokenizer import SPECIAL, Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.enforcer import AnswerGrammar
from trainer.inference.loading import bytes_needed, load_sampler
from trainer.inference.sampler import Sampler
from trainer.model.cache import LatentCache
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.exchange import export_model, hf_config
from trainer.model.initialization import new_decoder

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["Where is it? Here it is."], vocab_size=300)


def folder_of(path: Path, shape: TransformerConfig, tokenizer: Tokenizer) -> Path:
    export_model(new_decoder(shape.model_copy(update={"vocab_size": tokenizer.size})), path)
    tokenizer.save(path)
    return path


@pytest.mark.slow
def test_too_little_memory_is_told_before_weights_are_read(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """There are no weights here: reading them would be another error."""
    tokenizer.save(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(hf_config(PRESETS["k2-1t"])))
    with pytest.raises(ConfigError, match=r"needs about [\d.]+ GiB and cpu has .* lower slots"):
        load_sampler(tmp_path, device="cpu", slots=2)
    config.write_text(json.dumps(hf_config(small(vocab_size=300, max_positions=10**8))))
    with pytest.raises(ConfigError, match=r"9 slots of 100000000 tokens needs about"):
        load_sampler(tmp_path, device="cpu", slots=9)
    with pytest.raises(ConfigError, match=r"no \.safetensors file"):
        load_sampler(tmp_path, device="cpu", slots=9, tokens=50)


def test_the_estimate_has_the_weights_and_the_cache_as_they_are() -> None:
    shape = small()
    weights = sum(t.nbytes for t in new_decoder(shape).parameters())
    for slots, tokens in ((1, 256), (8, 64)):
        made = LatentCache(shape, slots=slots, tokens=tokens, device=CPU, dtype=torch.float32)
        held = weights + made.latent_LBSC.nbytes + made.key_LBSR.nbytes
        assert held < bytes_needed(shape, slots=slots, tokens=tokens, device=CPU)
    few, many = (bytes_needed(shape, slots=n, tokens=10**6, device=CPU) for n in (1, 1001))
    cached = 3 * 10**9 * (16 + 8) * 4
    assert cached < many - few < 3 * cached


def test_folders_without_a_finished_model_are_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"run is a training run that is not finished"):
        load_sampler(tmp_path / "run", slots=1)
    with pytest.raises(ConfigError, match=r"none holds no config.json, tokenizer.json"):
        load_sampler(tmp_path / "none", slots=1)
    folder = folder_of(tmp_path / "model", small(), tokenizer)
    with pytest.raises(ConfigError, match=r"a slot of 257 tokens: the model takes 256 at most"):
        load_sampler(folder, device="cpu", slots=1, tokens=257)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"model holds no tokenizer.json"):
        load_sampler(folder, slots=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", small(), tokenizer)
    with pytest.raises(ConfigError, match=r"device = 'cuda', but torch sees no GPU"):
        load_sampler(folder, device="cuda", slots=1)
    sampler, _ = load_sampler(folder, device="auto", slots=1)
    assert sampler.model.lm_head.weight.dtype == torch.float32


def test_constrained_decoding_wants_a_tokenizer_that_spells_bytes(tokenizer: Tokenizer) -> None:
    AnswerGrammar(tokenizer, where="bytes")
    words = {word: number for number, word in enumerate([*SPECIAL, "[UNK]", "Where", "is"])}
    backend = tokenizers.Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    with pytest.raises(ConfigError, match=r"words: .* byte-level BPE; .* 95 letters, such as ' '"):
        AnswerGrammar(Tokenizer(backend), where="words")


@pytest.mark.gpu
def test_a_gpu_answers_as_a_cpu_does(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """But for what bf16 rounds."""
    folder = folder_of(tmp_path / "model", PRESETS["tiny"], tokenizer)
    prompts = [tokenizer.encode("Where is it?"), tokenizer.encode("Here")]
    made = {}
    for device in ("cpu", "cuda"):
        sampler, _ = load_sampler(folder, device=device, slots=2)
        assert sampler.cache.latent_LBSC.device.type == device
        made[device] = sampler.generate(prompts, Sampling(max_tokens=6), stop=-1)
    for cpu, gpu in zip(made["cpu"], made["cuda"], strict=True):
        assert len(cpu.ids) == len(gpu.ids) == 6
        assert gpu.model_logprobs[0] == pytest.approx(cpu.model_logprobs[0], abs=0.1)


def test_a_model_of_damaged_weights_is_no_traceback() -> None:
    model = new_decoder(small()).eval()
    with torch.no_grad():
        model.lm_head.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match=r"logits are no numbers"):
        Sampler(model, slots=1).generate([[1, 2]], Sampling(temperature=1.0), stop=0)
