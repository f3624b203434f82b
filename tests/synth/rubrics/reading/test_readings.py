"""What is read in a text: sentences of five languages, and values that come back as they went."""

import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.rubrics.reading.readings import ValueReading, read

SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text())
TODAY = date(2026, 4, 15)
CASES = [(code, text, said) for code, table in SAID.items() for text, said in table.items()]
UNITS = {"": "", "percent": "%", "money": "$"}


def shown(reading: ValueReading) -> str:
    """A reading as `said.toml` writes it."""
    doubt = "" if reading.is_sure else "~"
    match reading.kind:
        case "number":
            unit = UNITS.get(reading.unit, f" {reading.unit}")
            return doubt + "|".join(f"{n:g}" for n in reading.numbers) + unit
        case "date":
            days = ("-".join("?" if p is None else f"{p:02d}" for p in d) for d in reading.days)
            return doubt + "|".join(days)
        case "time":
            return "|".join(f"{m // 60:02d}:{m % 60:02d}" for m in reading.minutes)
        case _:
            return f"#{reading.words}"


@pytest.mark.parametrize(("code", "text", "said"), CASES)
def test_sentences_are_read_as_people_mean_them(code: str, text: str, said: list[str]) -> None:
    assert [shown(reading) for reading in read(text, code, TODAY).readings] == said


@pytest.mark.parametrize(("code", "text", "said"), CASES)
def test_readings_stand_where_they_say(code: str, text: str, said: list[str]) -> None:
    found = read(text, code, TODAY)
    assert len(found.readings) == len(said)
    for reading in found.readings:
        assert found.text[reading.start : reading.end] in (reading.words, "")


UNDER_20 = {
    "en": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen",
    "de": "ein zwei drei vier f\u00fcnf sechs sieben acht neun zehn elf zw\u00f6lf dreizehn"
    " vierzehn f\u00fcnfzehn sechzehn siebzehn achtzehn neunzehn",
    "es": "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
    " diecis\u00e9is diecisiete dieciocho diecinueve",
    "fr": "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
    " dix-sept dix-huit dix-neuf",
}
TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig drei\u00dfig vierzig f\u00fcnfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
}
HUNDREDS = (
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos"
    " novecientos"
)


def spelled(number: int, code: str) -> str:
    """A number from 1 to 999 in words."""
    small, tens = UNDER_20[code].split(), TENS[code].split()
    hundreds, rest = divmod(number, 100)
    if hundreds:
        match code:
            case "en":
                joint = " and " if rest else ""
                return f"{small[hundreds - 1]} hundred{joint}{spelled(rest, code) if rest else ''}"
            case "de":
                return f"{small[hundreds - 1]}hundert{spelled(rest, code) if rest else ''}"
            case "es":
                if number == 100:
                    return "cien"
                return f"{HUNDREDS.split()[hundreds - 1]} {spelled(rest, code)}".strip()
            case _:
                head = "cent" if hundreds == 1 else f"{small[hundreds - 1]} cent"
                return f"{head} {spelled(rest, code)}".strip()
    if rest == 0:
        return ""
    if rest < 20:
        return "eins" if code == "de" and rest == 1 else small[rest - 1]
    ten, one = divmod(rest, 10)
    if code == "fr" and ten in (7, 9):  # counted on from sixty and eighty
        return f"{tens[ten - 3]}-{small[one + 9]}" if one else tens[ten - 2]
    if not one:
        return tens[ten - 2]
    if code == "de":
        return f"{small[one - 1]}und{tens[ten - 2]}"
    if code == "es" and ten > 2:
        return f"{tens[ten - 2]} y {small[one - 1]}"
    if code == "es":
        accents = {"dos": "d\u00f3s", "tres": "tr\u00e9s", "seis": "s\u00e9is"}
        return f"veinti{accents.get(small[one - 1], small[one - 1])}"
    return f"{tens[ten - 2]}-{small[one - 1]}"


@pytest.mark.parametrize("code", UNDER_20)
@given(number=st.integers(2, 999))
def test_numbers_in_words_come_back(code: str, number: int) -> None:
    (reading,) = read(f"({spelled(number, code)})", code).of("number")
    assert (reading.numbers[0], reading.is_sure) == (number, True)


@pytest.mark.parametrize("code", [*UNDER_20, "zh"])
@given(cents=st.integers(1, 10**9), symbol=st.sampled_from(["\u20ac", "$", " EUR", ""]))
def test_amounts_come_back_in_the_marks_of_the_language(code: str, cents: int, symbol: str) -> None:
    plain = f"{cents / 100:,.2f}"
    marks = plain if code in ("en", "zh") else plain.translate({ord(","): ".", ord("."): ","})
    for text in (plain, marks):
        (reading,) = read(f"({text}{symbol})", code).of("number")
        assert reading.numbers[0] == cents / 100
        assert reading.unit == ("money" if symbol else "")


DATES = {
    "en": ["{d} {name} {y}", "{name} {d}, {y}", "the {d}th of {name} {y}"],
    "de": ["{d}. {name} {y}", "{d:02d}.{m:02d}.{y}", "den {d}. {name} {y}"],
    "es": ["{d} de {name} de {y}", "{d}/{m:02d}/{y}", "{d} {name} {y}"],
    "fr": ["{d} {name} {y}", "{d:02d}/{m:02d}/{y}", "{d} {name} {y}"],
    "zh": ["{y}\u5e74{m}\u6708{d}\u65e5", "{y}\u5e74{m}\u6708{d}\u53f7", "{y}-{m:02d}-{d:02d}"],
}
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar M\u00e4rz April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre"
    " diciembre",
    "fr": "janvier f\u00e9vrier mars avril mai juin juillet ao\u00fbt septembre octobre novembre"
    " d\u00e9cembre",
    "zh": "- - - - - - - - - - - -",
}


@pytest.mark.parametrize("code", DATES)
@given(day=st.dates(date(1950, 1, 1), date(2060, 12, 31)), way=st.integers(0, 2))
def test_dates_come_back(code: str, day: date, way: int) -> None:
    name = MONTHS[code].split()[day.month - 1]
    text = DATES[code][way].format(d=day.day, m=day.month, y=day.year, name=name)
    (reading,) = read(f"({text})", code).of("date")
    assert (day.year, day.month, day.day) in reading.days
    assert reading.is_sure


TIMES = {
    "en": "{h12}:{m:02d} {half}",
    "de": "{h}:{m:02d} Uhr",
    "es": "las {h:02d}:{m:02d} h",
    "fr": "{h} h {m:02d}",
    "zh": "{h:02d}:{m:02d}",
}


@pytest.mark.parametrize("code", TIMES)
@given(minutes=st.integers(0, 24 * 60 - 1))
def test_times_come_back(code: str, minutes: int) -> None:
    hour, minute = divmod(minutes, 60)
    half = "pm" if hour >= 12 else "am"
    text = TIMES[code].format(h=hour, h12=hour % 12 or 12, m=minute, half=half)
    (reading,) = read(f"({text})", code).of("time")
    assert reading.minutes[0] == minutes


@given(days=st.integers(1, 60), today=st.dates(date(2000, 1, 1), date(2050, 1, 1)))
def test_relative_days_come_back(days: int, today: date) -> None:
    day = today + timedelta(days)
    for code, text in {
        "en": f"It starts in {days} days.",
        "de": f"Es beginnt in {days} Tagen.",
        "es": f"Empieza dentro de {days} d\u00edas.",
        "fr": f"Cela commence dans {days} jours.",
        "zh": f"{days}\u5929\u540e\u5f00\u59cb\u3002",
    }.items():
        (reading,) = read(text, code, today).of("date")
        assert reading.days == ((day.year, day.month, day.day),)
    (unknown,) = read(f"It starts in {days} days.", "en").of("date")
    assert (unknown.days, unknown.is_sure) == ((), False)
