"""For every problem of the set a computation of its answer that knows nothing of the solution.

Most search, count or integrate; a few use another formula than the solution does.
"""

from collections.abc import Callable
from typing import Any

from tests.synth.rephrasing.answers.algebra import ALGEBRA
from tests.synth.rephrasing.answers.arithmetic import ARITHMETIC
from tests.synth.rephrasing.answers.calculus import CALCULUS
from tests.synth.rephrasing.answers.combinatorics import COMBINATORICS
from tests.synth.rephrasing.answers.geometry import GEOMETRY
from tests.synth.rephrasing.answers.linear_algebra import LINEAR_ALGEBRA
from tests.synth.rephrasing.answers.logic import LOGIC
from tests.synth.rephrasing.answers.number_theory import NUMBER_THEORY
from tests.synth.rephrasing.answers.probability import PROBABILITY
from tests.synth.rephrasing.answers.sequences import SEQUENCES

ANSWERS: dict[str, Callable[[], Any]] = {
    **ALGEBRA,
    **ARITHMETIC,
    **CALCULUS,
    **COMBINATORICS,
    **GEOMETRY,
    **LINEAR_ALGEBRA,
    **LOGIC,
    **NUMBER_THEORY,
    **PROBABILITY,
    **SEQUENCES,
}
