"""What `synth rephrase` is told."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from records.config import Config
from records.tables.splits import HELDOUT_SHARE
from synth.engine.job_config import JobConfig, Role
from synth.judging.judge_rates import MinimumQuality
from synth.llm.settings.config import OFFLINE, BudgetConfig, RoleConfig
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.writing.gates import GateSetting
from synth.rephrasing.writing.parts import PartContext

STAGES = (
    "rephrase",
    "rephrasing-measurements",
    "rephrasing-gates",
    "rephrasing-verdicts",
    "rephrasing-calibration",
    "rephrasing-decisions",
)

JudgedParts = Literal["flagged", "all", "none"]

DRY_RUN_DOCUMENTS = 6


class SourceConfig(Config):
    """Texts to rewrite."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"max_documents"})
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"genre": None, "styles": None, "config": None}
    )

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
    genre: str | None = None
    """Of all its texts, a name of `synth/prompts/rephrase/genres.toml`, such as `reference` or
    `narrative`. Where there is none the rewriter is asked, once a document."""
    styles: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Names of styles for its texts, in place of the run's."""
    max_documents: int | None = Field(default=None, ge=1)
    """Texts to take, from the beginning. No part of an identity: raising it adds items."""


class SelectionConfig(Config):
    near: float = Field(default=0.8, gt=0.0, le=1.0)
    """Jaccard similarity of word 3-grams from which two rewrites are the same text twice."""


class RewriteMinimumQuality(MinimumQuality):
    """What the judge must reach on changed parts and on controls."""

    min_control_accept: float = Field(default=0.7, ge=0.0, le=1.0)
    """Least share of the controls that it must find faithful, so that false rejects are at most the
    rest; the lower bound of its interval must not lie below, either. Half of the controls are parts
    that nobody has looked at, so what is truly unfaithful there lowers the share, too: a strict
    judge finds a small stretch in one of ten parts that a language model wrote."""


class RephrasingTrialConfig(Config):
    """How the judge of rewrites is tried: on parts with one planned change of meaning, and on
    controls."""

    share: float = Field(default=0.05, ge=0.0, le=1.0)
    """Changed parts that the judge is tried with, as a share of the parts that a judge was asked
    about, and as many controls. Each changed part is one request to the judge and two to the
    generator, three times as many of the latter at most where a part has no place for a change or
    nothing confirms it. With 0 the judge is unmeasured."""
    at_least: int = Field(default=20, ge=1, le=10_000)
    """Changed parts, however few parts were judged. With fewer no judge can be certain to reach its
    minimum."""
    at_most: int = Field(default=200, ge=1, le=10_000)
    """Changed parts, however many parts were judged; it holds over `at_least`."""
    minimum_quality: RewriteMinimumQuality = RewriteMinimumQuality()
    """What the judge must reach for its word to count."""


class RephraseConfig(JobConfig):
    """A rephrasing run. Which rows a text gives does not depend on what other texts there are,
    but for the rewrites that repeat another's."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = JobConfig.NOT_IDENTITY | {"rewrites", "calibration"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **JobConfig.ADDED_LATER,
            "heldout_share": 0.1,
            "neighbours": 1,
            "parts_per_request": 1,
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
        "generator": RoleConfig(),
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
    """Names of styles for knowledge, or `all`. Those that suit a text's genre are drawn, or any of
    them where none does."""
    perspectives: tuple[str, ...] = Field(default=("all",), min_length=1)
    """Names of perspectives, or `all`; drawn in the same way."""
    chunk_tokens: int = Field(default=256, ge=32, le=8192)
    """Size of the parts, each of which is checked by itself."""
    parts_per_request: int = Field(default=4, ge=1, le=16)
    """Parts that the rewriter is asked for at once; fewer where the role's `max_tokens` has no room
    for them."""
    max_document_tokens: int = Field(default=4096, ge=64, le=131_072)
    """A longer text becomes several documents."""
    context: PartContext = "neighbours"
    """What parts are rewritten in view of: those next to them, or the whole document and all that
    is written so far, which costs more than twice the tokens unless the endpoint keeps beginnings
    of prompts."""
    neighbours: int = Field(default=1, ge=1, le=64)
    """Parts of the source on each side, and rewritten parts before, that context = "neighbours"
    shows."""
    fidelity: FidelityConfig = FidelityConfig()
    """How far a rewrite may depart from its source before it is dropped."""
    align: Literal["words", "embedder"] = "words"
    """How sentences of source and rewrite are matched: by their words, which costs nothing, or by
    the vectors of the role `embedder`, held to `fidelity.min_similarity` alone. A small embedding
    model tells changes of meaning no better than words do (docs/results/rewrites_202611.md)."""
    judge: JudgedParts = "flagged"
    """Parts whose meaning the role `judge` compares with the source: those that a layer flags and a
    share by lot (`fidelity.drawn_share`), where the judge has an endpoint (or stands in
    `offline.roles`), all, or none. What it finds unfaithful is shown to the rewriter; what it finds
    faithful is flagged no more."""
    calibration: RephrasingTrialConfig = RephrasingTrialConfig()
    """How the judge is tried, where the role `generator` has an endpoint: the offline model writes
    no changes of meaning. No part of an identity: it says how much is tried, not what rows say."""
    gates: tuple[GateSetting, ...] = ("personal_data",)
    """What a rewrite is looked through for and dropped: `personal_data`, or a hook of your own as
    `my_gates.py:toxicity` or `my_package.gates:toxicity`. Nothing else is looked for, toxicity
    neither, unless a hook is given (rephrasing.md, Gates)."""
    selection: SelectionConfig = SelectionConfig()
    """What is dropped when all rewrites are looked at together."""

    @property
    def asks_judge(self) -> bool:
        """Whether the judge has a say: always where all parts are its, and where it is to look at
        what is flagged if somebody plays it."""
        has_model = self.roles["judge"].base_url != OFFLINE or "judge" in self.offline.roles
        return self.judge == "all" or (self.judge == "flagged" and has_model)

    @property
    def tries_judge(self) -> bool:
        """Whether the judge is tried. The offline model goes by rules and writes no changes of
        meaning, so it needs a generator with an endpoint."""
        has_writer = not self.roles["generator"].is_offline
        return self.asks_judge and self.calibration.share > 0 and has_writer

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """Those that the settings give something to do."""
        idle = {
            "judge": not self.asks_judge,
            "embedder": self.align != "embedder",
            "generator": not self.tries_judge,
        }
        return {role: own for role, own in self.roles.items() if not idle.get(role, False)}

    def identity(self) -> dict[str, Any]:
        """Without the generator where the judge is not tried: runs were made before there was one,
        and their ids stay."""
        values = super().identity()
        if not self.tries_judge:
            values["roles"].pop("generator")
        return values

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
