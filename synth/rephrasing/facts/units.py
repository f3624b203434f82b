"""Units of measure: each spelling, the dimension it measures, and its size in that dimension."""

from fractions import Fraction

MULTIPLIERS = {
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "mn": 10**6,
    "bn": 10**9,
    "dozen": 12,
}

_TABLE = """
length 1/1000000000 nm nanometre nanometer
length 1/1000000 \u00b5m \u03bcm micrometre micrometer micron
length 1/1000 mm millimetre millimeter
length 1/100 cm centimetre centimeter
length 1 m metre meter metern m\u00e8tre metro
length 1000 km kilometre kilometer kilometern kilom\u00e8tre kil\u00f3metro chilometro
length 1609344/1000 mile mi
length 254/10000 inch inches
length 3048/10000 ft foot feet
length 9144/10000 yard yd
area 1 m\u00b2 m^2 sqm square\u00a0metre square\u00a0meter
area 1000000 km\u00b2 km^2 square\u00a0kilometre square\u00a0kilometer
area 10000 ha hectare
area 40468564224/10000000 acre
mass 1/1000000000 \u00b5g \u03bcg microgram
mass 1/1000000 mg milligram
mass 1/1000 g gram gramme gramm gramo grammo
mass 1 kg kilogram kilo
mass 1000 t tonne
mass 45359237/100000000 lb pound-mass
mass 28349523125/1000000000000 oz ounce
time 1/1000000000 ns nanosecond
time 1/1000000 \u00b5s \u03bcs microsecond
time 1/1000 ms millisecond
time 1 s sec second sekunde sekunden seconde segundo secondo
time 60 min minute minuten minuto
time 3600 h hr hour stunde stunden heure hora ora
time 86400 day tag tage tagen jour d\u00eda dia giorno
time 604800 week woche wochen semaine semana settimana
months 1 month monat monate monaten mois mes mese
months 12 year yr jahr jahre jahren ann\u00e9e a\u00f1o ano anno
months 120 decade
months 1200 century centuries
volume 1/1000 ml millilitre milliliter
volume 1 l litre liter litern litro
volume 1000 m\u00b3 m^3 cubic\u00a0metre cubic\u00a0meter
volume 3785411784/1000000000 gallon
speed 1 m/s metre\u00a0per\u00a0second meter\u00a0per\u00a0second
speed 1000/3600 km/h kph kilometre\u00a0per\u00a0hour kilometer\u00a0per\u00a0hour
speed 1609344/3600000 mph mile\u00a0per\u00a0hour
temperature 1 \u00b0c celsius degree\u00a0celsius degrees\u00a0celsius
fahrenheit 1 \u00b0f fahrenheit degree\u00a0fahrenheit degrees\u00a0fahrenheit
kelvin 1 K kelvin
angle 1 \u00b0 degree deg
angle_radian 1 radian rad
energy 1 J joule
energy 1000 kj kilojoule
energy 3600000 kwh
energy 4184/1000 calorie cal
energy 4184 kcal kilocalorie
power 1 W watt
power 1000 kw kilowatt
power 1000000 MW megawatt
voltage 1 V volt
voltage 1000 kv kilovolt
current 1/1000 ma milliampere
current 1 A ampere amp
resistance 1 \u03a9 ohm
frequency 1 hz hertz
frequency 1000 khz kilohertz
frequency 1000000 mhz megahertz
frequency 1000000000 ghz gigahertz
force 1 N newton
pressure 1 pa pascal
pressure 100 hpa hectopascal
pressure 1000 kpa kilopascal
pressure 100000 bar
information 1 bit
information 8 byte
information 8000 kb kilobyte
information 8192 kib kibibyte
information 8000000 mb megabyte
information 8388608 mib mebibyte
information 8000000000 gb gigabyte
information 8589934592 gib gibibyte
information 8000000000000 tb terabyte
ratio 1 % percent per\u00a0cent pct
points 1 percentage\u00a0point
permille 1 \u2030
dollar 1 $ dollar usd
euro 1 \u20ac euro eur
sterling 1 \u00a3 pound gbp
yen 1 \u00a5 yen
cent 1 cent
"""


def _read(table: str) -> dict[str, tuple[str, int | Fraction]]:
    units: dict[str, tuple[str, int | Fraction]] = {}
    for line in table.strip().splitlines():
        dimension, factor, *names = line.split(" ")
        size = Fraction(factor)
        for name in names:
            plain = name.replace("\u00a0", " ")
            units[plain] = dimension, int(size) if size.denominator == 1 else size
    return units


UNITS = _read(_TABLE)
"""Spelling (in lower case and singular, but for symbols that are capitals) -> (dimension, size).
Months and years are no number of days, Celsius and kelvin no multiples: each is its own."""
