"""A folder that appears whole or not at all, also under kill -9 and a full disk."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from records.errors import ConfigError
from records.files import TEMPORARY, make_folder, sync_folder, write_error


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out`, renamed to it at the end; removed when anything fails.

    Whoever writes into it syncs what it writes. What a killed writer left of the same folder is
    removed first. ConfigError when `out` exists.
    """
    out = out.absolute()
    if os.path.lexists(out):
        raise ConfigError(f"{out} exists already; name a folder that does not, or remove it")
    make_folder(out.parent)
    _sweep(out)
    temporary = out.with_name(f"{TEMPORARY}{secrets.token_hex(6)}-{out.name}")
    try:
        temporary.mkdir()
        handle = os.open(temporary, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # tells a sweep that its writer lives
            yield temporary
            for folder, _, _ in os.walk(temporary):
                sync_folder(Path(folder))
            temporary.rename(out)
            sync_folder(out.parent)
        finally:
            os.close(handle)
    except OSError as error:
        raise write_error(out, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sweep(out: Path) -> None:
    """Remove temporary folders of writers that are gone."""
    for left in out.parent.glob(f"{TEMPORARY}*"):
        if left.name.split("-", 2)[2:] != [out.name]:
            continue
        handle = os.open(left, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(handle)
