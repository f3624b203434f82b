"""Learning notes of worked solutions: steps that follow may be added, wrong ones are found."""

import asyncio
from typing import Any

import pytest

from benchmarks.rewrites import NOTES, RewrittenPart, texts_of
from synth.rephrasing.fidelity.checks import TextKind, fidelity_of, flags_of, verdict
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import instruction
from synth.rephrasing.writing.part_checks import PartChecker
from synth.rephrasing.writing.parts import PartCheck, WrittenPart

SOLUTIONS = [
    part
    for part in texts_of("tuning")
    if part.genre.startswith("mathematics") and part.style == NOTES and part.change is None
]
SHOWN = [f"{part.document}-{part.part}-{n}" for n, part in enumerate(SOLUTIONS)]

STEPS = """

Step 7. To be sure, one works it out with small numbers. The reason is that multiplying comes before
adding, so the product is found first and the sum from it: $2 \\cdot 3 + 1 = 6 + 1 = 7$.

Step 8. The same with a fraction. Both sides are expanded until the denominators agree, and what
stands above is added: $\\frac{1}{2} + \\frac{1}{3} = \\frac{3}{6} + \\frac{2}{6} = \\frac{5}{6}$.
"""


def checked(source: str, rewrite: str) -> PartCheck:
    style = instruction("maths", NOTES)
    llm: Any = None  # no judge is asked
    check = PartChecker(RephraseConfig(judge="none"), llm, "i", source, "maths", style)
    [found] = asyncio.run(check([WrittenPart(1, 0, source, rewrite)], step="part-000"))
    return found


def test_there_are_ten_solutions() -> None:
    assert len(SOLUTIONS) >= 10


@pytest.mark.parametrize("part", SOLUTIONS, ids=SHOWN)
def test_steps_that_follow_are_no_fault(part: RewrittenPart) -> None:
    assert checked(part.source, part.rewrite).fault is None
    found = checked(part.source, part.rewrite + STEPS * 3)
    assert found.fault is None
    assert not {"too_long", "sentence_added", "copied"} & set(found.flags)


@pytest.mark.parametrize("part", SOLUTIONS, ids=SHOWN)
def test_a_wrong_step_is_found(part: RewrittenPart) -> None:
    for right, wrong in (("+ 1 = 7", "+ 1 = 8"), ("\\frac{5}{6}", "\\frac{4}{6}")):
        assert right in STEPS
        found = checked(part.source, part.rewrite + STEPS.replace(right, wrong))
        assert found.fault is not None
        assert (found.fault.reason, found.fault.is_of_fact) == ("formula_changed", True)
        assert "does not hold" in found.fault.words


@pytest.mark.parametrize("part", SOLUTIONS, ids=SHOWN)
def test_the_final_answer_is_checked(part: RewrittenPart) -> None:
    source = f"{part.source}\n\nAnswer: $x = 137$"
    kept = f"{part.rewrite}\n\nFinal answer: $x = 137$"
    assert checked(source, kept).fault is None
    for other in (kept.replace("137", "138"), part.rewrite):
        found = checked(source, other)
        assert found.fault is not None
        assert found.fault.is_of_fact


def test_what_is_no_fault_in_notes_is_one_elsewhere() -> None:
    part = SOLUTIONS[0]
    config = FidelityConfig(max_length=1.2)
    longer = f"{part.source}{STEPS}"
    expected: dict[TextKind, Any] = {"maths": (None, False), "knowledge": ("copied", True)}
    for kind, (copied, flagged) in expected.items():
        same = fidelity_of(part.source, part.source, kind=kind)
        assert verdict(same.columns(), config) == copied
        more = fidelity_of(part.source, longer, kind=kind)
        assert ("too_long" in flags_of(more.columns(), config)) == flagged
