"""From what on a layer of fidelity speaks up, and which of them drop a rewrite."""

from typing import Literal

from pydantic import Field

from records.config import Config

FlagReason = Literal[
    "wrong_language",
    "too_short",
    "too_long",
    "repetitive",
    "numbers_lost",
    "numbers_added",
    "units_changed",
    "dates_changed",
    "names_lost",
    "names_added",
    "quotation_changed",
    "code_changed",
    "table_lost",
    "heading_lost",
    "formula_lost",
    "formula_added",
    "formula_false",
    "answer_lost",
    "doubted",
    "contradicted",
    "sentence_lost",
    "sentence_added",
    "misaligned",
    "copied",
    "exact_fault",
    "unfaithful",
]

HARD: tuple[FlagReason, ...] = (
    "wrong_language",
    "repetitive",
    "code_changed",
    "formula_false",
    "answer_lost",
    "copied",
    "exact_fault",
    "unfaithful",
)
"""What drops a document by itself. `exact_fault` is what `synth.rephrasing.exact` finds in a part,
and stands in the rows by its kind, such as `number_changed`; `unfaithful` is the judge's word."""


HINTS: tuple[FlagReason, ...] = (
    "too_short",
    "too_long",
    "quotation_changed",
    "table_lost",
    "heading_lost",
    "misaligned",
    "doubted",
)
"""What a faithful part is hardly ever flagged for, and `doubted`, which other meanings raise more
often than faithful words do. The other reasons hold as often for faithful parts as for those of
another meaning (`benchmarks.rewrites.choosing`), so they are measured and flag nothing."""


class FidelityConfig(Config):
    """Shares are of the source's facts that the rewrite holds; limits count what it added. What a
    layer finds drops the rewrite if `drop_for` names its reason, and is a flag, which the judge
    looks at where there is one, if `flag_for` names it."""

    drop_for: tuple[FlagReason, ...] = HARD
    """Reasons that drop a rewrite."""
    flag_for: tuple[FlagReason, ...] = HINTS
    """Reasons that flag a part and a rewrite that they do not drop. Those of words alone
    (`contradicted`, `sentence_added` and the like) hold for every second faithful part.
    `exact_fault` and `unfaithful` flag wherever they do not drop, and need not be named."""
    doubt_at: float = Field(default=0.9, ge=0.0)
    """How much of a sentence stands in the closest one of the other text, where one of the two
    alone holds a negation; from here on: `doubted`. Above 1: never."""
    drawn_share: float = Field(default=0.02, ge=0.0, le=1.0)
    """Share of stored parts that the judge is asked about by lot, whatever they say. While parts
    are written it is the default, whatever stands here: what comes back decides the text."""

    min_numbers: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the numbers kept; below: `numbers_lost`."""
    max_new_numbers: int = Field(default=0, ge=0)
    """Numbers that the source does not hold; above: `numbers_added`."""
    min_units: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the values that kept their unit; below, or with another unit: `units_changed`."""
    min_dates: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the dates and times kept; below, or with a new one: `dates_changed`."""
    min_names: float = Field(default=0.75, ge=0.0, le=1.0)
    """Share of the names and identifiers kept; below: `names_lost`."""
    max_new_names: int = Field(default=0, ge=0)
    """Names that the source does not hold; above: `names_added`."""
    min_quotations: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the quotations kept word for word; below: `quotation_changed`. New ones are
    named but drop nothing: narratives and dialogues may set speech in marks."""
    min_code: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the code blocks kept line for line; below, or with a new one: `code_changed`."""
    min_cells: float = Field(default=0.95, ge=0.0, le=1.0)
    """Share of the tables' cells kept; below: `table_lost`."""
    min_headings: float = Field(default=0.5, ge=0.0, le=1.0)
    """Share of the headings whose words are kept; below: `heading_lost`."""
    min_formulas: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the formulas kept, as trees; below: `formula_lost`."""
    max_new_formulas: int | None = Field(default=None, ge=0)
    """Formulas that the source does not hold; above: `formula_added`. None: notes may work out
    more, as long as every closed equation in it is true."""
    conflict_at: float = Field(default=0.6, ge=0.0, le=1.0)
    """How alike two sentences must be for a difference between them to count: `contradicted`."""
    negation_at: float = Field(default=0.5, ge=0.0, le=1.0)
    """The same for a word that one text denies and the other one states."""
    lost_at: float = Field(default=0.15, ge=0.0, le=1.0)
    """A sentence of the source that is covered less is lost: `sentence_lost`."""
    added_at: float = Field(default=0.15, ge=0.0, le=1.0)
    """A sentence of the rewrite that is covered less is invented: `sentence_added`."""
    outlier_by: float = Field(default=0.55, ge=0.0, le=1.0)
    """So is one that is covered less than the text's sentences on average by this much: where the
    words stay close to the source's, a new sentence shows sooner."""
    min_telling: int = Field(default=4, ge=1)
    """Telling words of a sentence that can be lost or invented: of "It follows:" nothing is."""
    min_recall: float = Field(default=0.3, ge=0.0, le=1.0)
    """Mean coverage of the source's sentences; below: `misaligned`."""
    min_precision: float = Field(default=0.3, ge=0.0, le=1.0)
    """Mean coverage of the rewrite's sentences; below: `misaligned`."""
    min_similarity: float = Field(default=0.5, ge=0.0, le=1.0)
    """In place of the four above where an embedder aligned: its mean cosine, both ways."""
    min_length: float = Field(default=0.5, ge=0.0)
    """Words of the rewrite by words of the source; below: `too_short`."""
    max_length: float = Field(default=2.5, gt=0.0)
    """Above: `too_long`."""
    max_repetition: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of repeated runs of words beyond those of the source; above: `repetitive`."""
    max_copied: float = Field(default=0.9, ge=0.0, le=1.0)
    """Share of the words in runs that the source holds; above: `copied`."""
