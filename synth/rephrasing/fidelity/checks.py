"""Every layer of a rewrite's fidelity, what of it a rewrite is dropped for, and what is a hint.

    fidelity = fidelity_of(source, rewrite, kind="knowledge")
    reasons_of(fidelity, FidelityConfig())   # ["numbers_lost", "contradicted"]
    verdict(fidelity, FidelityConfig())      # None: kept, since these are hints
    flags_of(fidelity, FidelityConfig())     # []: no hints either, since they say too little
    asks_judge(fidelity, FidelityConfig(), key="5d41402a")   # True: one text denies something

Nothing here asks a model: what an embedder found (`embedded.aligned`) is handed in. The judge
decides the meaning, part by part (`part_judge`).
"""

from typing import Any, Literal, NamedTuple

from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.fidelity.alignment import Alignment, aligned_by_words
from synth.rephrasing.fidelity.choice import doubt_of, is_drawn
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.conflicts import Conflict, conflicts_of
from synth.rephrasing.fidelity.language import language_of
from synth.rephrasing.fidelity.layers import (
    NOT_COMPARED,
    LayerCounts,
    MeasuredText,
    code_kept,
    dates_kept,
    headings_kept,
    names_kept,
    numbers_kept,
    quotations_kept,
    tables_kept,
    units_kept,
)
from synth.rephrasing.fidelity.maths import MathsFidelity, maths_kept
from synth.rephrasing.fidelity.overlap import copied, repeated

TextKind = Literal["knowledge", "maths"]

MAX_LISTED = 20
"""Facts of a layer that a row names; all are counted."""

MAX_CHARS = 200
"""Of each fact, sentence or quotation that a row names."""


class Fidelity(NamedTuple):
    """What was measured; see `columns` for the form of a row."""

    numbers: LayerCounts
    units: LayerCounts
    dates: LayerCounts
    names: LayerCounts
    quotations: LayerCounts
    code: LayerCounts
    tables: LayerCounts
    headings: LayerCounts
    conflicts: tuple[Conflict, ...]
    alignment: Alignment | None
    """None where the texts are in different languages and no embedder aligned them."""
    doubt: float
    """See `choice.doubt_of`; 0 where the texts are in different languages."""
    length_ratio: float
    source_language: str
    language: str
    wanted_language: str
    source_repetition: float
    repetition: float
    copied: float
    longest_copy: int
    """Words of the longest run that the source holds too; see `overlap.copied`."""
    maths: MathsFidelity | None
    """None for knowledge that holds no formula between marks."""

    def columns(self) -> dict[str, Any]:
        """JSON values, one a layer: for a row."""
        alignment = self.alignment
        return {
            **{name: _layer(getattr(self, name)) for name in _LAYERS},
            "conflicts": [_cut(conflict._asdict()) for conflict in self.conflicts[:MAX_LISTED]],
            "alignment": None
            if alignment is None
            else {
                "method": alignment.method,
                "recall": alignment.recall,
                "precision": alignment.precision,
                "weakest_source": [[score, text[:MAX_CHARS]] for score, text in alignment[3]],
                "weakest_rewrite": [[score, text[:MAX_CHARS]] for score, text in alignment[4]],
            },
            "length_ratio": self.length_ratio,
            "language": {"source": self.source_language, "rewrite": self.language},
            "repetition": {"source": self.source_repetition, "rewrite": self.repetition},
            "overlap": {"copied": self.copied, "longest": self.longest_copy},
            "maths": None if self.maths is None else _maths(self.maths),
        }


_LAYERS = ("numbers", "units", "dates", "names", "quotations", "code", "tables", "headings")


def fidelity_of(
    source: str,
    rewrite: str,
    *,
    kind: TextKind,
    language: str | None = None,
    answer: str | None = None,
    alignment: Alignment | None = None,
) -> Fidelity:
    """`language` is what the rewrite should be in; None: its source's. Of a translation only
    numbers, formulas, code, and units and dates as far as they are symbols are compared.

    `answer` is the final answer of mathematics; None: what the source marks as such.
    `alignment` is a model's; without it words are compared.
    """
    ours, theirs = ReadText(source), ReadText(rewrite)
    spoken, heard = language_of(ours.prose), language_of(theirs.prose)
    before, after = MeasuredText(ours, spoken), MeasuredText(theirs, heard)
    translated = heard != spoken and "und" not in (heard, spoken)
    # an embedder hardly tells a statement from its denial, so conflicts are looked for by words
    by_words = None if translated else aligned_by_words(ours, theirs)
    alignment = alignment or by_words
    share, longest = copied(ours.words, theirs.words)
    return Fidelity(
        numbers=numbers_kept(before, after, translated=translated),
        units=units_kept(before, after, translated=translated),
        dates=dates_kept(before, after, translated=translated),
        names=NOT_COMPARED if translated else names_kept(ours, theirs, heard),
        quotations=NOT_COMPARED if translated else quotations_kept(ours, theirs),
        code=code_kept(ours, theirs),
        tables=NOT_COMPARED if translated else tables_kept(ours, theirs),
        headings=NOT_COMPARED if translated else headings_kept(ours, theirs),
        conflicts=conflicts_of(ours, theirs, by_words) if by_words else (),
        alignment=alignment,
        doubt=doubt_of(ours, theirs, by_words, heard) if by_words else 0.0,
        length_ratio=_length(theirs) / max(1.0, _length(ours)),
        source_language=spoken,
        language=heard,
        wanted_language=language or spoken,
        source_repetition=repeated(ours.words),
        repetition=repeated(theirs.words),
        copied=share,
        longest_copy=longest,
        maths=maths_kept(ours, theirs, languages=(spoken, heard), answer=answer)
        if kind == "maths" or ours.formulas
        else None,
    )


def verdict(fidelity: Fidelity, config: FidelityConfig) -> str | None:
    """The first reason to drop the rewrite, of those that `drop_for` names; None: it is kept."""
    return next((r for r in reasons_of(fidelity, config) if r in config.drop_for), None)


def flags_of(fidelity: Fidelity, config: FidelityConfig) -> list[str]:
    """The reasons that are hints: those of `flag_for` that do not drop the rewrite."""
    hints = set(config.flag_for) - set(config.drop_for)
    return [reason for reason in reasons_of(fidelity, config) if reason in hints]


def asks_judge(fidelity: Fidelity, config: FidelityConfig, *, key: str) -> bool:
    """Whether the judge is worth a request here, if it is not asked about all parts.

    `key` names the part for the lot (`choice.is_drawn`): the same part is drawn again."""
    doubted = fidelity.doubt >= config.doubt_at
    return doubted or is_drawn(key, config.drawn_share) or bool(flags_of(fidelity, config))


def reasons_of(fidelity: Fidelity, config: FidelityConfig) -> list[str]:
    """Every reason that holds, the plainest first."""
    return [reason for reason, holds in _found(fidelity, config) if holds]


def _found(f: Fidelity, config: FidelityConfig) -> list[tuple[str, bool]]:
    told = f.language != "und" and f.wanted_language != "und"
    alignment = f.alignment
    return [
        ("wrong_language", told and f.language != f.wanted_language),
        ("too_short", f.length_ratio < config.min_length),
        ("too_long", f.length_ratio > config.max_length),
        ("repetitive", f.repetition - f.source_repetition > config.max_repetition),
        ("numbers_lost", f.numbers.share < config.min_numbers),
        ("numbers_added", len(f.numbers.added) > config.max_new_numbers),
        ("units_changed", f.units.share < config.min_units or bool(f.units.added)),
        ("dates_changed", f.dates.share < config.min_dates or bool(f.dates.added)),
        ("names_lost", f.names.share < config.min_names),
        ("names_added", len(f.names.added) > config.max_new_names),
        ("quotation_changed", f.quotations.share < config.min_quotations),
        ("code_changed", f.code.share < config.min_code or bool(f.code.added)),
        ("table_lost", f.tables.share < config.min_cells),
        ("heading_lost", f.headings.share < config.min_headings),
        *_of_maths(f.maths, config),
        ("contradicted", any(_counts(conflict, config) for conflict in f.conflicts)),
        *_of_alignment(alignment, config),
        ("copied", f.copied > config.max_copied),
    ]


def _counts(conflict: Conflict, config: FidelityConfig) -> bool:
    at = config.negation_at if conflict.kind == "negation" else config.conflict_at
    return conflict.closeness >= at


def _of_maths(maths: MathsFidelity | None, config: FidelityConfig) -> list[tuple[str, bool]]:
    if maths is None:
        return []
    added, most = len(maths.formulas.added), config.max_new_formulas
    return [
        ("formula_lost", maths.formulas.share < config.min_formulas),
        ("formula_added", most is not None and added > most),
        ("formula_false", bool(maths.false)),
        ("answer_lost", maths.answer_kept is False),
    ]


def _of_alignment(alignment: Alignment | None, config: FidelityConfig) -> list[tuple[str, bool]]:
    if alignment is None:
        return []
    if alignment.method != "words":
        low = min(alignment.recall, alignment.precision) < config.min_similarity
        return [("misaligned", low)]
    lost_at = max(config.lost_at, alignment.recall - config.outlier_by)
    added_at = max(config.added_at, alignment.precision - config.outlier_by)
    least = config.min_telling
    lost = any(m.score < lost_at and m.telling >= least for m in alignment.source)
    added = any(m.score < added_at and m.telling >= least for m in alignment.rewrite)
    low = alignment.recall < config.min_recall or alignment.precision < config.min_precision
    return [("sentence_lost", lost), ("sentence_added", added), ("misaligned", low)]


def _length(text: ReadText) -> float:
    """Words; two signs of Chinese or Japanese are about one."""
    words = text.words
    if text.prose.isascii():
        return len(words)
    return len(words) - sum(len(word) == 1 and word > "\u3000" for word in words) / 2


def _layer(layer: LayerCounts) -> dict[str, Any]:
    return {
        "share": layer.share,
        "total": layer.total,
        "lost": [fact[:MAX_CHARS] for fact in layer.lost[:MAX_LISTED]],
        "added": [fact[:MAX_CHARS] for fact in layer.added[:MAX_LISTED]],
        "num_lost": len(layer.lost),
        "num_added": len(layer.added),
    }


def _maths(maths: MathsFidelity) -> dict[str, Any]:
    return {
        **_layer(maths.formulas),
        "unread": maths.unread,
        "false": [fact[:MAX_CHARS] for fact in maths.false[:MAX_LISTED]],
        "answer": maths.answer,
        "answer_kept": maths.answer_kept,
    }


def _cut(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: v[:MAX_CHARS] if isinstance(v, str) else v for key, v in fields.items()}
