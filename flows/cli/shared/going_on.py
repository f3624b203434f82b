"""What a command that was stopped says at its end: the exact command that goes on.

Commands that run a flow note it on the error that ends them (PEP 678), and `flows.cli.main`, which
knows the command line, prints it. Wrong configuration gets no such note before a run has begun: the
same command would meet it again. After that it is what became of an endpoint meanwhile, such as a
key that was revoked, and once that is mended the same command goes on.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.cli.shared.program import program
from records.errors import ConfigError

SAME_COMMAND = "the same command goes on from here"
"""A note on an error."""

BEGINS_ANEW = "the same command begins anew"
"""A note on an error that ended a command which keeps nothing to go on from."""


@contextmanager
def same_command_goes_on(*, begun: bool = False) -> Iterator[None]:
    """Whatever ends the block says that its command goes on; wrong configuration only in a run that
    has begun, which has committed its start."""
    try:
        yield
    except BaseException as error:
        if begun or not isinstance(error, ConfigError):
            error.add_note(SAME_COMMAND)
        raise


@contextmanager
def same_command_begins_anew() -> Iterator[None]:
    """Whatever ends the block but wrong configuration says that its command begins anew."""
    try:
        yield
    except ConfigError:
        raise
    except BaseException as error:
        error.add_note(BEGINS_ANEW)
        raise


def goes_on(error: BaseException) -> bool:
    """Whether the command that the error ended left something to go on from."""
    return BEGINS_ANEW not in getattr(error, "__notes__", [])


def last_lines(error: BaseException, arguments: Sequence[str]) -> list[str]:
    """What the notes on an error say to the person who gave these arguments."""
    noted: list[str] = getattr(error, "__notes__", [])
    notes = list(dict.fromkeys(noted))
    lines = [note for note in notes if note != SAME_COMMAND]
    if SAME_COMMAND in notes:
        lines.append(f"go on: {shlex.join([*shlex.split(program()), *arguments])}")
    return lines


def retry_failed(number: int, run_id: str, dataset: Path) -> str:
    """How items that are committed as failed are made after all."""
    given = ["resume", run_id, "--retry-failed", "--dataset", str(dataset)]
    items = "1 item" if number == 1 else f"{number} items"
    return f"{items} failed for good; to try again: {program()} {shlex.join(given)}"
