"""Units of measure and words that multiply: each spelling and what it stands for.

Symbols and English spellings stand in the table here; what a unit is called in the languages of
`LANGUAGES` is read from the locale data of Babel, by the name that the table gives after "@".
"""

import re
from fractions import Fraction

from babel.numbers import format_compact_decimal
from babel.units import format_unit

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "da")
"""Languages in which units, months, weekdays and number words are read."""

_TABLE = """
length 1/1000000000 @length-nanometer nm nanometre nanometer
length 1/1000000 @length-micrometer \u00b5m \u03bcm micrometre micrometer micron
length 1/1000 @length-millimeter mm millimetre millimeter
length 1/100 @length-centimeter cm centimetre centimeter
length 1 @length-meter m metre meter
length 1000 @length-kilometer km kilometre kilometer
length 149597870700 au astronomical\u00a0unit
length 1609344/1000 mile mi
length 254/10000 inch inches
length 3048/10000 ft foot feet
length 9144/10000 yard yd
area 1 @area-square-meter m\u00b2 m^2 sqm square\u00a0metre square\u00a0meter
area 1000000 @area-square-kilometer km\u00b2 km^2 square\u00a0kilometre square\u00a0kilometer
area 1/1000000 mm\u00b2 mm^2
area 1/10000 cm\u00b2 cm^2
area 10000 @area-hectare ha hectare
area 40468564224/10000000 acre
mass 1/1000000000 @mass-microgram \u00b5g \u03bcg microgram
mass 1/1000000 @mass-milligram mg milligram
mass 1/1000 @mass-gram g gram gramme
mass 1 @mass-kilogram kg kilogram kilo
mass 1000 @mass-tonne t tonne
mass 45359237/100000000 lb pound-mass
mass 28349523125/1000000000000 oz ounce
time 1/1000000000 @duration-nanosecond ns nanosecond
time 1/1000000 @duration-microsecond \u00b5s \u03bcs microsecond
time 1/1000 @duration-millisecond ms millisecond
time 1 @duration-second s sec second
time 60 @duration-minute min minute
time 3600 @duration-hour h hr hour
time 86400 @duration-day day
time 604800 @duration-week week
months 1 @duration-month month
months 12 @duration-year year yr
months 120 @duration-decade decade
months 1200 @duration-century century
volume 1/1000000 \u00b5l \u03bcl microlitre microliter
volume 1/1000 @volume-milliliter ml millilitre milliliter
volume 1 @volume-liter l litre liter
volume 1/100 cl centilitre centiliter
volume 1/10 dl decilitre deciliter
volume 1/1000 cm\u00b3 cm^3
volume 1000 @volume-cubic-meter m\u00b3 m^3 cubic\u00a0metre cubic\u00a0meter
volume 3785411784/1000000000 gallon
volume 15/1000 tablespoon tbsp essl\u00f6ffel EL cuchara cuiller
volume 5/1000 teaspoon tsp teel\u00f6ffel TL cucharadita
speed 1000 km/s
speed 1/60 m/min
speed 1852/3600 knot kn
speed 1 @speed-meter-per-second m/s metre\u00a0per\u00a0second meter\u00a0per\u00a0second
speed 1000/3600 @speed-kilometer-per-hour km/h kph kilometre\u00a0per\u00a0hour
speed 1609344/3600000 mph mile\u00a0per\u00a0hour
temperature 1 @temperature-celsius \u00b0c celsius
fahrenheit 1 @temperature-fahrenheit \u00b0f fahrenheit
kelvin 1 K kelvin
angle 1 @angle-degree \u00b0 degree deg
angle_radian 1 radian rad
energy 1 @energy-joule J joule
energy 1000 @energy-kilojoule kj kilojoule
energy 1000000 mj megajoule
energy 3600 wh watt\u00a0hour
energy 3600000000 mwh megawatt\u00a0hour
energy 3600000 @energy-kilowatt-hour kwh
energy 4184/1000 @energy-calorie calorie cal
energy 4184 @energy-kilocalorie kcal kilocalorie
power 1 @power-watt W watt
power 1000 @power-kilowatt kw kilowatt
power 1000000 @power-megawatt MW megawatt
voltage 1 @electric-volt V volt
voltage 1/1000 mv millivolt
voltage 1000 kv kilovolt
current 1/1000 ma milliampere
current 1 @electric-ampere A ampere amp
resistance 1 @electric-ohm \u03a9 ohm
frequency 1 @frequency-hertz hz hertz
frequency 1000 khz kilohertz
frequency 1000000 mhz megahertz
frequency 1000000000 ghz gigahertz
power 1000000000 gw gigawatt
activity 1 Bq becquerel
activity 1000 kBq kilobecquerel
activity 1000000 MBq megabecquerel
activity 1000000000 GBq gigabecquerel
dose 1/1000000 \u00b5Sv \u03bcSv microsievert
dose 1/1000 mSv millisievert
dose 1 Sv sievert
level 1 dB decibel dezibel
rotation 1 rpm
force 1 N newton
force 1000 kn kilonewton
pressure 1 @pressure-pascal pa pascal
pressure 100 hpa hectopascal
pressure 1000 kpa kilopascal
pressure 1000000 mpa megapascal
pressure 100 mbar millibar
pressure 100000 @pressure-bar bar
information 1 bit
information 8 @digital-byte byte
information 8000 @digital-kilobyte kb kilobyte
information 8192 kib kibibyte
information 8000000 @digital-megabyte mb megabyte
information 8388608 mib mebibyte
information 8000000000 @digital-gigabyte gb gigabyte
information 8589934592 gib gibibyte
information 8000000000000 @digital-terabyte tb terabyte
ratio 1 @concentr-percent % percent per\u00a0cent pct
points 1 percentage\u00a0point
permille 1 \u2030
dollar 1 $ dollar usd
euro 1 \u20ac euro eur
sterling 1 \u00a3 pound gbp
yen 1 \u00a5 yen
cent 1 cent
"""

_OTHER_FORMS = {
    "metern": "meter",
    "kilometern": "kilometer",
    "litern": "liter",
    "tagen": "tag",
    "monaten": "monat",
    "jahren": "jahr",
    "ann\u00e9e": "year",
    "ann\u00e9es": "year",
    "grad": "degree",
    "grado cent\u00edgrado": "celsius",
    "grados cent\u00edgrados": "celsius",
    "centigrade": "celsius",
    "degrees centigrade": "celsius",
    "kilos": "kg",
    "kelvins": "kelvin",
    "m2": "m\u00b2",
    "m3": "m\u00b3",
    "km2": "km\u00b2",
    "cm2": "cm\u00b2",
}
"""Forms that the locale data lacks, and the spelling that they answer for."""

_MORE_OFTEN_WORDS = frozenset(("an", "time", "timer", "ton", "tons", "julio", "julios", "ore"))
"""Names of units of one language that stand after numbers of another and are none there."""

_SHORT_MULTIPLIERS = {"mn": 10**6, "bn": 10**9, "tn": 10**12, "mio": 10**6, "mrd": 10**9}

LETTER_MULTIPLIERS = {"k": 10**3, "m": 10**6}
"""Letters right after figures that multiply, and may be units as well; in lower case."""


def _read(table: str) -> dict[str, tuple[str, int | Fraction]]:
    units: dict[str, tuple[str, int | Fraction]] = {}
    for line in table.strip().splitlines():
        dimension, factor, *names = line.split(" ")
        size = Fraction(factor)
        for name in names:
            for one in _local_names(name[1:]) if name[0] == "@" else [name.replace("\u00a0", " ")]:
                units.setdefault(one, (dimension, int(size) if size.denominator == 1 else size))
    return units | {form: units[name] for form, name in _OTHER_FORMS.items()}


def _local_names(unit: str) -> set[str]:
    """Of one and of several, in all languages, in lower case."""
    told = (
        format_unit(number, unit, length="long", locale=language)
        for language in LANGUAGES
        for number in (1, 2)
    )
    return {_without_figures(words) for words in told} - _MORE_OFTEN_WORDS


def _read_multipliers() -> dict[str, int]:
    """What English calls a billion goes before what others call so."""
    found = _SHORT_MULTIPLIERS | {"dozen": 12}
    for language in LANGUAGES:
        for size in (10**3, 10**6, 10**9) if language != "en" else (10**3, 10**6, 10**9, 10**12):
            for number in (1, 2):
                told = format_compact_decimal(number * size, format_type="long", locale=language)
                if " " not in (word := _without_figures(told)) and word:
                    found.setdefault(word, size)
    return found


def _without_figures(told: str) -> str:
    return re.sub(r"[\d.,]+", "", told).replace("\u00a0", " ").strip().lower()


UNITS = _read(_TABLE)
"""Spelling (in lower case, but for symbols that are capitals) -> (dimension, size). Months and
years are no number of days, Celsius and kelvin no multiples: each is its own."""

FIRST_WORDS = frozenset(
    form
    for name in UNITS
    if " " in name
    for word in [name.split(" ")[0]]
    for form in (word, f"{word}s")
)
"""Of units of several words."""

MULTIPLIERS = _read_multipliers()
"""Words after a number that multiply it, in lower case."""
