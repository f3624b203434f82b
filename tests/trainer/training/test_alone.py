"""What the trainer's core needs of other packages: torch, tokenizers and what `records` needs.

A step, and a run, in a process of their own in which everything else that is installed is absent.
"""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

NEEDED = ("torch", "tokenizers", "pydantic", "pyarrow", "duckdb", "numpy")
"""The last four are what `records` imports."""

OURS = ("tool_specs", "sandboxes", "synth", "flows", "tests", "benchmarks")

ABSENT = """
import json, sys

absent = frozenset(json.loads(sys.argv[1]))


class Without:
    # a finder that does not find what is absent
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *where):
        return None if name.partition(".")[0] in absent else self.finder.find_spec(name, *where)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""

STEP = """
from pathlib import Path

import torch

from tests_shape import small
from trainer.data.chat_format import ChatFormat
from trainer.data.corpus import make_corpus
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim.muon import optimizer_of
from trainer.data.packing import Packer
from trainer.training.settings import DataConfig, TrainConfig
from trainer.data.sources import CorpusConfig
from trainer.training.step import Stepper
from trainer.data.tokenizer import train_tokenizer

torch.set_num_threads(1)
folder = Path(sys.argv[2])
sources = (CorpusConfig(path=str(folder / "rows.jsonl")),)
data = DataConfig(sources=sources, row_tokens=32, batch_rows=2, micro_rows=1)
tokenizer = train_tokenizer(["twice one is two"], vocab_size=300)
corpus = make_corpus(sources, tokenizer, folder / "tokens", chat=ChatFormat(system=""))
model = new_decoder(small(vocab_size=tokenizer.size))
config = TrainConfig(out="none", data=data, shape=model.config)
stepper = Stepper(model, optimizer_of(model, lr=0.01), config)
batches = Packer(corpus, 32, seed=0, pad=0).batches(2)
losses = [stepper.step(next(batches)[0]).loss for _ in range(3)]
assert losses[-1] < losses[0], losses
"""

RUN = """
from pathlib import Path

import torch

from tests_shape import small
from trainer.training.settings import DataConfig, TrainConfig
from trainer.data.sources import CorpusConfig
from trainer.training.loop import train

torch.set_num_threads(1)
folder = Path(sys.argv[2])
sources = (CorpusConfig(path=str(folder / "rows.jsonl")),)
data = DataConfig(sources=sources, system="", row_tokens=32, batch_rows=2, micro_rows=1)
shape = small(vocab_size=300)
config = TrainConfig(out=str(folder / "run"), data=data, shape=shape, steps=2, device="cpu")
assert train(config).steps == 2
assert "brings it" in (folder / "run" / "curves.html").read_text()  # the library that draws
assert not (folder / "run" / "tensorboard").exists()
"""

LOADED = """
loaded = absent & {name.partition(".")[0] for name in sys.modules}
assert not loaded, loaded
"""


def distributions_needed(names: tuple[str, ...]) -> set[str]:
    """These and all that they ask for, directly or not; extras are not asked for."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonical(waiting.pop())
        if name in needed:
            continue
        needed.add(name)
        try:
            asked = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system or Python
            continue
        waiting += [re.split(r"[^\w.-]", r, maxsplit=1)[0] for r in asked if "extra ==" not in r]
    return needed


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def absent_without(names: tuple[str, ...]) -> list[str]:
    """Top-level modules that are installed here and none of these brings."""
    needed = distributions_needed(names)
    found = metadata.packages_distributions().items()
    others = [module for module, own in found if not needed & {canonical(name) for name in own}]
    # where the project is installed, its modules are those of a distribution, too
    return sorted({*others, *OURS} - {"tests_shape", "records", "trainer"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "besides"),
    [
        pytest.param(STEP, (), id="step"),
        # files of weights are safetensors, so a run, which keeps checkpoints, needs that one more
        pytest.param(RUN, ("safetensors",), id="run"),
    ],
)
def test_it_works_with_nothing_else_installed(
    work: str, besides: tuple[str, ...], tmp_path: Path
) -> None:
    absent = absent_without((*NEEDED, *besides))
    assert {"transformers", "prefect", "openai", "tensorboard", "matplotlib", "datasets"} <= set(
        absent
    )
    told = ({"role": "assistant", "content": f"Twice {n} is {2 * n}."} for n in range(9))
    rows = "".join(json.dumps({"messages": [message]}) + "\n" for message in told)
    (tmp_path / "rows.jsonl").write_text(rows)
    shapes = (ROOT / "tests" / "trainer" / "configs.py").read_text()
    (tmp_path / "tests_shape.py").write_text(shapes)
    done = subprocess.run(
        [sys.executable, "-c", ABSENT + work + LOADED, json.dumps(absent), str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
