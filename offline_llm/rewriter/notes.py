"""Learning notes of a solved problem, by rule: what is asked, one step a line, the answer last."""

import re
from collections.abc import Sequence
from random import Random

from offline_llm.rewriter.forms import next_number
from offline_llm.rewriter.phrases import upper_first
from offline_llm.rewriter.reading import SIGNS, Stretch
from offline_llm.rewriter.wording import lower_first, reworded

_WANTED = ("**Given and asked:**", "**The task:**", "**What is asked:**")
_ANSWER = ("**Final answer:**", "**Result:**", "**The answer:**")
_DENIES = re.compile(r"\b(?:not|no|none|neither|never)\b", re.I)
_CONCLUDES = re.compile(r"; |, (?=(?:so(?! that)|hence|thus|therefore) )")
_KINDS = {
    "Conclusion|It follows|Result so far|We see": r"so|hence|thus|therefore|it follows",
    "Check|Test|To be sure|Looking back": r"indeed|as a check|check|in fact",
    "Calculation|Working|Algebra|Reckoning": r"\w+ing|add|subtract|multiply|divide|expand",
    "Substitution|Putting in|New names|Setting up": r"insert|put|set|let|replace",
    "Case|Looking at this|Here|In detail": r"if|for|when|with|in|of",
    "Known|Fact|What holds|Note": r"the|a|an|there|this|these|each|every|all|its|it",
}
"""Names of a kind of step, of which notes use one, and the words that begin such a step."""
_FIRST_WORDS = [re.compile(rf"(?:{words})\b", re.I) for words in _KINDS.values()]
_BARE = re.compile(rf"[{SIGNS}\s\d.,;=+()/-]{{1,60}}")


def learning_notes(parts: list[Stretch], written: str, rng: Random) -> str:
    """The first paragraph is the task unless something is written already; a paragraph of one
    formula is the answer; what lies between are steps, counted on from what is written."""
    number = next_number(written)
    wanted = rng.choice(_WANTED) if not written.strip() else ""
    names = [rng.choice(alike.split("|")) for alike in _KINDS]
    blocks: list[str] = []
    for stretch in parts:
        said = [reworded(one, rng) for one in _taken_apart(stretch)]
        if stretch.kind == "structure":
            blocks.append(stretch.text)
        elif stretch.kind == "prose" and wanted:
            blocks.append(" ".join([wanted, *said]))
            wanted = ""
        elif stretch.kind == "prose" and _BARE.fullmatch("".join(said)):
            blocks.append(f"{rng.choice(_ANSWER)} {said[0]}")
        elif stretch.kind == "bullet":
            blocks.append(stretch.mark + " ".join(said))
        else:
            steps = (f"{number + k}. {_named(one, names)}" for k, one in enumerate(said))
            blocks.append("\n".join(steps))
            number += len(said)
    return "\n\n".join(blocks)


def _taken_apart(stretch: Stretch) -> list[str]:
    """One thought a sentence: cut where a semicolon or a conclusion begins another, unless what is
    denied in one half would be missed in the other."""
    cut = [
        half
        for one in stretch.sentences
        for half in ([one] if _DENIES.search(one) else _CONCLUDES.split(one))
    ]
    return [
        one if one.endswith((".", ":", "?", "!")) else f"{one}." for one in map(upper_first, cut)
    ]


def _named(step: str, names: Sequence[str]) -> str:
    """The step with what kind of step it is, by its first words, where these tell."""
    for name, words in zip(names, _FIRST_WORDS, strict=True):
        if words.match(step):
            return f"{name}: {lower_first(step)}"
    return step
