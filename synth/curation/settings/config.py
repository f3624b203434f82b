"""The settings of curation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from records.config import Config

PassRate = Annotated[float, Field(ge=0.0, le=1.0)]
CappedShare = Annotated[float, Field(ge=0.0, le=1.0)]

AgentTurnFault = Literal["failing_call", "refused_arguments", "repeated_failure", "false_statement"]
"""What is wrong with a message of the agent's."""

QuotaDimension = Literal["domain", "complexity", "variant", "outcome", "executed_by"]

DIMENSIONS: tuple[QuotaDimension, ...] = get_args(QuotaDimension)

ANY_OTHER = "*"
"""The key of a quota that holds for every value that has none of its own."""


class DecontaminationConfig(Config):
    """Which trajectories are dropped for what they share with an evaluation."""

    files: tuple[str, ...] = ()
    """Files of evaluations: tasks, policies or tools as .jsonl, .json, .parquet, .txt or .md (all
    but Parquet may be compressed: .gz, .zst), a folder of such files, a pattern (`evals/*.jsonl`),
    or an address that `fsspec` opens. Every string in every row counts."""
    words: int = Field(default=10, ge=3, le=100)
    """Length of the run of words from which a text of the trajectory and an evaluation share it."""
    near: float = Field(default=0.25, gt=0.0, le=1.0)
    """Jaccard similarity of word 3-grams from which a passage is one of an evaluation with other
    names in it. Passages that chance wrote share next to nothing."""
    near_tools: float = Field(default=0.8, gt=0.0, le=1.0)
    """The same for tools, which often resemble one another: name, description and parameters."""
    cosine: float = Field(default=0.6, gt=0.0, le=1.0)
    """Cosine of the vectors of the role `embedder` from which a passage says the same as one of an
    evaluation. The default is for a small model of sentences; what is right depends on the model.
    The embedder is asked where it has an endpoint, or stands in `offline.roles`."""


class CurationConfig(Config):
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "band": None,
            "near": None,
            "decontamination": {
                "files": [],
                "words": 10,
                "near": 0.25,
                "near_tools": 0.8,
                "cosine": 0.6,
            },
            "quotas": {},
            "quota_min": 3,
            "no_loss": ["failing_call"],
        }
    )

    sequence_share: float = Field(default=0.05, gt=0.0, le=1.0)
    """Largest share of the accepted trajectories that call the same tools in the same order, of
    those that were played here and call any: imported ones follow no plan of ours. It is of what is
    kept, so with few sequences in all little stays; 1 is no limit."""

    sequence_min: int = Field(default=3, ge=1)
    """So many of one sequence are kept however small the set: there a share means little."""

    band: tuple[PassRate, PassRate] | None = None
    """Lowest and highest pass rate of the tasks whose trajectories are kept, such as [0.1, 0.9].
    None: all, whatever their pass rates."""

    near: float | None = Field(default=None, gt=0.0, le=1.0)
    """Jaccard similarity of word 3-grams from which two conversations are one twice, of which the
    better is kept: what user and agent say and what is called, results left out. Conversations on
    code are left to the rule that keeps one task a bug. None: only those with the same opening and
    the same sequence of tools are."""

    decontamination: DecontaminationConfig = DecontaminationConfig()
    """Which evaluations nothing may be trained on."""

    quotas: dict[QuotaDimension, dict[str, CappedShare]] = Field(default_factory=dict)
    """Largest shares of the kept trajectories, by dimension (domain, complexity, variant, outcome,
    executed_by) and value, such as `{domain = {"*" = 0.1, hotel = 0.2}, executed_by = {llm = 0.3}}`
    (`*` is for every value that is not named; without it these have no limit). A domain is its
    name, on MCP servers the server's. A trajectory counts for each of its executors. `none` is
    where nothing was called, and what is not known, as the domain of imported conversations; `*` is
    not for it. Of what is over a share the worst by score is dropped."""

    quota_min: int = Field(default=3, ge=0)
    """So many of one value are kept whatever its share, but where that is 0."""

    no_loss: tuple[AgentTurnFault, ...] = ("failing_call",)
    """Which messages of the agent stay in context and carry no loss: those with a `failing_call`,
    whatever the error, unless it was injected; with `refused_arguments`, a call whose form or
    arguments the tool did not take; with a `repeated_failure`, a call that failed and is made again
    with the same arguments, to fail again while nothing was changed; with a `false_statement` by
    the grading's findings on truth."""

    @model_validator(mode="after")
    def _band_is_not_empty(self) -> Self:
        if self.band is not None and self.band[0] > self.band[1]:
            raise ValueError(f"band is [lowest, highest], got {list(self.band)}")
        return self
