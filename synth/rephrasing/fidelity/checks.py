"""Every layer of a rewrite's fidelity, what of it a rewrite is dropped for, and what is a hint.

    measured = fidelity_of(source, rewrite, kind="knowledge").columns()   # stored as it is
    reasons_of(measured, FidelityConfig())   # ["numbers_lost", "contradicted"]
    verdict(measured, FidelityConfig())      # None: kept, since these drop nothing
    flags_of(measured, FidelityConfig())     # []: no hints either, since they say too little
    asks_judge(measured, FidelityConfig(), key="5d41402a")   # True: the lot falls on it

Reasons are read from what is stored, so that other thresholds need no text. Nothing here asks a
model: what an embedder found (`embedded.aligned`) is handed in. The judge decides the meaning, part
by part (`part_judge`).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from synth.rephrasing.facts.text import ReadText, read_text
from synth.rephrasing.fidelity.alignment import Alignment, aligned_by_words
from synth.rephrasing.fidelity.choice import doubt_of, is_drawn
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.conflicts import Conflict, conflicts_of
from synth.rephrasing.fidelity.language import UNTOLD, language_of
from synth.rephrasing.fidelity.layers import (
    NOT_COMPARED,
    LayerCounts,
    code_kept,
    dates_kept,
    headings_kept,
    measured_text,
    names_kept,
    numbers_kept,
    quotations_kept,
    tables_kept,
    units_kept,
)
from synth.rephrasing.fidelity.maths import MathsFidelity, maths_kept
from synth.rephrasing.fidelity.overlap import copied, repeated

FIDELITY_VERSION = 1
"""Raised when the same texts would be measured otherwise."""

TextKind = Literal["knowledge", "maths"]

NOT_OF_NOTES = frozenset(("too_long", "sentence_added", "copied"))
"""Reasons that do not hold for mathematics: notes give reasons at each step and work out what the
source leaves out, and formulas are to be copied. What they add is held to its equations."""

MAX_LISTED = 20
"""Facts of a layer that a row names; all are counted."""

MAX_CHARS = 200
"""Of each fact, sentence or quotation that a row names."""

Measured = Mapping[str, Any]
"""Columns of a measurement, as `Fidelity.columns` gives them."""


class Fidelity(NamedTuple):
    """What was measured; see `columns` for the form of a row."""

    kind: TextKind
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
            "kind": self.kind,
            **{name: _layer(getattr(self, name)) for name in _LAYERS},
            "conflicts": [_cut(c._asdict()) for c in _closest(self.conflicts)[:MAX_LISTED]],
            "alignment": None
            if alignment is None
            else {
                "method": alignment.method,
                "recall": alignment.recall,
                "precision": alignment.precision,
                "source": [[m.score, m.telling] for m in alignment.source],
                "rewrite": [[m.score, m.telling] for m in alignment.rewrite],
                "weakest_source": [[score, text[:MAX_CHARS]] for score, text in alignment[3]],
                "weakest_rewrite": [[score, text[:MAX_CHARS]] for score, text in alignment[4]],
            },
            "doubt": self.doubt,
            "length_ratio": self.length_ratio,
            "language": {
                "source": self.source_language,
                "rewrite": self.language,
                "wanted": self.wanted_language,
            },
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
    ours, theirs = read_text(source), read_text(rewrite)
    spoken, heard = language_of(ours.prose), language_of(theirs.prose)
    before, after = measured_text(ours, spoken), measured_text(theirs, heard)
    translated = heard != spoken and UNTOLD not in (heard, spoken)
    # an embedder hardly tells a statement from its denial, so conflicts are looked for by words
    both = spoken if heard == UNTOLD else heard
    by_words = None if translated else aligned_by_words(ours, theirs, both)
    alignment = alignment or by_words
    share, longest = copied(ours.words, theirs.words)
    return Fidelity(
        kind=kind,
        numbers=numbers_kept(before, after, translated=translated),
        units=units_kept(before, after, translated=translated),
        dates=dates_kept(before, after, translated=translated),
        names=NOT_COMPARED if translated else names_kept(ours, theirs, heard),
        quotations=NOT_COMPARED if translated else quotations_kept(ours, theirs),
        code=code_kept(ours, theirs),
        tables=NOT_COMPARED if translated else tables_kept(ours, theirs),
        headings=NOT_COMPARED if translated else headings_kept(ours, theirs, both),
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


def verdict(measured: Measured, config: FidelityConfig) -> str | None:
    """The first reason to drop the rewrite, of those that `drop_for` names; None: it is kept."""
    return next((r for r in reasons_of(measured, config) if r in config.drop_for), None)


def flags_of(measured: Measured, config: FidelityConfig) -> list[str]:
    """The reasons that are hints: those of `flag_for` that do not drop the rewrite."""
    hints = set(config.flag_for) - set(config.drop_for)
    return [reason for reason in reasons_of(measured, config) if reason in hints]


def asks_judge(measured: Measured, config: FidelityConfig, *, key: str) -> bool:
    """Whether the judge is worth a request here, if it is not asked about all parts.

    `key` names the part for the lot (`choice.is_drawn`): the same part is drawn again."""
    return is_drawn(key, config.drawn_share) or bool(flags_of(measured, config))


def reasons_of(measured: Measured, config: FidelityConfig) -> list[str]:
    """Every reason that holds, the plainest first."""
    spared = NOT_OF_NOTES if measured["kind"] == "maths" else frozenset()
    return [r for r, holds in _found(measured, config) if holds and r not in spared]


def _found(m: Measured, config: FidelityConfig) -> list[tuple[str, bool]]:
    spoken, wanted = m["language"]["rewrite"], m["language"]["wanted"]
    repetition, length = m["repetition"], m["length_ratio"]
    return [
        ("wrong_language", UNTOLD not in (spoken, wanted) and spoken != wanted),
        ("too_short", length < config.min_length),
        ("too_long", length > config.max_length),
        ("repetitive", repetition["rewrite"] - repetition["source"] > config.max_repetition),
        ("numbers_lost", m["numbers"]["share"] < config.min_numbers),
        ("numbers_added", m["numbers"]["num_added"] > config.max_new_numbers),
        ("units_changed", _changed(m["units"], config.min_units)),
        ("dates_changed", _changed(m["dates"], config.min_dates)),
        ("names_lost", m["names"]["share"] < config.min_names),
        ("names_added", m["names"]["num_added"] > config.max_new_names),
        ("quotation_changed", m["quotations"]["share"] < config.min_quotations),
        ("code_changed", _changed(m["code"], config.min_code)),
        ("table_lost", m["tables"]["share"] < config.min_cells),
        ("heading_lost", m["headings"]["share"] < config.min_headings),
        *_of_maths(m["maths"], config),
        ("doubted", m["doubt"] >= config.doubt_at),
        ("contradicted", any(_counts(conflict, config) for conflict in m["conflicts"])),
        *_of_alignment(m["alignment"], config),
        ("copied", m["overlap"]["copied"] > config.max_copied),
    ]


def _changed(layer: Measured, least: float) -> bool:
    return layer["share"] < least or layer["num_added"] > 0


def _counts(conflict: Measured, config: FidelityConfig) -> bool:
    at = config.negation_at if conflict["kind"] == "negation" else config.conflict_at
    return conflict["closeness"] >= at


def _of_maths(maths: Measured | None, config: FidelityConfig) -> list[tuple[str, bool]]:
    if maths is None:
        return []
    added, most = maths["num_added"], config.max_new_formulas
    return [
        ("formula_lost", maths["share"] < config.min_formulas),
        ("formula_added", most is not None and added > most),
        ("formula_false", bool(maths["false"])),
        ("answer_lost", maths["answer_kept"] is False),
    ]


def _of_alignment(alignment: Measured | None, config: FidelityConfig) -> list[tuple[str, bool]]:
    if alignment is None:
        return []
    recall, precision = alignment["recall"], alignment["precision"]
    if alignment["method"] != "words":
        return [("misaligned", min(recall, precision) < config.min_similarity)]
    lost_at = max(config.lost_at, recall - config.outlier_by)
    added_at = max(config.added_at, precision - config.outlier_by)
    least = config.min_telling
    lost = any(score < lost_at and telling >= least for score, telling in alignment["source"])
    added = any(score < added_at and telling >= least for score, telling in alignment["rewrite"])
    low = recall < config.min_recall or precision < config.min_precision
    return [("sentence_lost", lost), ("sentence_added", added), ("misaligned", low)]


def _closest(conflicts: tuple[Conflict, ...]) -> list[Conflict]:
    return sorted(conflicts, key=lambda conflict: -conflict.closeness)


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
