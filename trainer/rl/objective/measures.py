"""What is measured of a step's drawn tokens, added up over its passes where the model is.

Shape suffixes in this file: N = drawn tokens.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.model.decoder import Output
from trainer.rl.objective.logprobs import TokenLogprobs
from trainer.rl.objective.objectives import LearntTokens, k3
from trainer.rl.objective.packing import LearntRows


@dataclass(frozen=True)
class LearningMeasures:
    """Means are over drawn tokens, logarithms natural. All are of the weights before the step."""

    tokens: int
    policy_loss: float
    """Of the objective alone."""
    kl_k1: float
    """Mean of log pi_old - log pi: KL(pi_old || pi), without bias where tokens are drawn at
    temperature 1 without top-p and grammar; it may be below 0. Of fresh samples it is 0 before the
    first step of an iteration."""
    kl_k3: float
    """The same by `trainer.rl.objective.objectives.k3`: never below 0."""
    reference_kl: float | None
    """Of pi from the reference by k3; None where there is none."""
    sampling_kl: float
    """Mean log-probability by which drawing differed from the model that drew: temperature, top-p,
    grammar."""
    entropy: float
    """Of the tokens' distributions at temperature 1."""
    cut: float
    """Share of the tokens by which the reward moves nothing, since their ratio is out of bounds."""
    log_ratio_abs: float
    """Mean size of log pi - log pi_old."""
    log_ratio_max: float
    """Largest size of it."""
    stale: float
    """Share of the tokens that older weights drew."""
    staleness_mean: float
    """In versions of the weights, 0 for tokens of those that are learnt."""
    staleness_max: int
    stale_log_ratio_abs: float | None
    """As `log_ratio_abs`, of the tokens that older weights drew; None where there is none."""
    replayed: float
    """Share of the choices of experts that were given: of all tokens of the rows but padding."""
    route_agreement: float | None
    """Share of the given choices that the routers would have made themselves; None without any."""
    ptx_loss: float | None
    """Nats a learnt token of the good conversations, before its weight; None without any."""
    verdict_loss: float | None
    """The same of a critic's right verdicts."""


SUMS = (
    "tokens",
    "policy_loss",
    "k1",
    "k3",
    "reference",
    "sampling",
    "entropy",
    "cut",
    "size",
    "stale",
    "staleness",
    "stale_size",
    "given",
    "agreed",
    "choices",
    "ptx",
    "verdict",
)
"""What is added up."""

TOPS = ("size", "staleness")
"""What the largest is taken of."""


@dataclass
class MeasuredPasses:
    """Of the passes so far."""

    _sums: dict[str, Tensor] = field(default_factory=dict)
    _tops: dict[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def add(
        self,
        rows: LearntRows,
        output: Output,
        tokens: LearntTokens,
        made: TokenLogprobs,
        cut_N: Tensor,
        policy_loss: Tensor,
        *,
        version: int,
    ) -> None:
        """`version`: of the weights that learn."""
        log_ratios_N = (tokens.logprobs_N - tokens.old_N).double()
        size_N, staleness_N = log_ratios_N.abs(), version - rows.versions_N
        stale_N = (staleness_N > 0).double()
        self._add("tokens", torch.ones_like(size_N))
        self._add("policy_loss", policy_loss)
        self._add("k1", -log_ratios_N)
        self._add("k3", k3(log_ratios_N))
        if tokens.reference_N is not None:
            self._add("reference", k3((tokens.reference_N - tokens.logprobs_N).double()))
        self._add("sampling", (rows.sampled_N - rows.old_N).double())
        self._add("entropy", made.entropies_N)
        self._add("cut", cut_N)
        self._add("size", size_N)
        self._add("stale", stale_N)
        self._add("staleness", staleness_N)
        self._add("stale_size", size_N * stale_N)
        self._add("choices", output.load_LE)
        if output.agreed_2 is not None:
            self._add("given", output.agreed_2[0])
            self._add("agreed", output.agreed_2[1])
        for name, value_N in (("size", size_N), ("staleness", staleness_N.double())):
            top = value_N.amax()
            self._tops[name] = torch.maximum(self._tops[name], top) if name in self._tops else top

    @torch.no_grad()
    def add_beside(self, name: str, loss: Tensor) -> None:
        """A part of the mean loss of rows that are learnt beside the samples, before its weight."""
        self._add(name, loss)

    def told(self) -> dict[str, Tensor]:
        """What is to be read, by names of its own."""
        named = {f"sum {name}": value for name, value in self._sums.items()}
        return named | {f"top {name}": value for name, value in self._tops.items()}

    def _add(self, name: str, value: Tensor) -> None:
        total = value.detach().double().sum()
        self._sums[name] = self._sums[name] + total if name in self._sums else total


def measures_of(told: dict[str, list[float]]) -> LearningMeasures:
    """Of what `MeasuredPasses.told` gave, as it was read."""
    sums = {name: told[f"sum {name}"][0] if f"sum {name}" in told else None for name in SUMS}
    tops = {name: told[f"top {name}"][0] if f"top {name}" in told else 0.0 for name in TOPS}

    def share(name: str, of: str) -> float:
        over = sums[of] or 0.0
        return (sums[name] or 0.0) / over if over else 0.0

    return LearningMeasures(
        tokens=int(sums["tokens"] or 0),
        policy_loss=sums["policy_loss"] or 0.0,
        kl_k1=share("k1", "tokens"),
        kl_k3=share("k3", "tokens"),
        reference_kl=None if sums["reference"] is None else share("reference", "tokens"),
        sampling_kl=share("sampling", "tokens"),
        entropy=share("entropy", "tokens"),
        cut=share("cut", "tokens"),
        log_ratio_abs=share("size", "tokens"),
        log_ratio_max=tops["size"],
        stale=share("stale", "tokens"),
        staleness_mean=share("staleness", "tokens"),
        staleness_max=int(tops["staleness"]),
        stale_log_ratio_abs=share("stale_size", "stale") if sums["stale"] else None,
        replayed=share("given", "choices"),
        route_agreement=share("agreed", "given") if sums["given"] else None,
        ptx_loss=sums["ptx"],
        verdict_loss=sums["verdict"],
    )
