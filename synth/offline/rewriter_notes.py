"""Learning notes of a solved problem, by rule: what is asked, one step a line, the answer last."""

import re
from random import Random

from synth.offline.rewriter_forms import next_number
from synth.offline.rewriter_reading import SIGNS, Stretch
from synth.offline.rewriter_wording import reworded

_WANTED = ("**Given and asked.**", "**The task.**", "**What is asked.**")
_ANSWER = ("**Final answer:**", "**Result:**", "**The answer:**")
_BARE = re.compile(rf"[{SIGNS}\s\d.,;=+()/-]{{1,60}}")


def learning_notes(parts: list[Stretch], written: str, rng: Random) -> str:
    """The first paragraph is the task unless something is written already; a paragraph of one
    formula is the answer; what lies between are steps, counted on from what is written."""
    number = next_number(written)
    wanted = rng.choice(_WANTED) if not written.strip() else ""
    blocks: list[str] = []
    for stretch in parts:
        said = [reworded(one, rng) for one in stretch.sentences]
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
            blocks.append("\n".join(f"{number + k}. {one}" for k, one in enumerate(said)))
            number += len(said)
    return "\n\n".join(blocks)
