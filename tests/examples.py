"""How many examples a property test draws: its own number, or a share of it in the fast suite.

Hypothesis' profiles set the default of tests that name no number. Those that do say
`settings(max_examples=examples(250))`, so that one profile rules both.
"""

from hypothesis import settings

USUAL = 100
"""Hypothesis' own default."""

FAST = 20

settings.register_profile("usual", deadline=None)  # no test asserts a time
settings.register_profile("fast", settings.get_profile("usual"), max_examples=FAST)
settings.load_profile("usual")


def examples(number: int) -> int:
    """`number` under the usual profile, a fifth of it, but 5 at least, under `fast`."""
    default: int = settings().max_examples
    return min(number, max(5, number * default // USUAL))
