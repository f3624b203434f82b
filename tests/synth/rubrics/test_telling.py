"""Whether the user was told a value: what counts, what plainly does not, what is left open."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.rubrics.built_in import BUILT_IN, COMMUNICATE, Verdict, episode_of
from synth.rubrics.criteria import CommunicateCheck, ValuePlace

DAY = {"role": "system", "content": "You help. Today is Wednesday, 15 April 2026."}
ASKS = {"role": "user", "content": "Hello, please tell me what I asked you for."}


def told(
    text: Any, *values: Any, place: ValuePlace | None = None, asks: dict[str, str] = ASKS
) -> Verdict:
    """The verdict on one reply, or on a list of them."""
    check = CommunicateCheck(values=values, places=(place,) if place else ())
    texts = [text] if isinstance(text, str) else text
    messages = [DAY, asks, *({"role": "assistant", "content": text} for text in texts)]
    criterion = COMMUNICATE.criterion("told", "w", check, weight=1, mandatory=True)
    verdict = BUILT_IN.check(criterion, episode_of(messages, []))
    assert verdict is not None
    return verdict


TOLD = [
    ("Your fee is \xa338.", 38.0),
    ("It costs thirty-eight quid.", 38.0),
    ("You owe nothing for it.", 0),
    ("The change is free of charge.", 0.0),
    ("That is free.", 0),
    ("There is no charge for this.", 0),
    ("The tax is 25 percent.", 0.25),
    ("The tax is 25%.", 25),
    ("Sie zahlen \u20ac1.240,50 insgesamt.", 1240.5),
    ("You pay \u20ac1.240,50 in total.", 1240.5),
    ("It leaves tomorrow at 9:45.", "2026-04-16T09:45:00"),
    ("We booked your check-up.", "checkup"),
    ("The van comes between 1 and 5 pm.", "13:00-17:00"),
    ("There is one left.", 1),
    ("It is due in two weeks.", "2026-04-29"),
    ("It is due on 29 April.", "2026-04-29"),
    ("It starts at 8 pm.", "20:00"),
    ("It starts at 8:15.", "08:15"),
    ("Your number is RT-7719.", "RT-7719"),
    ("Your number is RT 7719.", "RT-7719"),
    ("The room is Studio 1.", "Studio 1"),
    ("It is in progress.", "in_progress"),
    ("Son treinta y ocho euros con todo incluido.", 38.0),
    ("Das macht achtunddrei\xdfig Euro f\xfcr Sie.", 38.0),
    ("Cela fait trente-huit euros pour vous.", 38.0),
    ("\u4e00\u5171\u4e09\u5341\u516b\u5143,\u8bf7\u60a8\u4ed8\u6b3e\u3002", 38),
    ("LP-58231 gets \xa321.50 back.", 21.5),
    (["The fee is \xa338.", "Done, all is booked for you."], 38.0),
    ("The year is 2024.", 2024),
    ("Your seat is 5D and the flight NX418.", "5D"),
    ("You get 0.5 days.", 0.5),
    ("It costs 1,299 dollars.", 1299),
    ("It leaves at quarter past eight in the evening.", "20:15"),
    ("Your PIN is 0147.", "0147"),
    ("Call 218-555-0147.", "218-555-0147"),
    ("The total is \xa31,150.00 for two.", 1150),
    ("Das kostet Sie nichts.", 0),
    ("Der Termin ist um Viertel nach neun.", "09:15"),
    ("A las nueve y cuarto de la ma\xf1ana est\xe1 bien para usted.", "09:15"),
    ("Le rendez-vous est \xe0 neuf heures et quart pour vous.", "09:15"),
]

NOT_TOLD = [
    ("The size is either 25 or 65 or 50, depending on the model.", 25),
    ("That's either 38 or 46 quid depending on which bag it is.", 38.0),
    ("The fee is \xa341.", 38.0),
    ("Your fee is now known.", 38.5),
    ("It is due on 3 May.", "2026-04-29"),
    ("Your number is RT-7791.", "RT-7719"),
]

OPEN = [
    ("You get back \xa3320 of the \xa3349.", 320.0),
    ("It is not 120 but 130.", 130),
    ("Harvest of May 2024.", 2024),
    ("It costs \xa324 (or \xa320 for members).", 24),
    ("It is NOT 120 but 130.", 120),
    ("I could not find it, so it is not \xa338.", 38.0),
    ("Instead of 14:00, it is now at 16:00.", "14:00"),
    ("120 is not the fee.", 120),
    ("The fee is less than 120.", 120),
    ("The fee is 80, down from 120.", 120),
    ("It used to be 120.", 120),
    ("I doubt that the fee is 120.", 120),
    ("If you had an account, the fee would be 120.", 120),
    ("The fee: 45, 60, 80, 120, 150.", 120),
    ("The fee of the next plan is 120, yours is 80.", 120),
    ("Bob's fee is 120. Yours is 80.", 120),
    ("Cancelled it is not.", "cancelled"),
    ("It might be cancelled.", "cancelled"),
    ("Vielleicht 120 Euro.", 120),
    ("Los 120 euros no son correctos.", 120),
    ("\u8d39\u7528\u53ef\u80fd\u662f120\u5143\u3002", 120),
    ("120\u5143\u4e0d\u5bf9\u3002", 120),
    (["The fee is 120.", "Sorry, I was wrong: the fee is 150."], 120),
    ("Your appointment is on Christmas Eve.", "2026-12-24"),
    ("Der Termin ist an Heiligabend.", "2026-12-24"),
    ("It's on New Year's Day.", "2027-01-01"),
    ("The stay is a fortnight.", 14),
    ("It is about 12 hundred.", 1240),
    ("That is 40 for each of Ann, Bob and Cy.", 120),
    ("The parcel weighs 44 lb.", 20),
    ("It is 5 miles away.", 8.05),
    ("Set to 68\xb0F.", 20),
    ("You are 18 months in.", 547),
    ("It starts at 20:00 your time.", "19:00"),
    ("It starts at 8 p.m. your time.", "2026-11-23T19:00"),
    ("Take the 400.", "LH400"),
    ("Your reference is L P five eight two one three.", "LP-58213"),
    ("Either way, it is 120 euros or 130 dollars.", 120),
    ("Either way it is 120, or 60 each.", 120),
    ("Whether you take it or not, the fee stays at 120 or $130 in dollars.", 120),
    ("It comes to about \xa339.", 38.6),
    ("It comes to roughly 40 pounds.", 38.0),
    ("You pay \xa320 for the bag and \xa318 for the seat.", 38.0),
    ("It takes an hour and a half.", 90),
    ("It takes 2 hours.", 120),
    ("You have both vouchers.", 2),
    ("You can come at 9:00 or 10:30, which do you prefer?", "09:00"),
    ("You can have either 9:00 or 10:30.", "09:00"),
    ("It is due on the 28th.", "2026-04-28"),
    ("It is due on Friday.", "2026-04-17"),
    ("It is due by the end of the month.", "2026-04-30"),
    ("It is due next week.", "2026-04-22"),
    ("It starts at 8.", "20:00"),
    ("It starts at 8:15.", "20:15"),
    ("It starts at 7 pm.", "20:30"),
    ("The card ending in 7719 is used.", "VISA-7719"),
    ("The room is the small one.", "Studio 1"),
    ("Is it \xa338?", 38.0),
    ("A import\xe2ncia \xe9 de 41 euros e n\xe3o h\xe1 mais nada para voc\xea.", 38.0),
    ("Son unos cuarenta euros en total para usted.", 38.0),
    (["It costs \xa329 or \xa30, depending on your reason.", "Done, your return is booked."], 29.0),
    ("The booking was made.", "2026-04-29T10:00:00Z"),
    ("You get half a day.", 0.5),
    ("It weighs 2.5 kg.", 2500),
    ("It costs 1.299 dollars.", 1299),
    ("Price: \u2212\xa329.00 comes off the total.", 29.0),
    ("It is 20.15 on the board.", "20:15"),
    ("The code is 4410 2231.", "44102231"),
    ("It's eighty-nine ninety-nine.", 89.99),
]


@pytest.mark.parametrize(("text", "value"), TOLD)
def test_usual_spellings_are_told(text: Any, value: Any) -> None:
    verdict = told(text, value)
    assert verdict.passed is True, verdict.evidence
    assert verdict.score == 1.0


@pytest.mark.parametrize(("text", "value"), NOT_TOLD)
def test_what_is_missing_or_one_of_several_is_not_told(text: Any, value: Any) -> None:
    verdict = told(text, value)
    assert verdict.passed is False, verdict.evidence


@pytest.mark.parametrize(("text", "value"), OPEN)
def test_what_may_be_told_in_other_words_is_left_to_the_judge(text: Any, value: Any) -> None:
    verdict = told(text, value)
    assert verdict.passed is None, verdict.evidence
    assert verdict.score == 0.0


def test_a_value_told_of_another_record_is_left_open() -> None:
    place = ValuePlace(entity="bookings", id="LP-58231", field="refund")
    assert told("LP-58231 gets \xa321.50 back.", 21.5, place=place).passed
    assert told("Your refund is \xa321.50.", 21.5, place=place).passed
    assert told("LP-58213 gets \xa321.50 back.", 21.5, place=place).passed is None
    both = ["LP-58213 gets \xa321.50 back.", "And LP-58231 gets \xa321.50, too."]
    assert told(both, 21.5, place=place).passed


def test_one_missing_value_fails_and_one_open_value_leaves_all_open() -> None:
    missing = told("Your order is AP-1009.", "AP-1009", 38.5)
    assert (missing.passed, missing.score) == (False, 0.5)
    assert "told 1; AP-1009 in 'Your order is AP-1009.'; not told: 38.5." in missing.evidence
    opened = told("Your order is AP-1009.", "AP-1009", "the blue one")
    assert (opened.passed, opened.score) == (None, 0.0)


def test_the_user_s_language_counts_where_the_reply_is_too_short_to_tell() -> None:
    asks = {"role": "user", "content": "Wie viel kostet das denn, und wann ist es bei mir?"}
    assert told("Gerne: 1.240,50 EUR", 1240.5, asks=asks).passed
    assert told("Ok: 1.240", 1240, asks=asks).passed
    assert told("\xdcbermorgen schon!", "2026-04-17").passed is None
    foreign = {"role": "user", "content": "Quanto custa isto e quando chega na minha casa?"}
    assert told("Ok: 41", 38.5, asks=foreign).passed is None


amounts = st.integers(1300, 10**7).map(lambda cents: cents / 100)


@settings(deadline=None)
@given(amounts, st.sampled_from(["\u20ac", "\xa3", "$", ""]))
def test_an_amount_that_is_told_never_fails(value: float, symbol: str) -> None:
    texts = [
        f"It comes to {symbol}{value:,.2f} for you.",
        f"Das macht {value:,.2f}".translate({44: ".", 46: ","}) + f" {symbol} f\xfcr Sie.",
        f"It is about {symbol}{value:.0f} for you.",
        f"It comes to {symbol}{value - 7:.2f} and another {symbol}7 for you.",
    ]
    verdicts = [told(text, value).passed for text in texts]
    assert verdicts[:2] == [True, True]
    assert False not in verdicts


@settings(deadline=None)
@given(amounts, amounts)
def test_another_amount_is_never_told(value: float, other: float) -> None:
    if abs(value - other) >= 0.01:
        assert told(f"It comes to \xa3{other:,.2f} for you.", value).passed is not True
