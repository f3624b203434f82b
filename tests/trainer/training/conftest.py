import json
from pathlib import Path

import pytest

from tests.trainer.small_run import rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where matplotlib is not installed: half a second a run that tests of other things save."""
    monkeypatch.setattr("trainer.training.curves.can_draw", lambda: False)
