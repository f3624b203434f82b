"""Little words of English that tell nothing about what a sentence says."""

_WORDS = (
    "a an the this that these those it its itself they them their he him his she her we us our you"
    " your i me my one ones is are was were be been being am do does did done have has had having"
    " will would shall should can could may might must and or but if then else so as than of in on"
    " at by for from to into onto with within about over under through between among during also"
    " very too just only such some any each every all both other another same own more most much"
    " many few there here when where while which who whom whose what why how because since though"
    " although however therefore thus hence yet still even again further once up down out off per"
    " via et al etc e.g i.e let us get gets got make makes made take takes use uses used using"
    " question answer note"
)
_NEGATING = "not no never none nothing nobody neither nor cannot without hardly don't doesn't isn't"
NEGATIONS = frozenset(_NEGATING.split())
"""They decide what a sentence says, but not which sentence it is."""

STOPWORDS = frozenset(_WORDS.split()) | NEGATIONS
