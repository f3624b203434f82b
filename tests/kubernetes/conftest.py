"""One cluster for all tests of a worker: a double and players, or the server of
`SYNTH_TEST_KUBECONFIG` with the players that it needs."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage, staged

NODES = "real=1,simulated=2" if unable() is None else "simulated=2"


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with staged(nodes=NODES) as made:
        yield made
