"""The models of these tests are tiny: a second thread costs more than it gives, and where other
processes have the cores, waiting for it makes an operation take twenty times as long."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where matplotlib is not installed: half a second a run that tests of other things save."""
    monkeypatch.setattr("trainer.training.curves.can_draw", lambda: False)
