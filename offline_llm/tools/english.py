"""English for names and descriptions made from identifiers."""

from collections.abc import Sequence

from offline_llm.reading.words import joined

_PLURALS = {"person": "people", "child": "children", "staff": "staff", "equipment": "equipment"}
_PLURALS |= {"thesis": "theses", "axis": "axes", "analysis": "analyses", "basis": "bases"}
_PREPOSITIONS = ("to", "into", "for", "from", "on", "as", "under", "out", "in", "off", "back")

_PARTICLES = ("up", "down", "over", "away", "through", "aside", "ahead", "apart", "again", "by")
_LINKS = frozenset({"of", "the", "with", "by", "from", "for", "that"})


def spaced(name: str) -> str:
    return name.replace("_", " ")


def plural(name: str) -> str:
    """Of the last word of an identifier or phrase."""
    cut = max(name.rfind("_"), name.rfind(" ")) + 1
    head, word = name[:cut], name[cut:]
    if word in _PLURALS:
        return head + _PLURALS[word]
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u"):
        return head + word[:-1] + "ies"
    if word.endswith(("s", "x", "ch", "sh", "z")):
        return head + word + "es"
    return head + (word[:-1] + "ves" if word.endswith(("elf", "alf", "oaf")) else word + "s")


def singular(name: str) -> str:
    """Of a plural as identifiers have them."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("shes", "ches", "xes", "sses")):
        return name[:-2]
    return name.removesuffix("s")


def article(words: str) -> str:
    """With `a` or `an`."""
    sounds = words.startswith(("a", "e", "i", "o", "u", "hour", "heir"))
    mute = words.startswith(("uni", "use", "usa", "one", "eu"))
    return f"an {words}" if sounds and not mute else f"a {words}"


def verb_noun(verb: str, noun: str) -> str:
    """Of `return_to_service` and `van`: `return_van_to_service`; `report_fault_of_van`."""
    parts = verb.split("_")
    if noun in verb or parts[-1] == noun.split("_")[-1]:
        return verb
    if len(parts) == 2 and parts[0] in ("mark", "declare") and parts[1] not in _PREPOSITIONS:
        return f"{parts[0]}_{noun}_{parts[1]}"
    for place, part in enumerate(parts[1:], 1):
        if part in _PREPOSITIONS and place < len(parts) - 1:
            return "_".join([*parts[:place], noun, *parts[place:]])
    ends = len(parts) == 1 or parts[-1] in (*_PREPOSITIONS, *_PARTICLES)
    return f"{verb}_{noun}" if ends else f"{verb}_of_{noun}"


def sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def listed(names: Sequence[str], last: str = "and") -> str:
    return joined(list(names), last)


def shortened(name: str) -> str:
    """A name of over six words without the links that it can be read without, last ones first."""
    words = name.split("_")
    for place in range(len(words) - 2, 1, -1):  # the verb and the end stay
        if len(words) > 6 and words[place] in _LINKS:
            del words[place]
    return "_".join(words)
