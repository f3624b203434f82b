"""Which language a text is in, where its sentences end, and the day on which it is said."""

import tomllib
from datetime import date
from pathlib import Path

import pytest

from synth.rubrics.reading import locales
from synth.rubrics.reading.locales import CODES, language_of, locale
from synth.rubrics.reading.sentences import sentences_in
from synth.rubrics.reading.today import today_of

SPOKEN = {
    "Your order is on its way and will be with you on Friday.": "en",
    "Ihre Bestellung ist unterwegs und kommt am Freitag an.": "de",
    "Su pedido est\u00e1 en camino y llega el viernes por la ma\u00f1ana.": "es",
    "Votre commande est en route et arrive vendredi dans la journ\u00e9e.": "fr",
    "\u60a8\u7684\u8ba2\u5355\u5df2\u7ecf\u53d1\u8d27\uff0c\u5468\u4e94\u5230\u8fbe\u3002": "zh",
    "A sua encomenda est\u00e1 a caminho e chega na sexta-feira pela manh\u00e3.": None,
    "Il suo ordine \u00e8 in viaggio e arriva venerd\u00ec con il corriere.": None,
    "Uw bestelling is onderweg en komt vrijdag bij u aan.": None,
    "\u3054\u6ce8\u6587\u306e\u54c1\u306f\u767a\u9001\u3055\u308c\u307e\u3057\u305f\u3002": None,
    "LP-58213": None,
}


@pytest.mark.parametrize(("text", "code"), SPOKEN.items())
def test_the_language_of_a_text(text: str, code: str | None) -> None:
    assert language_of(text) == code


def test_a_short_text_takes_the_language_of_what_is_around_it() -> None:
    assert language_of("OK: 12.50", "Das ist der Preis, den wir haben.") == "de"
    assert language_of("Il totale \u00e8 di 12 euro per lei.", "That is what it is.") is None


def test_every_table_knows_months_units_and_words() -> None:
    for code in CODES:
        table = locale(code)
        assert len(set(table.weekdays.values())) == 7
        assert set(table.months.values()) in ({*range(1, 13)}, set())
        assert set(table.units.values()) >= {"minutes", "hours", "days", "weeks", "years"}
        assert all(len(word) == len(word.lower()) for word in table.number_words)


def test_all_tables_say_the_same_kinds_of_things() -> None:
    tables = [
        tomllib.loads((Path(locales.__file__).parent / f"{code}.toml").read_text())
        for code in CODES
    ]
    for table in tables[1:]:
        assert table.keys() == tables[0].keys()
        for part, entries in table.items():
            if isinstance(entries, dict):
                assert entries.keys() == tables[0][part].keys(), part


def test_a_language_without_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table of the language 'pt'; known: de, en, es, fr"):
        locale("pt")


WHOLE = {
    "en": [
        "Mr. Smith from St. Ives comes at 5 p.m. and leaves at 6.",
        "It costs 1,240.50, approx. 3 pct. of it as tax.",
        "The meeting, e.g. the one at 9.45, is in Room No. 5.",
        "1. The boat is booked.",
        "Write to help@example.com or see www.example.com today.",
    ],
    "de": [
        "Am 19. um 10:30 Uhr kommt Dr. Kern.",
        "Es bleibt beim 27.03. f\u00fcr die Lieferung.",
        "Der 21. Mai ist z. B. frei.",
        "Das kostet 1.240,50 Euro inkl. Versand.",
    ],
    "es": [
        "El Sr. Lasheras llega a las 9 a. m. del martes.",
        "Cuesta 1.240,50 euros aprox. al mes.",
    ],
    "fr": [
        "M. Durand arrive \u00e0 9 h. et demie.",
        "Cela co\u00fbte 1.240,50 euros env. par mois.",
    ],
}


@pytest.mark.parametrize(("code", "text"), [(c, t) for c, ts in WHOLE.items() for t in ts])
def test_abbreviations_decimals_and_list_numbers_do_not_end_a_sentence(
    code: str, text: str
) -> None:
    assert sentences_in(text, locale(code)) == [(0, len(text))]


def test_sentences_lines_and_rows_are_told_apart() -> None:
    text = "Hi Bob! It is done. See:\n\n- **Fee:** 5\n| a | b |\n|---|---|\n| Total | 6 |\n...Bye?"
    parts = [text[a:b] for a, b in sentences_in(text, locale("en"))]
    rows = ["- **Fee:** 5", "| a | b |", "| Total | 6 |"]
    assert parts == ["Hi Bob!", "It is done.", "See:", *rows, "...Bye?"]
    text = "\u597d\u7684\u3002\u5df2\u529e\u7406\uff01\u603b\u4ef7\u662f12.5\u5143\u3002"
    assert [text[a:b] for a, b in sentences_in(text, locale("zh"))] == [
        "\u597d\u7684\u3002",
        "\u5df2\u529e\u7406\uff01",
        "\u603b\u4ef7\u662f12.5\u5143\u3002",
    ]


def test_a_fenced_block_is_one_part() -> None:
    code = "```python\nprint(1.5)\n\nprint('Done. Bye.')\n```"
    text = f"Run this now:\n{code}\nThen tell me. Thanks!"
    parts = [text[a:b] for a, b in sentences_in(text, locale("en"))]
    assert parts == ["Run this now:", code, "Then tell me.", "Thanks!"]


@pytest.mark.parametrize(
    "instructions",
    [
        "You help. Today is 15 April 2026. Be kind.",
        "The current date and time is 2026-04-15T09:30:00.",
        "It is Wednesday, 15 April 2026, 14:05. The fee of 1 May 2025 is over.",
        "Heute ist Mittwoch, der 15. April 2026. Angemeldet ist Frau Kern.",
        "Hoy es mi\u00e9rcoles, 15 de abril de 2026. La clienta es Luc\u00eda.",
        "Nous sommes le mercredi 15 avril 2026. Reste courtois.",
        "\u4f60\u662f\u52a9\u624b\u3002\u4eca\u5929\u662f2026\u5e744\u670815\u65e5(\u5468\u4e09)\u3002",
    ],
)
def test_the_day_of_a_conversation_stands_in_its_instructions(instructions: str) -> None:
    assert today_of([{"role": "system", "content": instructions}], []) == date(2026, 4, 15)


def test_the_day_of_a_conversation_may_stand_in_a_result_or_nowhere() -> None:
    told = [{"role": "user", "content": "Today is 15 April 2026."}]
    assert today_of(told, [{"now": "2026-04-15T09:30:00"}]) == date(2026, 4, 15)
    assert today_of(told, [{"due": "2026-04-15"}, "2026-04-15"]) is None
