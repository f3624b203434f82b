"""Muon for matrices and AdamW for everything else, in one optimizer with fp32 masters.

    M_t = mu M_{t-1} + G_t
    O_t = NewtonSchulz(M_t) sqrt(max(rows, columns)) rms
    W_t = W_{t-1} - lr (O_t + weight_decay W_{t-1})

Sources: https://arxiv.org/abs/2507.20534 algorithm 1; https://arxiv.org/abs/2502.16982 section 2.2
(the factor that gives updates AdamW's RMS, so that one lr and one weight decay serve both).
QK-Clip, the other half of MuonClip, is in `trainer.optim.qk_clip`.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from records.config import Config
from trainer.model.decoder import Decoder
from trainer.optim.orthogonal import Coefficients, orthogonalize

STACK_ENTRIES = 2**27
"""Of matrices that are orthogonalised together, which takes the memory of some copies of them. More
are no faster."""

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
    """State of a parameter: Muon's momentum, or AdamW's moments and step; and, where it is not
    fp32, its fp32 master, from which it is rounded after each step.

    `last_update_rms` is measured: over all entries that Muon moved in the last step, before lr.
    """

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
        self.last_update_rms = 0.0
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

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        moved: list[Tensor] = []
        entries = 0
        for group in self.param_groups:
            ready = [p for p in group["params"] if p.grad is not None]
            if not group["blocks"]:
                for p in ready:
                    self._adamw(p, group["lr"])
                continue
            for same in _stacks(ready):
                moved.append(self._muon(same, group["blocks"], group["lr"]))
                entries += sum(p.numel() for p in same)
        # read once a step: each reading waits for a GPU
        square = torch.stack(moved).sum().item() if moved else 0.0
        self.last_update_rms = math.sqrt(square / entries) if entries else 0.0

    def masters(self, parameter: Tensor) -> list[Tensor]:
        """Every copy of a parameter that a change from outside has to reach, the master last."""
        master = self.state.get(parameter, {}).get("master")
        return [parameter.data] if master is None else [parameter.data, master]

    def _muon(self, same: list[nn.Parameter], blocks: int, lr: float) -> Tensor:
        """Matrices of one shape at once; the sum of squares of their update."""
        config = self.config
        wanted: list[Tensor] = []
        for p in same:
            state = self._state(p, muon=True)
            gradient = _gradient(p)
            momentum = state["momentum"].mul_(config.momentum).add_(gradient)
            wanted.append(
                gradient.add(momentum, alpha=config.momentum) if config.nesterov else momentum
            )
        rows, columns = same[0].shape[-2] // blocks, same[0].shape[-1]
        stacks = [w.reshape(-1, rows, columns) for w in wanted]
        stack = torch.cat(stacks) if len(stacks) > 1 else stacks[0]
        if config.newton_schulz == "bf16" or (config.newton_schulz == "auto" and stack.is_cuda):
            stack = stack.bfloat16()
        scale = config.update_rms * math.sqrt(max(rows, columns))
        update = orthogonalize(stack, config.coefficients).float()
        pieces = update.split([p.numel() // (rows * columns) for p in same])
        for p, piece in zip(same, pieces, strict=True):
            self._apply(p, piece.reshape(p.shape), lr, size=scale)
        return torch.linalg.vector_norm(update).mul_(scale).square_()

    def _adamw(self, p: nn.Parameter, lr: float) -> None:
        config, state = self.config, self._state(p, muon=False)
        state["step"] += 1
        gradient = _gradient(p)
        state["mean"].lerp_(gradient, 1 - config.beta1)
        state["square"].mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
        square = state["square"] / (1 - config.beta2 ** state["step"])
        update = state["mean"] / square.sqrt_().add_(config.eps)
        self._apply(p, update, lr, size=1 / (1 - config.beta1 ** state["step"]))

    def _state(self, p: nn.Parameter, *, muon: bool) -> dict[str, Any]:
        state = self.state[p]
        if not state:
            for name in ("momentum",) if muon else ("mean", "square"):
                state[name] = torch.zeros_like(p, dtype=torch.float32)
            if not muon:
                state["step"] = 0
            if p.dtype != torch.float32:
                state["master"] = p.detach().float()
        return state

    def _apply(self, p: nn.Parameter, update: Tensor, lr: float, *, size: float) -> None:
        master = self.state[p].get("master")
        weight = p.data if master is None else master
        weight.mul_(1 - lr * self.config.weight_decay).add_(update, alpha=-lr * size)
        if master is not None:
            p.data.copy_(master)


def _gradient(p: nn.Parameter) -> Tensor:
    assert p.grad is not None  # the caller has left those without out
    return p.grad.float()


def _stacks(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Those with matrices of one shape together, as many as may be at once."""
    groups: dict[tuple[Any, ...], list[nn.Parameter]] = {}
    for p in parameters:
        own = groups.setdefault((p.shape[-2:], p.device), [])
        most = STACK_ENTRIES if p.is_cuda else min(STACK_ENTRIES, STACK_ENTRIES_ON_CPU)
        if own and sum(q.numel() for q in own) + p.numel() > most:
            yield own[:]
            own.clear()
        own.append(p)
    yield from groups.values()


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
