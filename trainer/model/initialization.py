"""First weights, apart from building: `Decoder(config)` has shapes, `initialize` gives numbers.

So a model can be built on the meta device, sharded (`fully_shard`), given memory where it is to
live, and drawn there, with no copy anywhere else; a matrix whose rows lie in several processes is
drawn whole in each of them, one at a time, and cut. Every matrix has a generator of its own, seeded
by (seed, name, place in its stack): the numbers hang neither on the order nor on which of the
matrices this process holds. They do hang on the kind of device and on the dtype, since generators
differ.
"""

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from records.seeds import seed_of
from trainer.model.config import TransformerConfig
from trainer.model.decoder import Decoder


def new_decoder(config: TransformerConfig, seed: int = 0) -> Decoder:
    """A model with first weights, in torch's default dtype, on torch's default device."""
    model = Decoder(config)
    initialize(model, seed)
    return model


@torch.no_grad()
def initialize(model: Decoder, seed: int) -> None:
    """Give every parameter and buffer the value that training starts from: matrices normal numbers,
    norms 1, router biases 0."""
    for name, parameter in model.named_parameters():
        drawn = _draw_own if isinstance(parameter, DTensor) else draw
        drawn(parameter, name, seed=seed, std=model.config.init_std)
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.zero_()
    model.reset_frequencies()


def draw(parameter: Tensor, name: str, *, seed: int, std: float, first: int = 0) -> None:
    """First value of one parameter, in place. Of a stack of matrices, `first` is the place in the
    whole stack of the first one that `parameter` holds."""
    if parameter.ndim < 2:
        parameter.fill_(1.0)
        return
    matrices = parameter if parameter.ndim == 3 else parameter[None]
    for place, matrix in enumerate(matrices, first):
        generator = torch.Generator(matrix.device).manual_seed(seed_of(str(seed), name, place))
        matrix.normal_(std=std, generator=generator)


def _draw_own(parameter: Tensor, name: str, *, seed: int, std: float) -> None:
    """The part of a sharded parameter that this process holds, with the numbers that the whole has
    there. Stacks are sharded by matrices."""
    assert isinstance(parameter, DTensor)
    if parameter.ndim == 3:
        draw(parameter.to_local(), name, seed=seed, std=std, first=held_matrices(parameter).start)
        return
    whole = torch.empty(parameter.shape, dtype=parameter.dtype, device=parameter.device)
    draw(whole, name, seed=seed, std=std)
    parameter.copy_(sharded(whole, parameter))


def held_matrices(stack: DTensor) -> range:
    """Places in the whole stack of the matrices that this process holds."""
    places = sharded(torch.arange(len(stack), device=stack.device), stack).to_local().tolist()
    return range(places[0], places[-1] + 1) if places else range(0)


def sharded(whole: Tensor, like: DTensor) -> DTensor:
    """`whole`, which every process has on its device, placed as `like` is; nothing is sent."""
    return distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)
