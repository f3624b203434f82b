"""A snapshot is taken whatever the program does meanwhile, or refused for what the program made."""

import asyncio
from collections import Counter

import pytest

from records.errors import ItemError
from sandboxes.core.python_env import base_python
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.leases import lease

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

SMALL = SandboxTemplate(limits=Limits(memory_mb=160, disk_mb=8, processes=40, cpus=2))
RESTLESS = """
import itertools, os, sys
own = sys.argv[1]
kinds = [lambda path: open(path, "wb").write(b"x" * 5000), os.mkdir, os.mkfifo]
kinds.append(lambda path: os.symlink("/", path))
print("begun", flush=True)
for n in itertools.count():
    kinds[n % 4](f"{own}-{n}")
    if n >= 80:
        old = f"{own}-{n - 80}"
        os.rmdir(old) if n % 4 == 1 else os.unlink(old)
"""
"""Makes files, folders, FIFOs and links, and removes those made a while before."""


def test_snapshots_while_everything_changes() -> None:
    async def go() -> Counter[str]:
        became = Counter[str]()
        async with lease(SMALL) as sandbox:
            programs = [
                await sandbox.open_stdio([base_python(), "-c", RESTLESS, str(n)]) for n in range(3)
            ]
            for program in programs:
                assert await program.read() == b"begun\n"
            for _ in range(12):
                try:
                    (await sandbox.snapshot()).remove()
                    became["taken"] += 1
                except ItemError as error:
                    became[error.reason] += 1
                await asyncio.sleep(0.01)
            assert [program.ended for program in programs] == [None] * 3
        return became

    became = asyncio.run(go())
    assert became.total() == 12
    assert became.keys() <= {"taken", "sandbox_file"}
    assert became["taken"]
