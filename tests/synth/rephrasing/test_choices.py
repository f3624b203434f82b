"""Who is rewritten how."""

from collections import Counter
from typing import Any

import pytest

from records.errors import ConfigError
from synth.rephrasing.writing.assignment import Assigner
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from synth.rephrasing.writing.genres import genres
from synth.rephrasing.writing.instructions import instructions

SOURCE = SourceConfig(path="here")


def drawn(
    assigner: Assigner,
    text: str,
    rewrites: int,
    *,
    source: SourceConfig = SOURCE,
    genre: str | None = None,
    language: str | None = "en",
) -> list[tuple[str, str]]:
    """Names of style and perspective of the first rewrites."""
    made = (
        assigner.of(text, rewrite, source=source, language=language, genre=genre)
        for rewrite in range(rewrites)
    )
    return [(one.style.name, one.perspective.name) for one in made]


def test_rewrites_of_a_text_differ_in_style_and_perspective() -> None:
    config = RephraseConfig()
    assigner = Assigner(config)
    firsts = Counter()
    for n in range(300):
        made = drawn(assigner, f"text-{n}", 8, genre="explanation")
        assert len(set(dict(made))) == 8
        assert len({perspective for _, perspective in made}) == 8
        firsts[made[0][0]] += 1
    assert firsts.keys() == set(genres()["explanation"].styles)
    assert max(firsts.values()) < 3 * min(firsts.values())
    assert drawn(Assigner(config), "text-1", 4) == drawn(assigner, "text-1", 4)


def test_many_rewrites_repeat_no_pair_while_there_are_others() -> None:
    config = RephraseConfig(
        styles=("faq", "essay", "dialogue"), perspectives=("beginner", "historian", "sceptic")
    )
    assert len(set(drawn(Assigner(config), "t", 9, genre="news"))) == 9


@pytest.mark.parametrize("name", genres())
def test_only_what_suits_a_genre_is_drawn(name: str) -> None:
    genre = genres()[name]
    views = genre.perspectives or tuple(instructions("perspectives"))
    made = drawn(Assigner(RephraseConfig()), "t", 100, genre=name)
    pairs = len(genre.styles) * len(views)
    assert len(set(made)) == min(100, pairs)
    assert {style for style, _ in made} == set(genre.styles)
    assert {view for _, view in made} == set(views)


def test_of_the_styles_that_are_asked_for_those_that_suit_are_drawn() -> None:
    some = RephraseConfig(styles=("glossary", "letter", "reference_card"))
    assert set(dict(drawn(Assigner(some), "t", 9, genre="narrative"))) == {"letter"}
    none = RephraseConfig(styles=("glossary", "reference_card"))
    made = set(dict(drawn(Assigner(none), "t", 9, genre="narrative")))
    assert made == {"glossary", "reference_card"}


def test_a_source_may_have_styles_of_its_own() -> None:
    source = SourceConfig(path="here", styles=("essay", "glossary"))
    made = drawn(Assigner(RephraseConfig(styles=("faq",))), "t", 9, source=source, genre="argument")
    assert set(dict(made)) == {"essay"}


@pytest.mark.parametrize("wrong", [{"genre": "haiku"}, {"styles": ("haiku",)}])
def test_an_unknown_genre_or_style_of_a_source_is_told(wrong: dict[str, Any]) -> None:
    config = RephraseConfig(sources=(SourceConfig(path="here", **wrong),))
    with pytest.raises(ConfigError, match="'haiku' is none of: "):
        Assigner(config)


def test_mathematics_becomes_notes_and_english() -> None:
    assigner = Assigner(RephraseConfig())
    source = SourceConfig(path="here", kind="maths")

    def names(language: str | None) -> list[str]:
        return [style for style, _ in drawn(assigner, "t", 2, source=source, language=language)]

    assert names("en") == names(None) == ["learning_notes", "learning_notes"]
    assert names("pl") == ["translate_to_english", "learning_notes"]
