"""Facts kept: other spellings of the same fact are no change, another fact always is."""

import pytest

from synth.rephrasing.facts.dates import dates_of
from synth.rephrasing.facts.quantities import quantities_of
from synth.rephrasing.facts.text import ReadText, sentences_of
from synth.rephrasing.fidelity.checks import Fidelity, fidelity_of, reasons_of, verdict
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.layers import measured_text

RIVER = """# The river

The Elbe rises at an altitude of 1,386 metres in the Krkonose mountains and is 1,094 kilometres
long. In 1990 its water was not clean. "We have to act now," said the minister Klaus Weber on
4 March 1992.

The river flows through Dresden and Hamburg. It carries about 860 cubic metres of water per second.
"""
REWRITTEN = """# The river

With a length of 1094 km the Elbe begins 1386 m up in the Krkonose mountains. Its water was not
clean in 1990. On March 4, 1992 the minister, Klaus Weber, put it this way: "We have to act now."

Dresden and Hamburg lie on the river, which carries some 860 m\u00b3 of water each second.
"""


def measured(rewrite: str, source: str = RIVER) -> Fidelity:
    return fidelity_of(source, rewrite, kind="knowledge")


def reasons(rewrite: str, source: str = RIVER) -> set[str]:
    return set(reasons_of(measured(rewrite, source).columns(), FidelityConfig()))


@pytest.mark.parametrize("last", ["step", "5", "twenty", "from 3 to", "on 4", "about half"])
@pytest.mark.parametrize(
    "heading", ["7 km", "three days", "March 2019", "and 10", "a million", "m"]
)
def test_what_headings_say_is_no_part_of_the_facts_of_the_prose(last: str, heading: str) -> None:
    text = ReadText(f"# {heading}\n\nIt took 12 days until May 1990, or {last}\n")
    facts = measured_text(text, "en")
    assert text.headings == [heading]
    assert facts.quantities == list(quantities_of(text.stated))
    assert facts.dates == list(dates_of(text.stated))


def test_measures_are_the_same_whatever_was_measured_before() -> None:
    first = measured(REWRITTEN).columns()
    for other in (RIVER, REWRITTEN.replace("1094", "1194"), "# Another\n\nText of 1094 words."):
        measured(other)
        measured(RIVER, other)
    assert measured(REWRITTEN).columns() == first


def test_a_faithful_rewrite_is_kept() -> None:
    assert verdict(measured(REWRITTEN).columns(), FidelityConfig()) is None


@pytest.mark.parametrize(
    ("was", "put", "reason"),
    [
        ("1094", "1194", "numbers_added"),
        ("1094", "1194", "numbers_lost"),
        ("1386 m ", "1386 km ", "units_changed"),
        ("March 4", "March 14", "dates_changed"),
        ("Hamburg", "Bremen", "names_added"),
        ("act now", "act at once", "quotation_changed"),
        ("was not", "was", "contradicted"),
        ("# The river\n", "", None),
    ],
)
def test_one_changed_fact_is_named(was: str, put: str, reason: str | None) -> None:
    changed = REWRITTEN.replace(was, put)
    assert changed != REWRITTEN
    assert reasons(changed) >= ({reason} if reason else set())
    assert bool(reasons_of(measured(changed).columns(), FidelityConfig())) == bool(reason)


def test_a_denial_is_found_whatever_aligned_the_sentences() -> None:
    by_words = measured(REWRITTEN).alignment
    assert by_words is not None
    embedded = by_words._replace(method="embedder")
    for rewrite, found in (
        (REWRITTEN, []),
        (REWRITTEN.replace("was not", "was"), ["contradicted"]),
    ):
        fidelity = fidelity_of(RIVER, rewrite, kind="knowledge", alignment=embedded)
        assert reasons_of(fidelity.columns(), FidelityConfig()) == found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,200", "twelve hundred"),
        ("1,200", "1200"),
        ("3 million", "3,000,000"),
        ("45%", "45 percent"),
        ("45 per cent", "45 %"),
        ("twenty-one", "21"),
        ("one hundred and five", "105"),
        ("1.5 x 10^6", "1,500,000"),
        ("$5 million", "5,000,000 dollars"),
    ],
)
def test_spellings_of_a_number_are_one(one: str, other: str) -> None:
    (a,), (b,) = (quantities_of(f"It was {text} then.") for text in (one, other))
    assert (a.value, a.measured) == (b.value, b.measured)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5 kilometres"),
        ("5 km", "5,000 metres"),
        ("5-10 km", "5 to 10 kilometers"),
        ("20 \u00b0C", "20 degrees Celsius"),
        ("100 km/h", "100 kilometres per hour"),
        ("256 MB", "256 megabytes"),
        ("two hours", "120 minutes"),
        ("$5", "5 dollars"),
    ],
)
def test_spellings_of_a_quantity_are_one(one: str, other: str) -> None:
    pairs = [{q.measured for q in quantities_of(f"It was {text}.")} for text in (one, other)]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize(
    "other", ["2026-03-04", "March 4, 2026", "4 Mar 2026", "4th of March 2026", "4.3.2026"]
)
def test_spellings_of_a_date_are_one(other: str) -> None:
    (date,), (same,) = dates_of("on 4 March 2026"), dates_of(f"on {other}")
    assert date.agrees(same)
    assert date[:4] == same[:4]


def test_units_that_are_no_multiples_stay_apart() -> None:
    for one, other in (("5 km", "5 miles"), ("5 \u00b0C", "5 \u00b0F"), ("3 GB", "3 GiB")):
        pairs = [{q.measured for q in quantities_of(text)} for text in (one, other)]
        assert pairs[0].isdisjoint(pairs[1])


def test_small_numbers_in_words_may_go_but_not_change() -> None:
    source = "There are two kinds of valve in this pump, and both of them must be replaced yearly."
    assert (
        measured("Of valves the pump has kinds which must be replaced.", source).numbers.lost == ()
    )
    changed = measured("There are three kinds of valve in this pump.", source)
    assert (changed.numbers.lost, changed.numbers.added) == (("two",), ("three",))


def test_times_in_other_spellings_are_no_conflict() -> None:
    source = "The night train to Kiruna leaves Stockholm at 18:12 and arrives at 09:45."
    other = "Leaving Stockholm at 6:12 pm, the night train gets to Kiruna at 9:45 am."
    assert reasons(other, source) == set()
    assert "dates_changed" in reasons(other.replace("6:12", "7:12"), source)


def test_both_is_no_number_of_metres() -> None:
    assert [q.unit for q in quantities_of("It holds for both m and n.")] == [None]


def test_counting_the_parts_of_a_text_adds_no_number() -> None:
    source = "Open the valve. Drain the tank. Close the valve again."
    steps = "1. Open the valve.\n2. Drain the tank.\n\nStep 3: close the valve again."
    assert measured(steps, source).numbers.added == ()


def test_code_is_kept_line_for_line_at_any_indent() -> None:
    source = "Call it so:\n\n```\nfor x in y:\n    print(x)\n```\n"
    kept = "So it is called:\n\n    for x in y:\n        print(x)\n"
    assert measured(kept, source).code.lost == ()
    flat = kept.replace("        print", "    print")
    assert len(measured(flat, source).code.lost) == 1
    invented = source + "\n```\nimport os\n```\n"
    assert measured(invented, source).code.added == ("import os",)


def test_cells_of_a_table_count_wherever_they_are_said() -> None:
    source = "| city | height |\n|---|---|\n| Ulm | 478 m |\n| Jena | 143 m |\n"
    assert measured("The city of Ulm has a height of 478 m, Jena 143 m.", source).tables.lost == ()
    assert measured("The city of Ulm has a height of 478 m.", source).tables.lost == (
        "Jena",
        "143 m",
    )


def test_prices_are_no_formulas() -> None:
    assert ReadText("It costs $5 and $10, or $5-$10.").formulas == []
    assert ReadText("so $x = 5$ and $$y^2$$ hold").formulas == ["x = 5", "y^2"]


def test_a_copy_and_a_repetition_are_seen() -> None:
    assert measured(RIVER).copied == 1.0
    assert "copied" in reasons(RIVER)
    assert "repetitive" in reasons(REWRITTEN + 3 * REWRITTEN.split("\n\n")[1])


def test_another_language_is_seen() -> None:
    german = (
        "Der Fluss ist nicht lang, und das Wasser in der Elbe ist mit der Zeit sauber geworden."
    )
    assert measured(german).language == "de"
    assert verdict(measured(german).columns(), FidelityConfig()) == "wrong_language"


def test_sentences_end_where_people_end_them() -> None:
    text = "Dr. Lee came at 3.5 p.m. on time, e.g. by bus. Was it late? No! Yes. J. Smith left."
    assert len(sentences_of(text)) == 5


def test_columns_are_json_with_every_layer() -> None:
    columns = measured(REWRITTEN.replace("Hamburg", "Bremen")).columns()
    assert columns["names"]["lost"] == ["Hamburg"]
    assert columns["names"]["added"] == ["Bremen"]
    assert set(columns) >= {"numbers", "units", "dates", "quotations", "code", "tables", "headings"}
    assert set(columns) >= {"alignment", "length_ratio", "language", "repetition", "overlap"}
