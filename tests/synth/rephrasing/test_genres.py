"""Genres: what suits each, and that each text is asked about once."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from synth.llm.settings.config import RoleConfig
from synth.rephrasing.writing.genres import BEGINNING, OTHER, GenreFinder, genre_in, genres
from synth.rephrasing.writing.instructions import instructions
from tests.synth.scripted import ScriptedApp, model

NEVER = {
    "narrative": ("reference_card", "glossary", "comparison_table", "exam_sheet", "step_by_step"),
    "letter": ("reference_card", "glossary", "comparison_table"),
    "conversation": ("reference_card", "glossary", "worked_example"),
    "reference": ("narrative", "news_report"),
    "code": ("narrative", "news_report", "letter"),
    "contract": ("narrative", "news_report", "worked_example"),
}
"""Forms in which a text of the genre would have to say what it does not say."""


def test_every_genre_has_styles_enough_and_every_style_genres() -> None:
    styles, views = instructions("styles").keys(), instructions("perspectives").keys()
    uses = Counter(style for genre in genres().values() for style in genre.styles)
    assert uses.keys() == styles
    assert min(uses.values()) >= 3
    assert len(genres()) >= 12
    for genre in genres().values():
        assert len(set(genre.styles)) == len(genre.styles) >= 5, genre.name
        assert set(genre.perspectives) <= views, genre.name
        assert len(genre.perspectives) >= 3 or not genre.perspectives, genre.name
        assert genre.name.isalpha()
    assert OTHER in genres()


@pytest.mark.parametrize("genre", NEVER)
def test_what_does_not_suit_is_not_among_them(genre: str) -> None:
    assert not set(genres()[genre].styles) & set(NEVER[genre])


@pytest.mark.parametrize(
    ("answer", "genre"),
    [
        ("narrative", "narrative"),
        ("**How-to**.", "howto"),
        ("The genre is: News\n", "news"),
        ("", OTHER),
        ("poem", OTHER),
        ("narrative or news", OTHER),
        ("It is a newsletter.", OTHER),
    ],
)
def test_an_answer_names_one_genre_or_it_is_other(answer: str, genre: str) -> None:
    assert genre_in(answer) == genre


def found(folder: Path, app: ScriptedApp, *texts: str) -> list[str]:
    """Of each text, asked for all at once."""

    async def run() -> list[str]:
        async with model(app, folder, {"rewriter": RoleConfig()}) as llm:
            finder = GenreFinder()
            return await asyncio.gather(*(finder.of(text[:9], text, llm) for text in texts))

    return asyncio.run(run())


def test_rewrites_of_a_text_share_one_request(tmp_path: Path) -> None:
    app = ScriptedApp(lambda body: "letter" if "Dear" in str(body["messages"]) else "news")
    assert found(tmp_path, app, "Dear aunt", "Dear aunt", "Last week", "Dear aunt") == [
        *("letter", "letter"),
        *("news", "letter"),
    ]
    assert len(app.requests) == 2
    assert found(tmp_path, app, "Dear aunt") == ["letter"]  # from the journal
    assert len(app.requests) == 2


def test_only_the_beginning_is_shown(tmp_path: Path) -> None:
    app = ScriptedApp(lambda body: "news")
    found(tmp_path, app, "word " * 5000)
    system, user = (message["content"] for message in app.requests[0]["messages"])
    assert len(user) < BEGINNING + 200
    assert all(f"{genre.name}: {genre.says}" in system for genre in genres().values())


def test_what_cannot_be_asked_about_is_other(tmp_path: Path) -> None:
    def refused(body: dict[str, Any]) -> dict[str, Any]:
        return {"content": "", "finish_reason": "content_filter"}

    assert found(tmp_path, ScriptedApp(refused), "A text") == [OTHER]
