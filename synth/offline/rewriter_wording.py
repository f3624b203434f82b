"""Other words and another order of clauses for one English sentence, its meaning left alone.

A rule is taken only where the sentence's form leaves no doubt; what no rule fits stays as it is.
Formulas, code and quotations are single signs here (`rewriter_reading.Kept`).
"""

import re
from random import Random
from typing import NamedTuple

from synth.offline.rewriter_reading import SIGNS
from synth.offline.words import table

_PHRASES = """
for example > for instance | for instance > for example | however > even so | therefore > hence
thus > hence | hence > therefore | in order to > so as to | such as > like | because > since
although > even though | a number of > several | returns > gives back | return > give back
returned > given back | usually > as a rule | typically > as a rule | creates > makes
create > make | created > made | contains > holds | contain > hold | containing > holding
specified > given | specifies > states | specify > state | obtained > got | obtain > get
allows > permits | allow > permit | allowed > permitted | similar to > much like
instead of > rather than | rather than > instead of | immediately > at once
with respect to > as regards | begins > starts | begin > start | starts > begins
occurs > happens | occur > happen | occurred > happened | evaluated > worked out
provides > offers | provide > offer | provided by > offered by | required > needed
requires > needs | require > need | previously > earlier | previous > earlier
additional > further | entire > whole | multiple > several | note that > observe that
performed > carried out | performs > carries out | perform > carry out | attempts to > tries to
attempt to > try to | attempted > tried | determines > decides | often > in many cases
sometimes > at times | always > in every case | shows > makes plain | used to > employed to
uses > makes use of | using > by means of | via > by way of | simply > just | invoked > called
consists of > is made up of | consist of > are made up of | supported > catered for
supports > caters for | currently > at present | especially > above all
particularly > above all | in particular > above all | depending on > according to
depends on > hangs on | depend on > hang on | ensures > makes sure | ensure > make sure
behavior > behaviour | raised > thrown | raises > throws | raise > throw | changed > altered
describes > tells of | described > told of | otherwise > if not | e.g. > for example
i.e. > that is | inside > within | within > inside | large > big | prior to > before
subsequent > later | as well as > and also | are not > aren't | is not > isn't
does not > doesn't | do not > don't | cannot > can't | so > thus | gives > yields
yields > gives | we get > we obtain | we obtain > we get | exactly > precisely | only > just
whether > if | each > every | compute > work out | calculate > work out | determine > work out
equals > is equal to | put > set | whenever > each time
""".strip()
_TABLE = {
    old.strip(): new.strip()
    for rule in re.split(r"[|\n]", _PHRASES)
    for old, new in [rule.split(" > ")]
}
_UNSAFE_BEFORE = {
    "using": "when |by |of |for |and |or |before |after |without |if |than ",
    "only": "the |an ",
    "multiple": "a |common |least |smallest |every |any ",
    "return": "the |a ",
    "raise": "the |a ",
    "put": "be |is |are |was ",
    "so": "do |does |did |or |and ",
}
_UNSAFE_AFTER = {
    "each": "of|other|is|has",
    "so": "that|far|as|long|on|called|many|much|few|large|small",
    "because": "of",
    "only": "if",
    "used to": "be",
    "raise": "to|a|statement",
    "raised": "to",
    "put": "into|in|on|off",
    "return": "value|values|type|to|from|statement|code",
    "returned": "to",
    "multiple": "of|inheritance",
    "whether": "or",
    "exactly": "when|if",
}
"""Words in whose company a phrase means something else."""


def _rule(old: str) -> re.Pattern[str]:
    before = "".join(f"(?<!{words})" for words in _UNSAFE_BEFORE.get(old, "").split("|") if words)
    after = f"(?! (?:{_UNSAFE_AFTER[old]})\\b)" if old in _UNSAFE_AFTER else ""
    return re.compile(rf"(?<![\w'-]){before}{re.escape(old)}(?![\w'-]){after}", re.IGNORECASE)


_RULES = [_rule(old) for old in sorted(_TABLE, key=len, reverse=True)]
_JOINS = "if|when|unless|because|since|although|while|after|before|once|where"
_FIRST = re.compile(
    rf"({_JOINS})\b ([^,;:]{{8,160}}), (?:then )?(?!and |or |but |nor )([^;:]{{8,}}[^.;:])\.", re.I
)
_LAST = re.compile(r"([^,;:]{12,}?),? (if|when|unless|because|although|once) ([^,;:]{8,})\.")
_BOUND = re.compile(
    r"\b(?:only|even|as|just|but|not|and|or|what|that|than|is|are|be|to|see)$", re.I
)
_PLACE = re.compile(
    rf"([^,;:]{{25,}}) ((?:in|during|at|by|from) (?:the|a|an|this|each) [\w{SIGNS}-]+"
    rf"(?: [\w{SIGNS}-]+)?)\."
)
_TIED = re.compile(
    r"(?:it|its|they|their|them|these|those|this|that|such|he|she|his|her|otherwise|also|then"
    r"|thus|hence|therefore|so|however|but|and|or|first|second|third|finally|next|for|in this"
    r"|here|both|another|other|the former|the latter|as a result|likewise|similarly|again|note"
    r"|see)\b",
    re.I,
)
_PLAIN_FIRST = frozenset(
    table(
        "a an the this that these those it its if when unless because since although while after"
        " before once where in on at by for from with to as each every all any some most many such"
        " there their they we you one no not both how what which who his her our your so then thus"
        " hence therefore note observe only also but and or several other another"
    )
)
_NAMED = re.compile(
    rf"((?:(?:the|a|an|this|each|every|all|any) )?(?:[\w{SIGNS}'-]+ ){{0,3}}[\w{SIGNS}'-]+?) "
    r"(is|are|was|were|can|must|may|has|have|will|should|does|do|returns?|contains?|means?|holds?"
    r"|takes?|gives?|makes?|allows?|provides?)\b",
    re.I,
)
_NO_TOPIC = re.compile(
    r"\b(?:it|they|there|this|that|these|those|you|we|he|she|which|who|if)\b", re.I
)


class Point(NamedTuple):
    """One sentence and what can be said of it."""

    text: str
    topic: str
    """What it is about, as it stands in it: its subject, or some words of it."""
    verb: str
    """After the subject; empty where the topic is no subject."""
    condition: str
    """Of a sentence of the form "if this, that"."""
    outcome: str
    is_tied: bool
    """Speaks of the sentence before it."""


def point_of(sentence: str) -> Point:
    found = _FIRST.fullmatch(sentence)
    conditional = found is not None and found[1].lower() in ("if", "when", "unless")
    condition = f"{found[1].lower()} {found[2]}" if found and conditional else ""
    outcome = upper_first(f"{found[3]}.") if found and conditional else ""
    named = _NAMED.match(sentence)
    topic, verb = (named[1], named[2]) if named else ("", "")
    if not topic or _NO_TOPIC.search(topic):
        topic, verb = _some_words(sentence), ""
    is_tied = bool(_TIED.match(sentence))
    return Point(sentence, lower_first(topic), verb, condition, outcome, is_tied)


def _some_words(sentence: str) -> str:
    """The first few words in a row that carry meaning."""
    runs = re.findall(rf"(?:[\w{SIGNS}'-]+ ?)+", sentence)
    kept: list[str] = []
    for word in " ".join(runs).split():
        if len(word) > 3 or word[0] >= "\U000f0000":
            kept.append(word)
        elif kept:
            break
        if len(kept) == 3:
            break
    return " ".join(kept)


def reworded(sentence: str, rng: Random) -> str:
    """The sentence with its clauses turned round where that is safe, and some words exchanged."""
    if sentence.endswith(":") or len(sentence.split()) < 4:
        return _exchanged(sentence, rng)
    return _exchanged(_turned(sentence, rng), rng)


def _turned(sentence: str, rng: Random) -> str:
    if found := _FIRST.fullmatch(sentence):
        join, clause, rest = found[1].lower(), found[2], found[3]
        if not _TIED.match(rest) and " if " not in rest:
            return upper_first(f"{lower_first(rest)} {join} {clause}.")
        return sentence
    if (found := _LAST.fullmatch(sentence)) and not _BOUND.search(found[1]):
        rest, join, clause = found[1], found[2], found[3]
        if " that " not in rest and " which " not in rest and not _TIED.match(rest):
            return f"{upper_first(join)} {clause}, {lower_first(rest)}."
    if (found := _PLACE.fullmatch(sentence)) and rng.random() < 0.7:
        rest, place = found[1], found[2]
        if not _TIED.match(rest) and not re.search(r"\b(?:of|than|between|defined|as)$", rest):
            return f"{upper_first(place)}, {lower_first(rest)}."
    return sentence


def _exchanged(text: str, rng: Random) -> str:
    """Most of the phrases that the table knows are exchanged, each place once."""
    done: dict[str, str] = {}
    for rule in _RULES:

        def put(found: re.Match[str]) -> str:
            if rng.random() < 0.15:
                return found[0]
            new = _TABLE[found[0].lower()]
            sign = chr(0x100000 + len(done))
            done[sign] = upper_first(new) if found[0][0].isupper() else new
            return sign

        text = rule.sub(put, text)
    return re.sub("[\U00100000-\U0010fffd]", lambda found: done[found[0]], text)


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def lower_first(text: str) -> str:
    """With a small first letter, unless the first word may be a name."""
    word = re.match(r"[A-Za-z]+", text)
    if word and word[0].lower() in _PLAIN_FIRST:
        return text[:1].lower() + text[1:]
    return text


def in_safe_order(points: list[Point], rng: Random) -> list[Point]:
    """Neighbours exchanged where neither they nor what follows speak of what went before."""
    found = list(points)
    k = 0
    while k + 1 < len(found):
        follows_tied = k + 2 < len(found) and found[k + 2].is_tied
        if not (found[k].is_tied or found[k + 1].is_tied or follows_tied) and rng.random() < 0.5:
            found[k], found[k + 1] = found[k + 1], found[k]
            k += 1
        k += 1
    return found
