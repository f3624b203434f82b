"""What a command that was stopped says at its end: the exact command that goes on.

Commands that run a flow note it on the error that ends them (PEP 678), and `flows.cli.main`, which
knows the command line, prints it. Wrong configuration gets no such note: the same command would
meet it again.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.cli.shared.program import program
from records.errors import ConfigError

SAME_COMMAND = "the same command goes on from here"
"""A note on an error."""


@contextmanager
def same_command_goes_on() -> Iterator[None]:
    """Whatever ends the block but wrong configuration says that its command goes on."""
    try:
        yield
    except ConfigError:
        raise
    except BaseException as error:
        error.add_note(SAME_COMMAND)
        raise


def last_lines(error: BaseException, arguments: Sequence[str]) -> list[str]:
    """What the notes on an error say to the person who gave these arguments."""
    notes = dict.fromkeys(getattr(error, "__notes__", ()))
    lines = [note for note in notes if note != SAME_COMMAND]
    if SAME_COMMAND in notes:
        lines.append(f"go on: {shlex.join([*shlex.split(program()), *arguments])}")
    return lines


def retry_failed(number: int, run_id: str, dataset: Path) -> str:
    """How items that are committed as failed are made after all."""
    given = ["resume", run_id, "--retry-failed", "--dataset", str(dataset)]
    items = "1 item" if number == 1 else f"{number} items"
    return f"{items} failed for good; to try again: {program()} {shlex.join(given)}"
