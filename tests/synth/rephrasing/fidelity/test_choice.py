"""The parts that a judge is asked about: doubt by negations, the lot, flags, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.digest import digest
from synth.rephrasing.fidelity.checks import asks_judge, fidelity_of, flags_of
from synth.rephrasing.fidelity.choice import is_drawn
from synth.rephrasing.fidelity.config import HARD, FidelityConfig, FlagReason

STATED = {
    "en": "The stem of the pear keeps dry under the eaves of the house, and so it is tied up.",
    "de": "Der Stamm der Birne bleibt unter dem Dach des Hauses trocken und wird begossen.",
    "fr": "Le tronc du poirier reste sec sous le toit de la maison et nous arrosons donc la terre.",
    "es": "El tronco del peral se queda seco en los muros de la casa y por eso regamos la tierra.",
}
DENIED = {
    "en": STATED["en"].replace("keeps", "never keeps"),
    "de": STATED["de"].replace("trocken", "nicht trocken"),
    "fr": STATED["fr"].replace("reste", "ne reste pas"),
    "es": STATED["es"].replace("se queda", "no se queda"),
}
OTHER = "Pears are sold at the market in town, where the growers of the valley meet in autumn."
NEITHER = FidelityConfig(doubt_at=2.0, drawn_share=0.0)
"""Only flags are chosen."""


def doubt(source: str, rewrite: str) -> float:
    return fidelity_of(source, rewrite, kind="knowledge").doubt


@pytest.mark.parametrize("language", STATED)
def test_a_sentence_that_is_denied_is_in_doubt_whichever_text_denies_it(language: str) -> None:
    stated, denied = STATED[language], DENIED[language]
    assert doubt(stated, denied) >= FidelityConfig().doubt_at
    assert doubt(denied, stated) == doubt(stated, denied)
    assert doubt(stated, stated) == doubt(denied, denied) == 0


def test_the_further_the_wording_the_smaller_the_doubt() -> None:
    freely = "Under the eaves of the house the stem of the pear is never dry, hence wire holds it."
    close, free = doubt(STATED["en"], DENIED["en"]), doubt(STATED["en"], freely)
    assert 0 < free < close <= 1
    assert doubt(STATED["en"], OTHER.replace("meet", "never meet")) < free


def test_a_translation_is_not_in_doubt() -> None:
    assert doubt(STATED["de"], DENIED["en"]) == 0


@given(st.binary(max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_takes_a_drawn_part_away_never(key: bytes, one: float, two: float) -> None:
    name = digest(key.hex())
    if is_drawn(name, min(one, two)):
        assert is_drawn(name, max(one, two))
    assert not is_drawn(name, 0.0)
    assert is_drawn(name, 1.0)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_lot_falls_on_its_share(share: float) -> None:
    drawn = sum(is_drawn(digest(number), share) for number in range(4_000))
    assert abs(drawn / 4_000 - share) < 0.04  # five standard deviations and more


@pytest.mark.parametrize("rewrite", [STATED["en"], DENIED["en"], OTHER])
def test_the_judge_is_asked_for_doubt_a_flag_or_by_lot(rewrite: str) -> None:
    measured = fidelity_of(STATED["en"], rewrite, kind="knowledge").columns()

    def asked(**settings: float) -> bool:
        config = NEITHER.model_copy(update=settings)
        return asks_judge(measured, config, key=digest(rewrite))

    assert asked() == bool(flags_of(measured, NEITHER))
    assert asked(doubt_at=measured["doubt"])
    assert asked(drawn_share=1.0)


@pytest.mark.parametrize("reason", ["sentence_lost", "sentence_added", "misaligned"])
def test_what_flags_is_what_the_settings_name(reason: FlagReason) -> None:
    measured = fidelity_of(STATED["en"], OTHER, kind="knowledge").columns()
    named = FidelityConfig(flag_for=(reason,))
    assert flags_of(measured, named) == [reason]
    assert flags_of(measured, FidelityConfig(flag_for=())) == []
    dropped = FidelityConfig(flag_for=(reason,), drop_for=(*HARD, reason))
    assert flags_of(measured, dropped) == [], "what drops is no hint"
