"""How the offline model speaks of what was done."""

import pytest

from offline_llm.reading.wording import past


@pytest.mark.parametrize(
    ("verb", "participle"),
    [
        ("enrol", "enrolled"), ("label", "labelled"), ("mail", "mailed"), ("pool", "pooled"),
        ("plan", "planned"), ("open", "opened"), ("carry", "carried"), ("move", "moved"),
        ("sell", "sold"), ("transfer", "transferred"), ("offer", "offered"),
    ],
)  # fmt: skip
def test_participles(verb: str, participle: str) -> None:
    assert past(verb) == participle
