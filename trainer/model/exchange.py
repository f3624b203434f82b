"""Weights to and from Hugging Face's format: safetensors and `config.json`, one tensor per expert.

`model_type` is `deepseek_v3` unless told otherwise: under `kimi_k2` transformers loads every
expert with random weights and says little about it, while vLLM and SGLang want that name.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor

from records.errors import ConfigError
from records.files import write_atomic
from trainer.data.chat_format import TEMPLATE, ChatFormat
from trainer.data.chat_template import RESPONSE_TEMPLATE, chat_template
from trainer.data.tokenizer import Tokenizer, load_tokenizer
from trainer.model.decoder import Decoder
from trainer.model.hf_config import config_of_hf, generation_config, hf_config
from trainer.model.initialization import held_matrices, sharded

SHARD_BYTES = 4 * 2**30
"""Largest file of weights, but for a single tensor that is larger."""

INDEX = "model.safetensors.index.json"

CPU = torch.device("cpu")

_LEFT_OUT = re.compile(r".+\.rotary_emb\.inv_freq")
"""Stray tensors of released checkpoints that the config determines."""


def export_model(
    model: Decoder,
    folder: Path,
    tokenizer: Tokenizer | None = None,
    *,
    chat: ChatFormat = ChatFormat(),
    model_type: str = "deepseek_v3",
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write `config.json`, weights and their index into `folder`, which is made; with a tokenizer
    also its files, the chat template of this format, and where an answer ends.

    The index comes last, so that a folder that has one is whole.
    """
    dtype = str(model.lm_head.weight.dtype).removeprefix("torch.")
    config = hf_config(model.config, tokenizer, model_type=model_type, dtype=dtype)
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder, response_template=RESPONSE_TEMPLATE)
        write_atomic(folder / TEMPLATE, chat_template(chat).encode())
        ends = json.dumps(generation_config(tokenizer), indent=2)
        write_atomic(folder / "generation_config.json", ends.encode())
    tensors = {name: t.contiguous() for name, t in released_tensors(model.state_dict())}
    tensors |= _no_shared_experts(model)
    shards = list(_shards(tensors, shard_bytes))
    place: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        (folder / name).chmod(0o644)  # who serves the model is often somebody else
        place |= dict.fromkeys(shard, name)
    write_atomic(folder / "config.json", json.dumps(config, indent=2).encode())
    total = sum(t.nbytes for shard in shards for t in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": place}
    write_atomic(folder / INDEX, json.dumps(index, indent=2).encode())


def released_tensors(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a checkpoint under the name that it is released by, as a view; of a sharded
    stack of experts those matrices that this process holds."""
    for name, tensor in state.items():
        head, _, stack = name.rpartition(".")
        if not head.endswith(".mlp.experts"):
            yield name, tensor
            continue
        held = held_matrices(tensor) if isinstance(tensor, DTensor) else range(len(tensor))
        matrices = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        for number, matrix in zip(held, matrices, strict=True):
            yield f"{head}.{number}.{stack}.weight", matrix


def _no_shared_experts(model: Decoder) -> dict[str, Tensor]:
    """transformers always has shared experts, be they of no width."""
    config, none = model.config, model.lm_head.weight.new_empty
    if config.num_shared_experts:
        return {}
    shapes = {"gate": (0, config.hidden_size), "up": (0, config.hidden_size)}
    shapes["down"] = (config.hidden_size, 0)
    return {
        f"model.layers.{layer}.mlp.shared_experts.{name}_proj.weight": none(shape)
        for layer in range(config.num_dense_layers, config.num_layers)
        for name, shape in shapes.items()
    }


def _shards(tensors: Mapping[str, Tensor], limit: int) -> Iterator[dict[str, Tensor]]:
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        if shard and size + tensor.nbytes > limit:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor
        size += tensor.nbytes
    yield shard


def model_folder(path: Path) -> Path:
    """Of a training run its finished model, else the folder itself."""
    return path / "model" if (path / "model").is_dir() else path


def import_model(
    folder: Path,
    *,
    shapes_only: bool = False,
    device: torch.device = CPU,
    dtype: torch.dtype = torch.float32,
) -> Decoder:
    """The model of a folder in their format, or its shapes on the meta device. Each tensor goes
    from its file to its place on `device`; nothing else is held. ConfigError for one that is
    missing, damaged, not of this architecture, or not whole."""
    try:
        theirs = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / 'config.json'} cannot be read: {error}") from error
    if not isinstance(theirs, dict):
        raise ConfigError(f"{folder / 'config.json'} is no config: it has no settings")
    if "quantization_config" in theirs:
        raise ConfigError(f"{folder}: quantised weights; convert them to bf16 first")
    config = config_of_hf(theirs, where=str(folder / "config.json"))
    with torch.device("meta"):
        model = Decoder(config)
    if shapes_only:
        return model
    model.allocate(device, dtype)
    read_weights(model, folder)
    return model


def import_with_tokenizer(
    folder: Path, *, device: torch.device = CPU, dtype: torch.dtype = torch.float32
) -> tuple[Decoder, Tokenizer]:
    """The model of a folder, as `import_model` has it, and what writes its tokens. ConfigError,
    before weights are read, where the tokenizer has tokens that the model has not."""
    tokenizer = load_tokenizer(folder)
    known = import_model(folder, shapes_only=True).config.vocab_size
    if tokenizer.size > known:
        raise ConfigError(
            f"{folder}: the tokenizer has {tokenizer.size} tokens, the model only {known}"
        )
    return import_model(folder, device=device, dtype=dtype), tokenizer


def read_weights(model: Decoder, folder: Path) -> None:
    """The weights of a folder in their format into a model of its config that has memory: whole, or
    sharded on the meta device before it was allocated, where each process reads the files and keeps
    its part. ConfigError as `import_model` has it."""
    with torch.device("meta"):
        shapes = {n: t.shape for n, t in released_tensors(Decoder(model.config).state_dict())}
    held = dict(released_tensors(model.state_dict()))
    missing = set(shapes)
    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118 (it is no dict)
                    tensor = weights.get_tensor(name)
                    if _LEFT_OUT.fullmatch(name) or not tensor.numel():
                        continue
                    if name not in missing:
                        raise ConfigError(f"{path}: {name} is no tensor of this config, or twice")
                    missing.remove(name)
                    if shapes[name] != tensor.shape:
                        raise ConfigError(
                            f"{path}: {name} has shape {tuple(tensor.shape)}, the config says "
                            f"{tuple(shapes[name])}"
                        )
                    if name in held:
                        _copy(held[name], tensor)
        except SafetensorError as error:
            raise ConfigError(f"{path} is damaged: {error}") from error
    if missing:
        some = ", ".join(sorted(missing)[:3])
        raise ConfigError(f"{folder}: {len(missing)} tensors are missing, such as {some}")


@torch.no_grad()
def _copy(target: Tensor, tensor: Tensor) -> None:
    """Into its place, or into the part of it that this process holds."""
    if isinstance(target, DTensor):
        tensor = sharded(tensor.to(target), target)
    target.copy_(tensor)


def _weight_files(folder: Path) -> list[Path]:
    """ConfigError where there is none; pickles are never read."""
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        raise ConfigError(f"{folder} holds no .safetensors file; other formats are not read")
    return found
