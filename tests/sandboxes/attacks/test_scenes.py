"""What is attacked holds what is said of it, and nothing of the process that plays the attempts."""

import os
from pathlib import Path

import pytest

from sandboxes.local.users import apart
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import complaint, is_root, play
from tests.sandboxes.attacks.outside import processes


def test_a_bystander_has_nothing_open_of_the_callers() -> None:
    with scenes.bystander() as (pid, file, _):
        opened = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    pipes = {name for name in opened if name.startswith("pipe:")}
    assert opened - pipes == {"/dev/null", str(file)}
    assert len(pipes) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_line_of_a_log_is_not_taken_for_what_was_stolen(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever else a worker runs logs to its descriptor 2, which is a file that can be read."""
    taking = next(a for a in processes.ATTEMPTS if a.name == "a host's process, its descriptors")
    os.write(2, b"a line of a log\n")
    outcome = play(taking)
    if not outcome.contained:
        pytest.skip(outcome.control)
    assert complaint(taking, outcome, root=is_root(), users=apart() is None) is None
    assert capfd.readouterr().err == "a line of a log\n"
