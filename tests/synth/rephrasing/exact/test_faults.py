"""Exact faults: a value in the place of another is found, and no notation or form is one."""

from collections import Counter

import pytest

from benchmarks.rewrites import EXACT, texts_of
from synth.rephrasing.exact.faults import exact_faults
from tests.synth.rephrasing.test_structure import MIXED
from tests.synth.rephrasing.test_writing import LONG


def kinds(source: str, rewrite: str) -> set[str]:
    return {fault.kind for fault in exact_faults(source, rewrite)}


@pytest.mark.parametrize(
    ("source", "rewrite"),
    [
        ("It cost 1,500,000 euros.", "The price came to 1.5 million euros."),
        ("It cost NOK 540 million.", "Cost: NOK 540m."),
        ("The order book is 1.35 billion.", "Orders stand at 1,350m."),
        ("Baikal is 25 to 30 million years old.", "Its age: 25 million to 30 million years."),
        ("The canal is 31.5 miles long.", "It runs for thirty-one and a half miles."),
        ("The canal is 31.5 miles long.", "It is 31\u00bd miles long."),
        ("Take 6 cloves of garlic.", "You need half a dozen cloves of garlic."),
        ("Notice is six months.", "Half a year's notice is needed."),
        ("In 1876 it was shut; two years later it was open.", "Shut in 1876, open by 1878."),
        ("He saw it in 1876.", "It was seen in the 1870s, in 1876."),
        ("About $2.2 \\times 10^{14}$ cells are there.", "Some 2.2 x 10^14 cells are there."),
        ("On 14 March 2009 it was found.", "It was found on March 14th, 2009."),
        ("Am 14. M\u00e4rz 2009 war es in 16,5 Minuten fertig.", "14.3.2009: in 16,5 min fertig."),
        ("Set the canes at 45 degrees at first.", "Begin with canes at 45 degrees."),
        ("The number 54 has divisors.", "Divisors of 54 there are."),
        ("A French painter lived in Lyon.", "The painter came from France and lived in Lyon."),
        ("The Welsh coast is long.", "Wales has a long coast."),
        ('"I learned to swim here," he said, "and now it is a ditch."',
         '"I learned to swim here, and now it is a ditch," he said.'),
        ("Boil the eggs. Cool them. Peel them.", "1. Boil the eggs.\n2. Cool them.\n3. Peel them."),
        ("It rose from 480 to 540.", "It rose by 60, from 480 to 540."),
        ("Half of the 200 seats were sold.", "100 of the 200 seats were sold, 50%."),
        ("It prints twelve digits.", "It prints `12` digits."),
        ("Run `take --strict` first.", "**Q:** What first?\n**A:** `take --strict`."),
        ("The cat lay in the sun.", "In the light the cat sat."),
        ("Leave 1...2 m free.", "Free: 1...2 m."),
        ("It cost 2 trillion.", "The price: 2tn."),
        ("Take 10 mg a day for a week.", "Take 10 mg daily for a week."),
        ("Born in 1850, he died in 1912.", "Born in 1850, he died aged 62."),
        ("He died in his eighty-fourth year.", "He died at 83."),
        ("The kitchen uses 95 kWh of gas.", "Of gas it uses 95 kilowatt-hours."),
        ("It takes two hours and a quarter.", "It takes 135 minutes."),
        ("The hall holds 1,240, of whom 380 sit above.", "The hall holds 1,240: 860 sit below."),
        ("The price is 386,000 euros, a quarter of it now.", "Now 96,500 euros are due."),
        ("Each carries three litres; two of them go.", "The two carry six litres."),
        ("I enclose twenty guineas, half of it.", "He asked for forty guineas; half came."),
        ("The house has 9,000 books and 17 rooms.", "It holds 9,000 books, 25 V lamps and more."),
        ("Today Sergei Prokhorov met Elisabeth S\u00f8rensen.",
         "Elizabeth Sorensen was met by Sergey Prokhorov."),
        ("It opens on Tuesdays.", "Asker: When is it open?\nExpert: On Tuesdays."),
        ("We have $x = 4$ and $y = 5$.", "Since $x = 4$ and $y = 5$, $x + y = 9$."),
    ],
)  # fmt: skip
def test_another_notation_or_form_is_no_fault(source: str, rewrite: str) -> None:
    assert exact_faults(source, rewrite) == []


@pytest.mark.parametrize(
    ("source", "rewrite", "kind"),
    [
        ("The mast is 34 metres high.", "With 43 metres the mast is high.", "number"),
        ("Wait 60 seconds, then 10 more.", "Wait 90 seconds, then 10 more.", "number"),
        ("It comes in the fourth year.", "It comes in the fifth year.", "number"),
        ("Use version 1.0.18 of it.", "Version 1.0.16 is to be used.", "number"),
        ("Leave 4 cm free, for 4 to 5 days.", "Leave 4 mm free, for 4 to 5 days.", "unit"),
        ("The error is 4 kJ/mol.", "An error of 4 J/mol is usual.", "unit"),
        ("It takes 40 litres a day.", "It takes 40 litres an hour.", "unit"),
        ("Warten Sie 3 Stunden.", "Sie warten 3 Minuten.", "unit"),
        ("It uses 3.6 kWh a day.", "It uses 3,600 watt-hours a week.", "unit"),
        ("Heat it to 102 \u00b0F at once.", "At once heat it to 102 degrees Celsius.", "unit"),
        ("It weighed 145 kg.", "Its weight was 154 kg.", "number"),
        ("On 4 May 1920 it opened.", "It opened on 4 June 1920.", "date"),
        ("It opens on Tuesday.", "It opens on Wednesday.", "date"),
        ("Fermez-la en octobre.", "En novembre, on la ferme.", "date"),
        ("The keeper, Anders Holm, stayed.", "The one who stayed was Anders Halm.", "name"),
        ("He said: \"Nobody wants to own a wall that may fall.\"",
         "\"Nobody wants to own a wall that will fall,\" he said.", "quotation"),
        ("The law is $E = mc^2$.", "It says that $E = mc^3$.", "formula"),
        ("We know $3 + 4 = 7$.", "We know $3 + 4 = 7$, so $2 + 2 = 5$.", "formula"),
        ("Set `limit=1000` there.", "There `limit=100` is set.", "code"),
        ("Set `limit=100` there.", "There `limit=1000` is set.", "code"),
        ("We have $a \\leftarrow b + c$.", "So $a \\rightarrow b + c$ holds.", "formula"),
        ("```\nx = 1\n```\n\nIt runs.", "It runs:\n\n```\nx = 2\n```", "code"),
        ("| a | b |\n|---|---|\n| k | 1 |\n| l | 2 |", "| a | b |\n|---|---|\n| k | 2 |\n| l | 1 |",
         "table"),
    ],
)  # fmt: skip
def test_what_stands_in_the_place_of_another_is_found(source: str, rewrite: str, kind: str) -> None:
    assert kind in kinds(source, rewrite)
    assert all(fault.evidence for fault in exact_faults(source, rewrite))


TABLES = "\n\n".join(
    f"In {year}:\n\n| month | sold |\n|---|---|\n| June | {year % 7} |\n| July | {year % 5} |"
    for year in (2020, 2021)
)


@pytest.mark.parametrize("text", [MIXED, LONG, TABLES, "A row: " + "123 " * 2000])
def test_a_text_has_no_fault_against_itself(text: str) -> None:
    assert exact_faults(text, text) == []


@pytest.mark.parametrize("piece", ["a", "7", "1.", "1-", "_", "5 ", '"a b c" ', "`a1` "])
def test_patterns_do_not_run_away(piece: str) -> None:
    text = piece * (9_000 // len(piece))
    assert exact_faults(f"One word. {text}", f"Another. {text}") == []


def test_many_changed_values_are_compared_in_bounds() -> None:
    source, rewrite = (
        "".join(f"Value {n * 7919 % 99_991 + more}; `a{n + more}b`. " for n in range(250))
        for more in (1_000, 500_000)
    )
    assert kinds(source, rewrite) == {"number", "code"}


def test_a_name_of_the_document_may_be_used() -> None:
    source = "The keeper, Anders Holm, stayed on the reef with her."
    rewrite = "On the reef Mira stayed with the keeper, and he with her."
    assert kinds(source, rewrite) == {"name"}
    assert exact_faults(source, rewrite, document=f"Mira came in May. {source}") == []


def test_of_a_translation_numbers_formulas_and_code_are_compared() -> None:
    source = (
        "Der Turm ist 34 Meter hoch und wurde am 3. Mai 1871 von Anders Holm gebaut. Er steht auf"
        " dem Riff, und nicht weit von ihm ist der Hafen, in den die Schiffe bei Sturm fliehen."
    )
    rewrite = (
        "The tower is {} metres high and was built by Anders Holm on 3 May 1871. It stands on the"
        " reef, and not far from it is the harbour to which the ships flee in a storm."
    )
    assert exact_faults(source, rewrite.format(34)) == []
    assert kinds(source, rewrite.format(43)) == {"number"}


def test_texts_by_other_minds_are_told_apart() -> None:
    """The tuning half, which its rules were made on: no faithful part has a fault."""
    found = [(part, exact_faults(part.source, part.rewrite)) for part in texts_of("tuning")]
    mistaken = [(p.document, p.part, p.style, f) for p, f in found if p.change is None and f]
    assert mistaken == []
    planted = Counter(bool(faults) for part, faults in found if part.change in EXACT)
    assert planted[False] <= 3
    assert planted[True] >= 35
