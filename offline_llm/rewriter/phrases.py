"""Phrases that say the same, and the company in which they do not."""

import re
from random import Random

_PHRASES = """
for example > for instance/to give an example | for instance > for example
however > even so/nevertheless | therefore > hence/for that reason | thus > hence/in this way
hence > therefore/for that reason | in order to > so as to | such as > like/for example
because > since/for the reason that | although > even though | a number of > several
returns > gives back/hands back | return > give back/hand back | returned > given back/handed back
usually > as a rule/mostly | typically > as a rule | creates > makes/sets up
create > make/set up | created > made/set up | contains > holds/comprises
contain > hold/comprise | containing > holding | specified > given/stated | specifies > states
specify > state | obtained > got/arrived at | obtain > get | allows > permits | allow > permit
allowed > permitted | similar to > much like | instead of > rather than/in place of
rather than > instead of | immediately > at once | with respect to > as regards | begins > starts
begin > start | starts > begins | occurs > happens | occur > happen | occurred > happened
evaluated > worked out/computed | provides > offers/furnishes | provide > offer/furnish
provided by > offered by | required > needed/called for | requires > needs | require > need
previously > earlier | previous > earlier | additional > further/extra | entire > whole
multiple > several | note that > observe that | performed > carried out/done
performs > carries out | perform > carry out | attempts to > tries to | attempt to > try to
attempted > tried | determines > decides | often > in many cases | sometimes > at times
always > in every case | shows > makes plain | used to > employed to
uses > makes use of/relies on | using > by means of/with the help of | via > by way of
simply > just | invoked > called | consists of > is made up of | consist of > are made up of
supported > catered for | supports > caters for | currently > at present | especially > above all
particularly > above all | in particular > above all | depending on > according to
depends on > hangs on | depend on > hang on | ensures > makes sure | ensure > make sure
behavior > behaviour | all the > all of the | any > any given | raised > thrown
raises > throws | raise > throw | describes > tells of | described > set out
otherwise > in any other case/failing that | inside > within/in | within > inside/in | large > big
prior to > before | subsequent > later | as well as > and also | are not > aren't | is not > isn't
does not > doesn't | do not > don't | cannot > can't | so > thus/hence | gives > yields/produces
yields > gives/produces | we get > we obtain | we obtain > we get | exactly > precisely/just
only > just/solely | each > every/every single | compute > work out/find | calculate > work out
determine > work out/find out | equals > is equal to | put > set | whenever > each time
which > that | it is > it's | they are > they're | should > ought to
the same > the very same | when > whenever/each time that
used > employed/put to use | useful > of use | new > fresh/newly made
also > likewise/in addition | passed to > handed to/given to | passed as > handed over as
based on > built on | corresponding > matching | corresponds to > matches | correspond to > match
special > particular | certain > particular | normally > as a rule | current > present
in this case > here | in addition > on top of that | as soon as > once | in which > where
such that > so that | due to > owing to | implies > entails | means that > signifies that
refer to > point to | refers to > points to | applies to > holds for | apply to > hold for
results in > leads to | result in > lead to | causes > brings about | caused by > brought about by
appear > turn up | appears > turns up | includes > takes in | include > take in
removed > taken away/taken out | accepts > takes | accept > take | treated as > handled as
until > till/up to when | many > a good many/lots of | some > certain | was not > wasn't
were not > weren't | has not > hasn't | will not > won't | should not > shouldn't
by default > unless told otherwise | consider > take | implemented > realised
implement > realise | implements > realises | written as > put as | kind > sort | kinds > sorts
initially > at first | finally > in the end | supplied > handed in | directly > straight
fully > wholly | completely > wholly | explicitly > in so many words | automatically > by itself
successfully > with success | possible > feasible/conceivable | necessary > needed
notably > above all | nevertheless > even so | mainly > for the most part | purpose > aim
purposes > aims | frequently > in many cases | regardless of > no matter
if > in case/provided that | executed > run/carried out | executes > runs
execute > run/carry out | convenient > handy | equivalent to > the same as
displayed > shown | details > particulars | achieve > reach | extracted > taken
passing > handing | more information > more on this | really > actually | leaving > quitting
placed > put/set | excess > surplus | already > by now | equal to > the same as/no other than
acceptable > fine | match > fit | collected > gathered | originally > at first
possibly > perhaps | enclosed in > put between | separated by > parted by | followed by > and then
usual > customary | except > apart from | effect > result | easily > with ease | merely > just
rarely > seldom | happens > comes about | shown > made plain | begin with > start with
end with > close with | have the same > share the same | available > at hand/on offer
contained > held
""".strip()
_TABLE = {
    old.strip(): tuple(new.strip().split("/"))
    for rule in re.split(r"[|\n]", _PHRASES)
    for old, new in [rule.split(" > ")]
}
_UNSAFE_BEFORE = {
    "attempt to": "an |the |no ",
    "if": "only |even |as |check |whether |see |and |or |determine |but |what |not |know ",
    "match": "a |the |first ",
    "effect": "take |takes |no |in ",
    "usual": "as ",
    "except": "all ",
    "execute": "the |an ",
    "any": "if |not |in |by |at ",
    "using": "when |by |of |for |and |or |before |after |without |if |than ",
    "only": "the |an ",
    "multiple": "a |common |least |smallest |every |any ",
    "return": "the |a ",
    "raise": "the |a ",
    "put": "be |is |are |was ",
    "so": "do |does |did |or |and ",
    "which": ", |in |of |to |for |by |on |from |at |with |as |under |after |through |than ",
    "used": "be |get ",
    "some": "in ",
    "many": "as |how |so |too ",
    "special": "a |no ",
    "new": "a ",
    "current": "a |electric ",
    "consider": "to |not ",
    "accept": "not ",
    "include": "not |to ",
    "certain": "a |be |is ",
    "explicitly": "a |an ",
    "kind": "a |the ",
    "possible": "as |if |where |when |all ",
    "necessary": "if |as |when |where ",
    "it is": "if |as |that |than |what |where ",
    "used to": "get |be ",
    "appear": "not ",
    "refer to": "not |please ",
}
_UNSAFE_AFTER = {
    "uses": "of",
    "if": "any|so|not|and|else|needed|possible|necessary|statement|clause",
    "match": "statement|object|objects",
    "except": "clause|block|for|that",
    "executed": "by",
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
    "any": "of|other|given|more|time|way|longer|one",
    "for instance": "variables?|attributes?|methods?|of|creation",
    "in addition": "to",
    "which": "is|are|of|one|way|to|case",
    "used": "to",
    "it is": "not",
    "they are": "not",
    "should": "not",
    "some": "of",
    "many": "of",
    "also": "see|known",
    "when": "and|or|possible|necessary|needed|not",
    "whenever": "possible|necessary|needed|not",
    "kind": "regards",
    "new": "york|line|in",
    "appears": "to",
    "appear": "to",
    "finally": "clause|block|suite|statement",
    "special": "method|methods|case",
}
"""Words in whose company a phrase means something else."""


_ONLY_FIRST = frozenset({"otherwise", "so"})
"""Words that mean something else where they begin no clause: is otherwise the same, so deep."""

_CLAUSE_BEGINS = re.compile(r"(?:^|[.,;:!?)]) ?$")

_BEFORE = {old: tuple(words.split("|")) for old, words in _UNSAFE_BEFORE.items()}
_AFTER = {old: re.compile(rf" (?:{words})\b", re.I) for old, words in _UNSAFE_AFTER.items()}
_BY_FIRST_WORD: dict[str, list[str]] = {}
for _old in sorted(_TABLE, key=len, reverse=True):
    _BY_FIRST_WORD.setdefault(_old.partition(" ")[0], []).append(_old)
ORDINARY = frozenset(
    phrase.partition(" ")[0] for old, new in _TABLE.items() for phrase in (old, *new)
)
"""Words that begin a phrase here: none of them is a name."""

_WORD = re.compile(r"(?<![\w'-])[A-Za-z]+")
_GOES_ON = re.compile(r"[\w'-]")
_LONGEST_BEFORE = 12
_FEW_WORDS = 5


def exchanged(text: str, rng: Random) -> str:
    """Most of the phrases that the table knows are exchanged, each place once. A capital inside the
    sentence may be part of a title, which stays; so does a sentence of few words."""
    words = list(_WORD.finditer(text))
    if len(words) < _FEW_WORDS:
        return text
    said: list[str] = []
    at = 0
    for word in words:
        start = word.start()
        old = _phrase_at(text, start, word[0].lower()) if start >= at else None
        is_title = start > 0 and word[0][0].isupper()
        if old is None or is_title or rng.random() < 0.15:
            continue
        new = rng.choice(_TABLE[old])
        said += [text[at:start], upper_first(new) if word[0][0].isupper() else new]
        at = start + len(old)
    return "".join([*said, text[at:]])


def _phrase_at(text: str, start: int, first: str) -> str | None:
    """The longest phrase of the table that begins here, None where none is safe."""
    for old in _BY_FIRST_WORD.get(first, ()):
        end = start + len(old)
        if text[start:end].lower() != old or _GOES_ON.match(text, end):
            continue
        before = text[max(0, start - _LONGEST_BEFORE) : start].lower()
        if old in _ONLY_FIRST and not _CLAUSE_BEGINS.search(before):
            continue
        after = _AFTER.get(old)
        if not before.endswith(_BEFORE.get(old, ())) and not (after and after.match(text, end)):
            return old
    return None


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
