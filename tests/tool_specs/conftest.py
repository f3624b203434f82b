"""The example domain of these tests: every statement kind, field type and parameter type once."""

from pathlib import Path

import pytest

from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import DomainEnvironment

BIKE_RENTAL = Path(__file__).parent / "fixtures" / "bike_rental.yaml"
CANTEEN = BIKE_RENTAL.parent / "canteen.yaml"
"""A kitchen in which time passes."""


@pytest.fixture(scope="session")
def bikes() -> Domain:
    return load_domain(BIKE_RENTAL)


@pytest.fixture
def environment(bikes: Domain) -> DomainEnvironment:
    return DomainEnvironment.of(bikes)
