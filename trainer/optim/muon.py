"""Muon for matrices and AdamW for everything else, in one optimizer with fp32 masters of narrower
weights.

    M_t = mu M_{t-1} + G_t
    O_t = NewtonSchulz(M_t) sqrt(max(rows, columns)) rms
    W_t = W_{t-1} - lr (O_t + weight_decay W_{t-1})

Sources: https://arxiv.org/abs/2507.20534 algorithm 1; https://arxiv.org/abs/2502.16982 section 2.2
(the factor that gives updates AdamW's RMS, so that one lr and one weight decay serve both).
QK-Clip, the other half of MuonClip, is in `trainer.optim.qk_clip`.
"""

# pyright: reportPrivateImportUsage=false
# (of torch._foreach_*, which torch's own optimisers and many others are made of)

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from records.config import Config
from trainer.model.decoder import Decoder
from trainer.model.precision import wide_dtype, widened
from trainer.optim.orthogonal import Coefficients, orthogonalize

STACK_ENTRIES = 2**27
"""Of parameters that are moved together, which takes the memory of some copies of them. More are no
faster."""

STACK_ENTRIES_ON_CPU = 2**17
"""The same on a CPU: larger ones would leave its cache between momentum and weight."""


class OptimizerConfig(Config):
    muon: bool = True
    """False: AdamW for matrices, too."""
    momentum: float = Field(default=0.95, ge=0.0, lt=1.0)
    """Of Muon: the share of the old direction that a step keeps."""
    nesterov: bool = False
    """Look one step of momentum ahead. The report's algorithm does not."""
    coefficients: Coefficients = "quintic"
    """Of the Newton-Schulz iteration that makes a matrix orthogonal."""
    newton_schulz: Literal["auto", "bf16", "fp32"] = "auto"
    """What the iteration is reckoned in. auto: bf16 on CUDA, fp32 on a CPU, where bf16 pays on
    processors that multiply it (AMX)."""
    update_rms: float = Field(default=0.2, gt=0.0)
    """Root mean square of Muon's update before lr: what AdamW's usually has."""
    split_heads: bool = False
    """Orthogonalise the rows of each attention head by themselves."""
    weight_decay: float = Field(default=0.1, ge=0.0)
    """Per unit of lr, on every parameter: without it on the norms, large runs become unstable."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Of AdamW's mean of the gradient."""
    beta2: float = Field(default=0.95, ge=0.0, lt=1.0)
    """Of AdamW's mean of its square."""
    eps: float = Field(default=1e-8, gt=0.0)
    """Added to AdamW's divisor."""


class Blocks(NamedTuple):
    """Parameters whose matrices Muon takes in so many blocks of rows."""

    parameters: list[nn.Parameter]
    blocks: int


class MuonAdamW(torch.optim.Optimizer):
    """State of a parameter: Muon's momentum, or AdamW's moments and step; and, where it is narrower
    than fp32, its fp32 master, from which it is rounded after each step."""

    def __init__(
        self,
        matrices: Iterable[Blocks],
        others: Iterable[nn.Parameter],
        config: OptimizerConfig = OptimizerConfig(),
        *,
        lr: float,
    ) -> None:
        """`matrices` have shape (rows, columns) or (stack, rows, columns)."""
        groups: list[dict[str, Any]] = [
            {"params": group.parameters, "blocks": group.blocks} for group in matrices
        ]
        if rest := list(others):
            groups.append({"params": rest, "blocks": 0})
        groups = [group for group in groups if group["params"]]
        super().__init__(groups, {"lr": lr})
        self.config = config
        self.update_rms = torch.zeros((), device=self._device)
        """Root mean square over all entries that Muon moved in the last step, before lr: measured,
        and left on the device."""
        for group in self.param_groups:
            for p in group["params"]:
                if group["blocks"] and (p.ndim not in (2, 3) or p.shape[-2] % group["blocks"]):
                    raise ValueError(
                        f"Muon takes matrices in {group['blocks']} blocks of rows, got shape "
                        f"{tuple(p.shape)}"
                    )

    @torch.no_grad()
    def prepare(self, parameter: nn.Parameter) -> None:
        """Make the state of a parameter as it is before its first step."""
        group = next(g for g in self.param_groups if any(p is parameter for p in g["params"]))
        self._state(parameter, muon=bool(group["blocks"]))

    @property
    def _device(self) -> torch.device | None:
        """Where what is measured lies; None without parameters: torch's default."""
        return next((p.device for g in self.param_groups for p in g["params"]), None)

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: None = None, *, taken: Tensor | None = None
    ) -> None:
        """`taken`: a single bool on the device; where it is false every weight and state keeps what
        it was, to the bit, but the counts of steps, which `forget_step` takes back. The host does
        not look at it. None: the step is taken, in place."""
        moved: list[Tensor] = []
        entries = 0
        for group in self.param_groups:
            ready = [p for p in group["params"] if p.grad is not None]
            if not group["blocks"]:
                for some in _bounded(ready):
                    self._adamw(some, group["lr"], taken)
                continue
            for same in _stacks(ready):
                moved.append(self._muon(same, group["blocks"], group["lr"], taken))
                entries += sum(p.numel() for p in same)
        self.update_rms = (
            (torch.stack(moved).sum() / entries).sqrt()
            if moved
            else torch.zeros((), device=self._device)
        )

    def forget_step(self) -> None:
        """Take back what a step that was not taken counted, once the host knows of it."""
        for state in self.state.values():
            if "step" in state:
                state["step"] -= 1

    def masters(self, parameter: Tensor) -> list[Tensor]:
        """Every copy of a parameter that a change from outside has to reach, the master last."""
        master = self.state.get(parameter, {}).get("master")
        return [parameter.data] if master is None else [parameter.data, master]

    def _muon(
        self, same: list[nn.Parameter], blocks: int, lr: float, taken: Tensor | None
    ) -> Tensor:
        """Matrices of one shape at once; the sum of squares of their update."""
        config = self.config
        gradients = _gradients(same)
        kept = [self._state(p, muon=True)["momentum"] for p in same]
        momenta = _opened(kept, taken)
        torch._foreach_mul_(momenta, config.momentum)
        torch._foreach_add_(momenta, gradients)
        _close(kept, momenta, taken)
        wanted = (
            torch._foreach_add(gradients, momenta, alpha=config.momentum)
            if config.nesterov
            else momenta
        )
        rows, columns = same[0].shape[-2] // blocks, same[0].shape[-1]
        stacks = [w.reshape(-1, rows, columns) for w in wanted]
        stack = torch.cat(stacks) if len(stacks) > 1 else stacks[0]
        if config.newton_schulz == "bf16" or (config.newton_schulz == "auto" and stack.is_cuda):
            stack = stack.bfloat16()
        scale = config.update_rms * math.sqrt(max(rows, columns))
        update = orthogonalize(stack, config.coefficients).to(wanted[0].dtype)
        pieces = update.split([p.numel() // (rows * columns) for p in same])
        updates = [piece.reshape(p.shape) for p, piece in zip(same, pieces, strict=True)]
        self._apply(same, updates, lr, taken, size=scale)
        return torch.linalg.vector_norm(update).mul_(scale).square_()

    def _adamw(self, some: list[nn.Parameter], lr: float, taken: Tensor | None) -> None:
        config = self.config
        gradients = _gradients(some)
        states = [self._state(p, muon=False) for p in some]
        for state in states:
            state["step"] += 1
        kept_means, kept_squares = ([s[name] for s in states] for name in ("mean", "square"))
        means, squares = _opened(kept_means, taken), _opened(kept_squares, taken)
        torch._foreach_lerp_(means, gradients, 1 - config.beta1)
        torch._foreach_mul_(squares, config.beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - config.beta2)
        _close(kept_means, means, taken)
        _close(kept_squares, squares, taken)
        updates = list(torch._foreach_div(means, [1 - config.beta1 ** s["step"] for s in states]))
        divisors = torch._foreach_div(squares, [1 - config.beta2 ** s["step"] for s in states])
        torch._foreach_sqrt_(divisors)
        torch._foreach_add_(divisors, config.eps)
        torch._foreach_div_(updates, divisors)
        self._apply(some, updates, lr, taken, size=1.0)

    def _state(self, p: nn.Parameter, *, muon: bool) -> dict[str, Any]:
        state = self.state[p]
        if not state:
            for name in ("momentum",) if muon else ("mean", "square"):
                state[name] = torch.zeros_like(p, dtype=wide_dtype(p.dtype))
            if not muon:
                state["step"] = 0
            if p.dtype != wide_dtype(p.dtype):
                state["master"] = widened(p.detach())
        return state

    def _apply(
        self,
        parameters: list[nn.Parameter],
        updates: Sequence[Tensor],
        lr: float,
        taken: Tensor | None,
        *,
        size: float,
    ) -> None:
        """`size`: factor on the updates, lr apart."""
        masters = [self.state[p].get("master") for p in parameters]
        weights = [p.data if m is None else m for p, m in zip(parameters, masters, strict=True)]
        moved = _opened(weights, taken)
        torch._foreach_mul_(moved, 1 - lr * self.config.weight_decay)
        torch._foreach_add_(moved, list(updates), alpha=-lr * size)
        _close(weights, moved, taken)
        for p, master in zip(parameters, masters, strict=True):
            if master is not None:
                p.data.copy_(master)


def _gradients(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Of those that have one: the caller has left the others out."""
    return [widened(p.grad) for p in parameters if p.grad is not None]


def _opened(tensors: list[Tensor], taken: Tensor | None) -> list[Tensor]:
    """What to change in place: the tensors, or copies while nobody knows if the step counts."""
    return tensors if taken is None else [tensor.clone() for tensor in tensors]


def _close(tensors: list[Tensor], changed: list[Tensor], taken: Tensor | None) -> None:
    """Put what was changed in copies back, if the step is taken."""
    if taken is not None:
        for tensor, other in zip(tensors, changed, strict=True):
            torch.where(taken, other, tensor, out=tensor)


def _bounded(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """As many together as may be at once, of one device."""
    own: list[nn.Parameter] = []
    for p in parameters:
        on_cpu = p.device.type == "cpu"
        most = min(STACK_ENTRIES, STACK_ENTRIES_ON_CPU) if on_cpu else STACK_ENTRIES
        entries = sum(q.numel() for q in own) + p.numel()
        if own and (entries > most or p.device != own[0].device):
            yield own
            own = []
        own.append(p)
    if own:
        yield own


def _stacks(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Those with matrices of one shape together, as many as may be at once."""
    groups: dict[tuple[Any, ...], list[nn.Parameter]] = {}
    for p in parameters:
        groups.setdefault((p.shape[-2:], p.device), []).append(p)
    for group in groups.values():
        yield from _bounded(group)


def optimizer_of(
    model: Decoder, config: OptimizerConfig = OptimizerConfig(), *, lr: float
) -> MuonAdamW:
    """Muon for every matrix inside the layers, routers and stacks of experts included; AdamW for
    embedding, head and norms."""
    heads = model.config.num_heads
    whole: list[nn.Parameter] = []
    by_head: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, p in model.named_parameters():
        if not config.muon or p.ndim < 2 or not name.startswith("model.layers."):
            rest.append(p)
        elif config.split_heads and _rows_are_heads(name):
            by_head.append(p)
        else:
            whole.append(p)
    return MuonAdamW([Blocks(whole, 1), Blocks(by_head, heads)], rest, config, lr=lr)


def _rows_are_heads(name: str) -> bool:
    return name.endswith(("q_b_proj.weight", "q_proj.weight", "kv_b_proj.weight"))


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr
