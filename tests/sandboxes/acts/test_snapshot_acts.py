"""A snapshot is taken whatever the program does meanwhile, or refused for what the program made."""

import asyncio
from collections import Counter

import pytest

from records.errors import ItemError
from sandboxes.core.python_env import base_python
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.leases import lease

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

SMALL = SandboxTemplate(limits=Limits(memory_mb=160, disk_mb=8, processes=40))
RESTLESS = """
import os, random, sys
draw = random.Random(int(sys.argv[1]))
print("begun", flush=True)
while True:
    name = f"{draw.randrange(20)}/{draw.randrange(20)}"
    try:
        match draw.randrange(8):
            case 0: os.makedirs(os.path.dirname(name), exist_ok=True)
            case 1: open(name, "wb").write(bytes(draw.randrange(1 << 16)))
            case 2: os.unlink(name)
            case 3: os.rename(name, f"{draw.randrange(20)}/{draw.randrange(20)}")
            case 4: os.symlink("/", name)
            case 5: os.mkfifo(name)
            case 6: os.chmod(name, draw.choice((0, 0o777)))
            case 7: os.rmdir(os.path.dirname(name))
    except OSError:
        pass
"""


def test_snapshots_while_everything_changes() -> None:
    async def go() -> Counter[str]:
        became = Counter[str]()
        async with lease(SMALL) as sandbox:
            programs = [
                await sandbox.open_stdio([base_python(), "-c", RESTLESS, str(n)]) for n in range(3)
            ]
            for program in programs:
                assert await program.read() == b"begun\n"
            for _ in range(30):
                try:
                    (await sandbox.snapshot()).remove()
                    became["taken"] += 1
                except ItemError as error:
                    became[error.reason] += 1
                await asyncio.sleep(0.01)
            assert [program.ended for program in programs] == [None] * 3
        return became

    became = asyncio.run(go())
    assert became.total() == 30
    assert became.keys() <= {"taken", "sandbox_file"}
    assert became["taken"]
