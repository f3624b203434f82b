"""Real tokens a second of a training step, beside transformers' DeepSeek-V3 with torch's Muon.

    python benchmarks/bench_trainer.py [--preset tiny] [--row-tokens 512] [--rows 8] [--repeats 5]
                                       [--threads 2] [--clock wall | cpu] [--device cpu | cuda]

On a CPU several ways take the same packed rows from the same weights, in turns within each repeat:
- `ours`: the step of `python -m trainer`, QK-Clip and router balance included, and the same with
  Newton-Schulz in bf16, as torch's Muon has it, instead of fp32, which is our default on a CPU;
- `transformers`: `DeepseekV3ForCausalLM` with sdpa attention and each of its three forms of experts
  that takes less than twice as long here as the fastest, `torch.optim.Muon` for the same matrices
  as ours (those of experts as 2-D views) and `torch.optim.AdamW` for the rest. Documents are kept
  apart by their positions, so both learn the same targets: the first losses are printed and must
  agree;
- the same with experts by AdamW: as most would set it up, because Muon refuses stacks. Less work.

One JSON line each (median tokens/s over the repeats, range, the optimiser's share of the time) and
one for each ratio, of the same repeat.

On CUDA, one after the other since only one fits, a few steps of Moonlight's shape with some of its
27 layers, in bf16, tokens/s, MFU and memory each:
- `ours`: as above, with fp32 masters and gradients and compiled layers;
- `transformers` twice, as above, with its grouped experts; its weights and optimiser states are
  bf16 alone, which is less memory and less exact.

    python benchmarks/bench_trainer.py --device cuda --layers 14 --row-tokens 4096 --rows 8
                                       --micro-rows 1
"""

import argparse
import copy
import gc
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from benchmarks.trainer_ways import CLOCKS, EXPERTS, Ours, Theirs, Took, Way
from trainer.data.chat_format import ChatFormat
from trainer.data.corpus import Corpus
from trainer.data.packing import PackedBatch, Packer
from trainer.data.row_length import RowLength
from trainer.data.sources import CorpusConfig
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model
from trainer.model.hf_config import hf_config
from trainer.model.initialization import initialize, new_decoder
from trainer.model.paths import ComputePath
from trainer.model.size import size_of, train_flops_per_token
from trainer.optim.muon import OptimizerConfig
from trainer.training.settings import DataConfig, TrainConfig, bytes_needed
from trainer.training.training_run import PEAK_FLOPS

FILLED = 0.9
"""Share of a GPU's free memory that the estimate of a step may take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="tiny", choices=PRESETS)
    parser.add_argument("--row-tokens", type=int, default=512)
    parser.add_argument("--rows", type=int, default=8, help="of a step")
    parser.add_argument("--micro-rows", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3, help="timed together")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", default="wall", choices=CLOCKS)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--layers", type=int, default=14, help="of Moonlight's, on CUDA")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measured = on_gpu if options.device == "cuda" else beside_transformers
    for measurement in measured(options):
        show(measurement)


def beside_transformers(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    shape = PRESETS[options.preset]
    config = config_of(options)
    batches = packed(shape, config)
    model = new_decoder(shape)
    with tempfile.TemporaryDirectory() as folder:
        export_model(model, Path(folder))
        first = next(batches)

        def theirs(*, experts: str, muon: bool) -> Theirs:
            read: Any = DeepseekV3ForCausalLM.from_pretrained(
                folder, attn_implementation="sdpa", experts_implementation=experts
            )
            return Theirs(read, config, options.clock, muon=muon)

        forms = {
            form: theirs(experts=form, muon=True).step(first).step_s
            for form in EXPERTS
            for _ in range(2)  # the second one counts
        }
        slow = 2 * min(forms.values())
        in_bf16 = config.optimizer.model_copy(update={"newton_schulz": "bf16"})
        ways: dict[str, Way] = {
            "ours": Ours(copy.deepcopy(model), config, options.clock),
            "ours, Newton-Schulz in bf16": Ours(
                model, config.model_copy(update={"optimizer": in_bf16}), options.clock
            ),
        }
        for form in (form for form in EXPERTS if forms[form] < slow):
            ways[f"transformers, {form}"] = theirs(experts=form, muon=True)
            ways[f"transformers, {form}, experts by AdamW"] = theirs(experts=form, muon=False)
    losses = {name: way.step(first).loss for name, way in ways.items()}  # and a warm-up
    taken: dict[str, list[list[Took]]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        group = [next(batches) for _ in range(options.steps)]
        for name, way in ways.items():
            taken[name].append([way.step(batch) for batch in group])
    yield from _told(options, taken, losses, {"forms_step_s": _rounded(forms)})


def _told(
    options: argparse.Namespace,
    taken: dict[str, list[list[Took]]],
    losses: dict[str, float],
    other: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    speeds = {
        name: [sum(t.tokens for t in group) / sum(t.step_s for t in group) for group in groups]
        for name, groups in taken.items()
    }
    for name, groups in taken.items():
        shares = [sum(t.optimizer_s for t in g) / sum(t.step_s for t in g) for g in groups]
        yield {
            "name": "trainer_step",
            "way": name,
            "parameters": vars(options) | {"model": size_of(PRESETS[options.preset])._asdict()},
            **spread(speeds[name], 0),
            "unit": "tokens/s",
            "optimizer_share": spread(shares, 3),
            "first_loss": round(losses[name], 4),
            **({} if name.startswith("ours") else other),
        }
    own = [name for name in taken if name.startswith("ours")]
    for one, name in product(own, [name for name in taken if name not in own]):
        ratios = [a / b for a, b in zip(speeds[one], speeds[name], strict=True)]
        yield {
            "name": "trainer_step_ratio",
            "of": f"{one} / {name}",
            **spread(ratios, 2),
            "unit": "times the tokens/s",
        }


def config_of(options: argparse.Namespace) -> TrainConfig:
    data = DataConfig(
        sources=(CorpusConfig(path="drawn at random"),),
        row_tokens=options.row_tokens,
        batch_rows=options.rows,
        micro_rows=options.micro_rows,
    )
    return TrainConfig(out="none", data=data, preset=options.preset, optimizer=OptimizerConfig())


def packed(shape: TransformerConfig, config: TrainConfig) -> Iterator[PackedBatch]:
    """Rows of documents of random tokens, a sixteenth of a row to a whole one long."""
    rng = np.random.default_rng(0)
    row = config.row_tokens
    lengths = rng.integers(row // 16, row + 1, size=8 * config.data.batch_rows)
    total = int(lengths.sum())
    corpus = Corpus(
        tokens=rng.integers(0, shape.vocab_size, size=total, dtype=np.int32),
        learnt=np.ones(total, dtype=np.uint8),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        sources=np.zeros(len(lengths), dtype=np.int32),
        weights=(1.0,),
        rows=len(lengths),
        left_out={},
        cut={},
        row_length=RowLength(row, "as set"),
        chat=ChatFormat(),
        fingerprint="random",
    )
    packer = Packer(corpus, row, seed=0, pad=0)
    for batch, _ in packer.batches(config.data.batch_rows):
        yield batch


def on_gpu(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Some layers of Moonlight's shape, ours and theirs."""
    device, config = torch.device("cuda"), config_of(options)
    whole = PRESETS["moonlight-16b-a3b"]
    shape = whole.model_copy(update={"num_layers": options.layers})
    needed, free = bytes_needed(config, shape, device), torch.cuda.mem_get_info(device)[0]
    if needed > FILLED * free:
        raise SystemExit(
            f"{options.layers} layers need about {needed / 2**30:.0f} GiB of {free / 2**30:.0f} "
            "GiB; choose fewer --layers"
        )
    gpu = torch.cuda.get_device_name()
    peak = next((peak for part, peak in PEAK_FLOPS.items() if part in gpu), math.inf)
    for name, make in ways_on(device, shape, config).items():
        torch.cuda.reset_peak_memory_stats(device)
        way, batches = make(), packed(shape, config)
        speeds: list[float] = []
        shares: list[float] = []
        took = way.step(next(batches))  # two to warm up and compile
        for number in range(options.repeats + 1):
            batch = next(batches)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            took = way.step(batch)
            torch.cuda.synchronize()
            if number > 0:
                speeds.append(took.tokens / (time.perf_counter() - begun))
                shares.append(speeds[-1] * train_flops_per_token(shape, took.context) / peak)
        yield {
            "name": "trainer_gpu",
            "way": name,
            "gpu": gpu,
            "parameters": vars(options) | {"model": size_of(shape)._asdict()},
            **spread(speeds, 0),
            "unit": "tokens/s",
            "mfu": round(statistics.median(shares), 3) if peak < math.inf else None,
            "memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
            "last_loss": round(took.loss, 4),
        }
        del way
        gc.collect()
        torch.cuda.empty_cache()


def ways_on(
    device: torch.device, shape: TransformerConfig, config: TrainConfig
) -> dict[str, Callable[[], Way]]:
    """What makes each way, weights drawn on the device in bf16."""

    def ours() -> Ours:
        with torch.device("meta"):
            model = Decoder(shape)
        model.allocate(device, torch.bfloat16)
        initialize(model, 0)
        if model.compute_path is ComputePath.DEVICE:
            model.compile_layers()
        return Ours(model, config, "wall")

    def theirs(muon: bool) -> Theirs:
        told = {
            "attn_implementation": "sdpa",
            "experts_implementation": "grouped_mm",
            "dtype": torch.bfloat16,
        }
        named = DeepseekV3Config(**hf_config(shape))
        with device:
            made: Any = DeepseekV3ForCausalLM._from_config(named, **told)
        return Theirs(made, config, "wall", muon=muon)

    return {
        "ours": ours,
        "transformers": partial(theirs, muon=True),
        "transformers, experts by AdamW": partial(theirs, muon=False),
    }


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in seconds.items()}


if __name__ == "__main__":
    main()
