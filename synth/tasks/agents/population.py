"""Of whom simulated users are drawn: weights near those of the people who turn to services.

The weights are round figures, after what offices of statistics publish of age, household and work
in countries where services are used online, and are meant to be replaced by `[personas]` where
somebody knows better. What cannot stand together in one person is told by two tables: an age range
for occupations and households, and pairs of words that contradict each other.
"""

from collections.abc import Mapping
from types import MappingProxyType

AGES = {
    "16-17": 3.0, "18-24": 12.0, "25-34": 20.0, "35-44": 19.0, "45-54": 16.0, "55-64": 14.0,
    "65-74": 10.0, "75-88": 6.0,
}  # fmt: skip
PLACES = {
    "a large city": 32.0,
    "a suburb": 24.0,
    "a medium-sized town": 20.0,
    "a small town": 13.0,
    "a village": 8.0,
    "far out in the country": 3.0,
}
COUNTRIES = {
    "the United States": 38.0, "the United Kingdom": 15.0, "Canada": 9.0, "India": 8.0,
    "Australia": 7.0, "South Africa": 4.0, "Nigeria": 4.0, "Ireland": 3.0, "Singapore": 3.0,
    "the Philippines": 3.0, "New Zealand": 2.0, "Kenya": 2.0, "Jamaica": 1.0, "Germany": 13.0,
    "Austria": 1.5, "Switzerland": 1.4, "France": 11.0, "Belgium": 1.8, "Senegal": 1.0,
    "Spain": 8.0, "Mexico": 20.0, "Colombia": 8.0, "Argentina": 7.0, "Chile": 3.0, "China": 40.0,
    "Taiwan": 3.0,
}  # fmt: skip
LANGUAGES_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Canada": ("English", "French"),
        "Singapore": ("English", "Chinese"),
        "Switzerland": ("German", "French"),
        "Belgium": ("French",),
        "Germany": ("German",),
        "Austria": ("German",),
        "France": ("French",),
        "Senegal": ("French",),
        "China": ("Chinese",),
        "Taiwan": ("Chinese",),
    }
    | dict.fromkeys(("Spain", "Mexico", "Colombia", "Argentina", "Chile"), ("Spanish",))
    | dict.fromkeys(
        (
            "the United States", "the United Kingdom", "India", "Australia", "South Africa",
            "Nigeria", "Ireland", "the Philippines", "New Zealand", "Kenya", "Jamaica",
        ),
        ("English",),
    )
)  # fmt: skip
"""Country -> languages in which its people write to services. A country that does not stand here
has every language."""

HOUSEHOLDS = {
    "lives alone": 22.0,
    "lives with a partner": 26.0,
    "lives with a partner and small children": 22.0,
    "lives with a partner and teenagers": 20.0,
    "a single parent": 6.0,
    "lives with their parents": 9.0,
    "shares a flat": 6.0,
    "widowed, lives alone": 5.0,
    "lives with a grown-up child's family": 2.0,
    "looks after a parent at home": 3.0,
    "lives apart from a partner who works elsewhere": 2.0,
    "lives with brothers or sisters": 2.0,
}
OCCUPATIONS = {
    "pupil": 3.0, "apprentice": 2.0, "student": 7.0, "doctoral student": 1.0, "retired": 16.0,
    "looking for work": 4.0, "keeps house": 3.0, "nurse": 2.0, "care worker": 2.0,
    "general practitioner": 0.6, "physiotherapist": 0.7, "pharmacist": 0.6, "dental assistant": 0.7,
    "primary school teacher": 1.6, "secondary school teacher": 1.6, "childminder": 1.0,
    "university lecturer": 0.6, "social worker": 1.0, "shop assistant": 2.6, "shop owner": 1.2,
    "cashier": 1.4, "hairdresser": 1.0, "cook": 1.4, "waiter": 1.4, "baker": 0.6,
    "hotel clerk": 0.8, "cleaner": 1.8, "security guard": 1.0, "lorry driver": 1.4,
    "bus driver": 0.9, "delivery rider": 0.9, "warehouse worker": 2.0, "forklift driver": 0.7,
    "farmer": 0.9, "gardener": 0.7, "carpenter": 0.9, "plumber": 0.8, "electrician": 1.0,
    "bricklayer": 0.8, "car mechanic": 1.0, "machine operator": 1.4, "welder": 0.6,
    "seamstress": 0.4, "civil engineer": 0.9, "software developer": 1.8, "data analyst": 0.8,
    "IT support": 1.0, "lab technician": 0.6, "architect": 0.5, "accountant": 1.4,
    "bookkeeper": 1.0, "bank clerk": 0.9, "insurance agent": 0.7, "estate agent": 0.6,
    "sales representative": 1.6, "marketing manager": 0.9, "project manager": 1.2,
    "office assistant": 2.2, "personnel officer": 0.7, "call centre agent": 1.0, "lawyer": 0.6,
    "paralegal": 0.4, "police officer": 0.7, "firefighter": 0.4, "soldier": 0.5,
    "civil servant": 1.8, "postal worker": 0.6, "translator": 0.4, "journalist": 0.4,
    "graphic designer": 0.6, "photographer": 0.4, "musician": 0.3, "actor": 0.2,
    "fitness trainer": 0.5, "flight attendant": 0.3, "sailor": 0.2, "librarian": 0.3,
    "vet's assistant": 0.3, "beautician": 0.5, "taxi driver": 0.7, "owner of a small company": 1.4,
    "works in a charity": 0.6, "priest": 0.2, "funeral director": 0.1,
}  # fmt: skip
_STUDIED = (
    "nurse", "general practitioner", "physiotherapist", "pharmacist", "primary school teacher",
    "secondary school teacher", "university lecturer", "social worker", "civil engineer",
    "data analyst", "architect", "accountant", "estate agent", "marketing manager",
    "project manager", "personnel officer", "lawyer", "paralegal", "police officer", "translator",
    "journalist", "librarian", "bank clerk", "civil servant", "funeral director",
)  # fmt: skip
AGE_RANGE: Mapping[str, tuple[int, int]] = MappingProxyType(
    dict.fromkeys(_STUDIED, (24, 68))
    | {
        "pupil": (0, 18),
        "apprentice": (16, 26),
        "student": (18, 32),
        "doctoral student": (24, 36),
        "retired": (60, 120),
        "looking for work": (18, 65),
        "keeps house": (22, 75),
        "soldier": (18, 55),
        "shop owner": (24, 78),
        "owner of a small company": (24, 80),
        "farmer": (20, 80),
        "musician": (18, 80),
        "priest": (26, 80),
        "shop assistant": (16, 66),
        "waiter": (16, 66),
        "cashier": (16, 66),
        "lives alone": (18, 120),
        "lives with a partner": (19, 120),
        "lives with a partner and small children": (21, 48),
        "lives with a partner and teenagers": (34, 62),
        "a single parent": (20, 58),
        "lives with their parents": (0, 34),
        "shares a flat": (18, 45),
        "widowed, lives alone": (55, 120),
        "lives with a grown-up child's family": (62, 120),
        "looks after a parent at home": (38, 70),
        "lives apart from a partner who works elsewhere": (22, 64),
        "lives with brothers or sisters": (0, 40),
    }
)
"""Youngest and oldest of some occupations and households."""

WORKING_AGE = (18, 68)
"""Of the occupations above that have no range of their own."""

MOODS = {
    "calm": 30.0,
    "in good spirits": 14.0,
    "tired": 11.0,
    "in a hurry": 11.0,
    "distracted, doing something else besides": 8.0,
    "worried": 8.0,
    "annoyed before it begins": 7.0,
    "bored": 3.0,
    "embarrassed to have to ask": 4.0,
    "suspicious of being fobbed off": 4.0,
}
LENGTHS = {
    "a few words": 17.0,
    "one sentence": 28.0,
    "two or three sentences": 35.0,
    "a whole paragraph": 15.0,
    "long, like a mail": 5.0,
}
HABITS = {
    "all lower case": 0.13,
    "hardly any punctuation": 0.1,
    "CAPITALS for what matters": 0.04,
    "typos left in, from typing fast": 0.13,
    "misspells certain words in the same way each time": 0.05,
    "texting shortcuts such as u, pls, thx": 0.07,
    "never a spelling mistake": 0.06,
    "dictated by voice: run-on, fillers, a misheard word now and then": 0.06,
    "fragments without subject or verb": 0.1,
    "numbered or dashed lists": 0.06,
    "a new line for every thought": 0.07,
    "second thoughts in brackets": 0.06,
    "sentences strung together with 'and' and 'so'": 0.06,
    "dots between thoughts ...": 0.08,
    "asks two or three things at once": 0.05,
    "wording as for the record": 0.04,
    "emoji": 0.1,
    "exclamation marks": 0.07,
    "small jokes, 'haha' or 'lol'": 0.06,
    "greets and signs every message": 0.07,
    "never greets or thanks": 0.11,
    "apologises a lot": 0.06,
    "says sir, madam or dear": 0.04,
    "sayings and figures of speech": 0.05,
    "regional words of home": 0.07,
    "a word of the mother tongue now and then": 0.3,
    "says things twice in other words": 0.04,
    "thinks aloud and corrects what was just said": 0.06,
    "swears mildly": 0.03,
    "dry understatement": 0.05,
}
MOST_HABITS = 4

CLASHES: tuple[tuple[str, str], ...] = (
    ("lower case", "CAPITALS"), ("lower case", "formal, "), ("lower case", "full sentences"),
    ("lower case", "never a spelling"), ("lower case", "for the record"), ("lower case", "signs"),
    ("punctuation", "formal, "), ("punctuation", "full sentences"), ("punctuation", "exclamation"),
    ("punctuation", "dots"), ("punctuation", "brackets"), ("punctuation", "never a spelling"),
    ("typos", "never a spelling"), ("typos", "formal, "), ("typos", "dictated"),
    ("typos", "precise"), ("misspells", "never a spelling"), ("misspells", "dictated"),
    ("misspells", "teacher"), ("texting", "formal, "), ("texting", "full sentences"),
    ("texting", "never a spelling"), ("texting", "dictated"), ("texting", "retired"),
    ("texting", "for the record"), ("dictated", "lists"), ("dictated", "new line"),
    ("dictated", "emoji"), ("dictated", "never a"), ("dictated", "lower case"),
    ("dictated", "CAPITALS"), ("dictated", "brackets"), ("dictated", "a few words"),
    ("dictated", "signs"), ("dictated", "short messages"), ("fragments", "full sentences"),
    ("fragments", "formal, "), ("fragments", "strung together"), ("fragments", "paragraph"),
    ("fragments", "like a mail"), ("fragments", "for the record"),
    ("strung together", "a few words"), ("strung together", "lists"), ("twice", "a few words"),
    ("twice", "hurried"), ("twice", "short messages"), ("emoji", "formal, "),
    ("emoji", "for the record"), ("emoji", "businesslike"), ("exclamation", "formal, "),
    ("haha", "formal, "), ("haha", "annoyed"), ("haha", "grumpy"), ("haha", "for the record"),
    ("haha", "worried"), ("greets and signs", "never greets"), ("never greets", "polite"),
    ("never greets", "formal, "), ("never greets", "warm"), ("never greets", "apologises"),
    ("never greets", "sir, madam"), ("greets and signs", "no greeting"),
    ("greets and signs", "a few words"), ("sir, madam", "no greeting"), ("sir, madam", "haha"),
    ("sir, madam", "texting"), ("swears", "formal, "), ("swears", "polite"),
    ("swears", "sir, madam"), ("swears", "warm"), ("swears", "pupil"), ("regional", "formal, "),
    ("regional", "for the record"), ("apologises", "annoyed"), ("apologises", "grumpy"),
    ("texting", "precise"), ("for the record", "chatty"), ("for the record", "informal"),
    ("lists", "a few words"), ("brackets", "a few words"), ("paragraph", "short messages"),
    ("paragraph", "hurried"), ("like a mail", "short messages"), ("like a mail", "hurried"),
    ("like a mail", "in a hurry"), ("paragraph", "in a hurry"), ("a few words", "chatty"),
    ("a few words", "letter"), ("a few words", "full sentences"), ("a few words", "lists things"),
    ("good spirits", "grumpy"), ("calm", "hurried"), ("hesitant", "expert"),
    ("learner", "never a spelling"), ("learner", "sayings"), ("learner", "regional"),
    ("learner", "for the record"), ("learner", "dry under"), ("native", "mother tongue"),
    ("fluent", "regional"), ("dry under", "exclamation"), ("dry under", "emoji"),
    ("thinks aloud", "a few words"), ("thinks aloud", "precise"),
    ("asks two", "one thing at a time"), ("chatty", "no small talk"), ("chatty", "short answers"),
    ("businesslike", "haha"), ("warm and informal", "formal, "), ("expert", "no technical words"),
    ("sayings", "businesslike"), ("lists", "one sentence"), ("brackets", "one sentence"),
    ("haha", "no small talk"), ("sayings", "no small talk"), ("new line", "one sentence"),
    ("friendly words", "no small talk"), ("friendly words", "businesslike"),
)  # fmt: skip
"""Parts of phrases that contradict each other: no person has both."""
