"""A model is built without values and drawn where it lives: the same, whoever draws a part."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.multiprocessing.spawn import spawn
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from tests.trainer.configs import small
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model, read_weights
from trainer.model.initialization import draw, initialize, new_decoder

CPU = torch.device("cpu")


class Made(TorchDispatchMode):
    """The largest tensors that are made, in entries, by dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.largest: dict[torch.dtype, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.device.type != "meta":
            self.largest[made.dtype] = max(self.largest.get(made.dtype, 0), made.numel())
        return made


def placed(dtype: torch.dtype = torch.float32) -> Decoder:
    with torch.device("meta"):
        model = Decoder(small())
    model.allocate(CPU, dtype)
    return model


def test_building_draws_nothing() -> None:
    before = torch.get_rng_state()
    Decoder(small())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_drawn_where_it_lives_is_the_one_that_was_built_there() -> None:
    model = placed()
    torch.manual_seed(99)  # of no influence
    initialize(model, 3)
    whole = new_decoder(small(), 3)
    assert model.state_dict().keys() == whole.state_dict().keys()
    for name, value in whole.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.inverse_frequencies, whole.inverse_frequencies)


def test_parts_drawn_apart_are_those_of_the_whole() -> None:
    """In another order, and some experts of a stack only."""
    whole = dict(new_decoder(small(), 3).named_parameters())
    for name, value in reversed(whole.items()):
        first, last = (2, 5) if value.ndim == 3 else (0, None)
        part = torch.empty_like(value[first:last])
        draw(part, name, seed=3, std=small().init_std, first=first)
        assert torch.equal(part, value[first:last]), name


@pytest.fixture
def second_of_two() -> Iterator[None]:
    """This process as the second one of two, the first of which is not there."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    yield
    dist.destroy_process_group()


def on_two_processes(dtype: torch.dtype = torch.float32) -> Decoder:
    """Sharded on the meta device, then given memory."""
    with torch.device("meta"):
        model = Decoder(small())
    mesh = init_device_mesh("cpu", (2,))
    for part in (*model.layers, model):
        fully_shard(part, mesh=mesh)
    model.allocate(CPU, dtype)
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.usefixtures("second_of_two")
def test_a_model_sharded_on_meta_draws_its_part_of_the_whole(dtype: torch.dtype) -> None:
    model = on_two_processes(dtype)
    initialize(model, 3)
    whole = placed(dtype)
    initialize(whole, 3)
    for name, value in whole.named_parameters():
        held = model.get_parameter(name)
        assert isinstance(held, DTensor)
        assert torch.equal(held.to_local(), value.chunk(2)[1]), name


@pytest.mark.usefixtures("second_of_two")
def test_a_model_sharded_on_meta_reads_its_part_of_a_checkpoint(tmp_path: Path) -> None:
    whole = new_decoder(small(), 3)
    export_model(whole, tmp_path)
    model = on_two_processes()
    read_weights(model, tmp_path)
    for name, value in whole.state_dict().items():
        held = model.state_dict()[name]
        if isinstance(held, DTensor):  # router biases are whole everywhere
            assert torch.equal(held.to_local(), value.chunk(2)[1]), name
        else:
            assert torch.equal(held, value), name


def _read_in_a_process(rank: int, folder: Path) -> None:
    meet = f"file://{folder / 'meet'}"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
    model = on_two_processes()
    read_weights(model, folder)
    whole = import_model(folder)
    ids = torch.arange(12).view(2, 6) % 97
    for name, value in whole.named_parameters():
        gathered = model.get_parameter(name)
        assert isinstance(gathered, DTensor)
        assert torch.equal(gathered.full_tensor(), value), name
    assert torch.equal(model(ids).hidden_BTD, whole(ids).hidden_BTD)
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_read_a_checkpoint_and_compute_as_one_does(tmp_path: Path) -> None:
    export_model(new_decoder(small(), 3), tmp_path)
    spawn(_read_in_a_process, (tmp_path,), nprocs=2)


def test_matrices_are_drawn_apart_with_the_spread_that_was_asked_for() -> None:
    model, other = new_decoder(small(), 3), new_decoder(small(), 4)
    matrices = {n: p.detach() for n, p in model.named_parameters() if p.ndim > 1}
    drawn = torch.cat([m.flatten() for m in matrices.values()])
    assert drawn.std().item() == pytest.approx(small().init_std, rel=0.02)
    assert drawn.mean().abs().item() < 0.01 * small().init_std * 5
    assert len(drawn.unique()) > 0.98 * len(drawn)  # no two matrices from one generator
    assert not torch.equal(matrices["lm_head.weight"], other.lm_head.weight)
    norms = [p for n, p in model.named_parameters() if n.endswith("norm.weight")]
    assert all(bool((norm == 1).all()) for norm in norms)
    biases = [b for n, b in model.named_buffers() if n.endswith("correction_bias")]
    assert all(not bias.any() for bias in biases)


def test_nothing_larger_than_a_norm_is_ever_in_fp32(tmp_path: Path) -> None:
    """Neither where a bf16 model is drawn nor where it is read."""
    export = placed(torch.bfloat16)
    initialize(export, 0)
    export_model(export, tmp_path)
    for make in (
        lambda: initialize(placed(torch.bfloat16), 0),
        lambda: import_model(tmp_path, dtype=torch.bfloat16),
    ):
        with Made() as made:
            make()
        assert made.largest[torch.bfloat16] >= small().vocab_size * small().hidden_size
        assert made.largest[torch.float32] <= small().hidden_size


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_what_is_read_is_in_the_dtype_asked_for(dtype: torch.dtype, tmp_path: Path) -> None:
    model = new_decoder(small())
    export_model(model, tmp_path)
    again = import_model(tmp_path, dtype=dtype)
    for (name, there), (_, here) in zip(
        again.named_parameters(), model.named_parameters(), strict=True
    ):
        assert there.dtype == dtype
        assert torch.equal(there, here.to(dtype)), name
    wide = torch.promote_types(dtype, torch.float32)
    assert again.inverse_frequencies.dtype == wide
