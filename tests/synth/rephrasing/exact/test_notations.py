"""Every notation that the readings claim to know says the same number, and says no other one."""

from fractions import Fraction

import pytest
from babel import Locale
from babel.dates import get_month_names
from babel.numbers import format_decimal
from babel.units import format_unit
from hypothesis import given
from hypothesis import strategies as st

from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.exact.readings import PartReading
from synth.rephrasing.facts.dates import dates_of
from synth.rephrasing.facts.quantities import quantities_of
from synth.rephrasing.facts.units import LANGUAGES, UNITS

WORDS = {
    "en": {23: "twenty-three", 92: "ninety-two", 305: "three hundred and five"},
    "de": {23: "dreiundzwanzig", 92: "zweiundneunzig", 305: "dreihundertf\u00fcnf"},
    "fr": {23: "vingt-trois", 92: "quatre-vingt-douze", 305: "trois cent cinq"},
    "es": {23: "veintitr\u00e9s", 92: "noventa y dos", 305: "trescientos cinco"},
    "it": {23: "ventitr\u00e9", 92: "novantadue", 305: "trecentocinque"},
    "pt": {23: "vinte e tr\u00eas", 92: "noventa e dois", 305: "trezentos e cinco"},
    "nl": {23: "drie\u00ebntwintig", 92: "twee\u00ebnnegentig", 305: "driehonderdvijf"},
    "da": {23: "treogtyve", 92: "tooghalvfems", 305: "tre hundrede og fem"},
}
SHARES = {
    Fraction(1, 2): ["half", "50%", "50 per cent", "\u00bd"],
    Fraction(1, 4): ["a quarter", "25%", "\u00bc"],
    Fraction(2, 3): ["two thirds", "67%"],
    Fraction(1, 5): ["one fifth", "20%"],
}


def values(text: str, language: str = "en") -> set[object]:
    return {quantity.value for quantity in quantities_of(text, language=language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_number_words_are_read_in_eight_languages(language: str) -> None:
    for number, words in WORDS[language].items():
        assert values(f"x {words} x", language) == {number}


@given(number=st.integers(1_000, 99_999_999), language=st.sampled_from(LANGUAGES))
def test_thousands_may_be_parted_as_in_the_language(number: int, language: str) -> None:
    written = format_decimal(number, locale=language)
    assert number in values(f"x {written} x", language)
    assert number + 1 not in values(f"x {written} x", language)


@given(number=st.integers(1, 9_999), places=st.integers(1, 2), language=st.sampled_from(LANGUAGES))
def test_decimals_are_read_with_the_sign_of_the_language(
    number: int, places: int, language: str
) -> None:
    value = Fraction(10 * number + 1, 10**places)
    sign = Locale(language).number_symbols["latn"]["decimal"]
    whole, rest = divmod(10 * number + 1, 10**places)
    assert values(f"x {whole}{sign}{rest:0{places}} x", language) == {value}


@given(number=st.integers(2, 999))
def test_multipliers_in_any_form_make_one_number(number: int) -> None:
    forms = [f"{number} million", f"{number}m", f"{number},000,000", f"{number} 000 000"]
    for one in forms:
        for other in forms:
            assert exact_faults(f"It cost {one}.", f"The price: {other}.") == []
        assert exact_faults(f"It cost {one}.", f"The price: {number + 1} million.") != []


@pytest.mark.parametrize("share", SHARES)
def test_shares_are_one_in_all_their_forms_and_no_other(share: Fraction) -> None:
    for one in SHARES[share]:
        for other in SHARES[share]:
            assert (
                exact_faults(f"Of the votes {one} are in.", f"In are {other} of the votes.") == []
            )
        others = [form for value, forms in SHARES.items() if value != share for form in forms]
        told = PartReading(f"Of the votes {one} are in.")
        for other in others:
            part = quantities_of(f"It is {other}.")[0]
            held = told.tells_part(part) if 0 < Fraction(part.value) < 1 else told.tells_again(part)
            assert not held


@pytest.mark.parametrize("language", LANGUAGES)
def test_dates_are_read_with_the_months_of_the_language(language: str) -> None:
    for number, name in get_month_names("wide", locale=language).items():
        if name not in ("may", "march"):
            [date, *_] = dates_of(f"x 14 {name} 2009 x")
            assert (date.year, date.month, date.day) == (2009, number, 14)


@pytest.mark.parametrize("language", LANGUAGES)
def test_units_are_read_by_the_names_of_the_language(language: str) -> None:
    for unit, symbol in (
        ("length-kilometer", "km"), ("mass-gram", "g"), ("duration-minute", "min"),
        ("volume-liter", "l"), ("area-square-meter", "m\u00b2"),
    ):  # fmt: skip
        [quantity] = quantities_of(
            f"x {format_unit(5, unit, locale=language)} x", language=language
        )
        assert quantity.measured == (UNITS[symbol][0], 5 * UNITS[symbol][1])


@pytest.mark.parametrize(
    ("source", "rewrite"),
    [
        ("It takes 250 \u00b5l of it.", "It takes 0.25 ml of it."),
        ("It is 6 feet, 6 inches wide.", "It is 6\u00bd feet wide."),
        ("It runs at 3 km/h.", "It runs three kilometres per hour."),
        ("The store holds 160 MWh.", "The store holds 160,000 kWh."),
        ("It costs 85 cents.", "It costs 0.85 dollars."),
        ("In the 19th century it stood.", "It stood in the 1800s."),
        ("By the 1870s it had gone.", "It had gone by the eighteen-seventies, in 1874."),
        ("It rose by 4.25% then.", "The rise was 4\u00bc%."),
        ("The train leaves at 10:20.", "It is at twenty past ten that the train leaves."),
        ("On 8 November 1931 it shut.", "It shut on 11/8/1931."),
        ("It waits for seven days.", "It waits for a week."),
        ("Louis XIV built it.", "It was built by Louis the Fourteenth."),
    ],
)
def test_another_unit_or_notation_is_no_fault(source: str, rewrite: str) -> None:
    assert exact_faults(source, rewrite) == []
    assert exact_faults(rewrite, source) == []


@pytest.mark.parametrize(
    ("source", "rewrite", "kind"),
    [
        ("Take 5 mg of it, or 8 g of that.", "Take 5 g of it, or 8 g of that.", "unit"),
        ("It takes seven weeks.", "It takes 35 days.", "number"),
        ("The line has 6.6 kV.", "The line has 6,600 watts.", "number"),
        ("It is checked every week.", "It is checked every day.", "unit"),
        ("It takes twelve working days.", "It takes ten working days.", "number"),
        ("Die Stadt braucht zehn Werktage, und das ist nicht zu viel.",
         "Die Stadt braucht zw\u00f6lf Werktage, und das ist nicht zu viel.", "number"),
        ("It reads UTF-8 and sets max_age.", "UTF-16 is read and max_age set.", "name"),
        ("A tenth of it is lost.", "Twelve per cent of it is lost.", "number"),
        ("The train leaves at 10:20.", "It is at ten to ten that the train leaves.", "date"),
        ("Today Anna Lindqvist, and with her Lindqvist, spoke.",
         "Today Anna Lundqvist, and with her Lindqvist, spoke.", "name"),
        ("Das sagte Frau Henrike Solbach, und die Frau ist von der Stadt.",
         "Das sagte Frau Henriette Solbach, und die Frau ist von der Stadt.", "name"),
    ],
)  # fmt: skip
def test_another_value_in_another_notation_is_found(source: str, rewrite: str, kind: str) -> None:
    assert kind in {fault.kind for fault in exact_faults(source, rewrite)}


def test_faults_that_are_not_told_are_counted() -> None:
    source, rewrite = ("".join(f"Set `{c}{n} = long` now. " for n in range(30)) for c in "+-")
    faults = exact_faults(source, rewrite)
    assert len(faults) == 12
    assert faults[-1].evidence.endswith("(and 18 more of the like)")
