"""What `synth rephrase` is told."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from records.config import Config
from records.tables.splits import HELDOUT_SHARE
from synth.engine.job_config import JobConfig, Role
from synth.llm.settings.config import OFFLINE, BudgetConfig, RoleConfig
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.writing.gates import GateName
from synth.rephrasing.writing.parts import PartContext

STAGES = ("rephrase", "selection")

JudgedParts = Literal["flagged", "all", "none"]

DRY_RUN_DOCUMENTS = 6


class SourceConfig(Config):
    """Texts to rewrite."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"max_documents"})
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"config": None})

    path: str = Field(min_length=1)
    """A .parquet, .jsonl, .txt or .md file (the last three may be compressed: .gz, .zst), a folder
    of such files, a pattern (`data/*.jsonl.zst`), an address of either that `fsspec` opens
    (`s3://`, `gs://`, `https://`, `hf://`; each kind needs its package), a folder that `datasets`
    saved, with format = "datasets" a name on the Hugging Face hub, or a built-in source: `cpython`
    (its language reference and the docstrings of its standard library), `maths` (problems with
    worked solutions, in several languages)."""
    format: Literal["auto", "datasets"] = "auto"
    """By the path, or the name of a data set."""
    kind: Literal["knowledge", "maths"] = "knowledge"
    """Mathematics becomes learning notes, and English."""
    text: str = "text"
    """Column or key of the text, in tables and JSON lines."""
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    """Of all its texts, where the rows have no column `language`; guessed if neither is there."""
    split: str = "train"
    """Of a data set."""
    config: str | None = None
    """Of a data set on the hub that has several, such as a language: `en`."""
    license: str = "unknown"
    """SPDX id of the texts' terms."""
    max_documents: int | None = Field(default=None, ge=1)
    """Texts to take, from the beginning. No part of an identity: raising it adds items."""


class SelectionConfig(Config):
    near: float = Field(default=0.8, gt=0.0, le=1.0)
    """Jaccard similarity of word 3-grams from which two rewrites are the same text twice."""


class RephraseConfig(JobConfig):
    """A rephrasing run. Which rows a text gives does not depend on what other texts there are,
    but for the rewrites that repeat another's."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = JobConfig.NOT_IDENTITY | {"rewrites"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **JobConfig.ADDED_LATER,
            "heldout_share": 0.1,
            "neighbours": 1,
            "decontaminate": [],
            "decontaminate_words": 13,
        }
    )
    KIND: ClassVar[str] = "rephrase"
    STAGES: ClassVar[tuple[str, ...]] = STAGES
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        "rewriter": RoleConfig(max_tokens=2048),
        "judge": RoleConfig(),
        "embedder": RoleConfig(),
    }

    name: str = Field(default="rephrase", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""
    concurrency: int = Field(default=160, ge=1, le=4096)
    """Documents in flight at once; the parts of each are written one after another. A quarter more
    than `max_in_flight` of the rewriter: those that are being checked have no request out."""
    shard_size: int = Field(default=64, ge=1, le=100_000)
    """Rewritten documents a commit."""

    sources: tuple[SourceConfig, ...] = Field(
        default=(SourceConfig(path="cpython"), SourceConfig(path="maths", kind="maths")),
        min_length=1,
    )
    """Where the texts come from."""
    heldout_share: float = Field(default=HELDOUT_SHARE, ge=0.0, le=1.0)
    """Share of texts that are held out by their own digest: what is written of them trains nothing
    and is there to score on."""
    decontaminate: tuple[str, ...] = ()
    """Files of evaluations, or patterns and addresses as in `sources.path`: all strings in their
    rows count. A document that shares a run of words with one is dropped before anything is asked
    (`in_evaluation`)."""
    decontaminate_words: int = Field(default=13, ge=3, le=100)
    """Length of the shared run from which a document counts as holding an evaluation."""
    rewrites: int = Field(default=2, ge=1, le=100)
    """Rewrites of each text, no two in the same style and perspective while there are others."""
    styles: tuple[str, ...] = Field(default=("all",), min_length=1)
    """Names of styles for knowledge, or `all`."""
    perspectives: tuple[str, ...] = Field(default=("all",), min_length=1)
    """Names of perspectives, or `all`."""
    chunk_tokens: int = Field(default=256, ge=32, le=8192)
    """Size of the parts that are rewritten in one go."""
    max_document_tokens: int = Field(default=4096, ge=64, le=131_072)
    """A longer text becomes several documents."""
    context: PartContext = "full"
    """What a part is rewritten in view of: the whole document and all that is written so far, or
    the parts next to it, which costs fewer tokens."""
    neighbours: int = Field(default=1, ge=1, le=64)
    """Parts of the source on each side, and rewritten parts before, that context = "neighbours"
    shows."""
    fidelity: FidelityConfig = FidelityConfig()
    """How far a rewrite may depart from its source before it is dropped."""
    align: Literal["words", "embedder"] = "words"
    """How sentences of source and rewrite are matched: by their words, which costs nothing, or by
    the vectors of the role `embedder`, held to `fidelity.min_similarity` alone."""
    judge: JudgedParts = "flagged"
    """Parts whose meaning the role `judge` compares with the source: those that a layer flags,
    where the judge has an endpoint (or stands in `offline.roles`), all, or none. What it finds
    unfaithful is shown to the rewriter; what it finds faithful is flagged no more."""
    gates: tuple[GateName, ...] = ("toxicity", "personal_data")
    """What a rewrite is looked through for, by simple rules."""
    selection: SelectionConfig = SelectionConfig()
    """What is dropped when all rewrites are looked at together."""

    @property
    def asks_judge(self) -> bool:
        """Whether the judge has a say: always where all parts are its, and where it is to look at
        what is flagged if somebody plays it."""
        has_model = self.roles["judge"].base_url != OFFLINE or "judge" in self.offline.roles
        return self.judge == "all" or (self.judge == "flagged" and has_model)

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """Those that the settings give something to do."""
        idle = {"judge": not self.asks_judge, "embedder": self.align != "embedder"}
        return {role: own for role, own in self.roles.items() if not idle.get(role, False)}

    def in_small(self) -> "RephraseConfig":
        """The same run on a handful of texts, played by the offline model: a dry run."""
        few = (s.model_copy(update={"max_documents": DRY_RUN_DOCUMENTS}) for s in self.sources)
        return self.model_copy(
            update={
                "roles": dict(self.DEFAULT_ROLES),
                "sources": tuple(few),
                "shard_size": 8,
                "budget": BudgetConfig(),
            }
        )
