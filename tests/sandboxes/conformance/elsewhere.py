"""Another process of the same user: `python -m tests.sandboxes.conformance.elsewhere` and the name
of a subject, what to do, and with what."""

import asyncio
import json
import sys
from pathlib import Path

from sandboxes.core.stdio import Ended
from tests.sandboxes.conformance.subjects import SUBJECTS, Subject

ROOT = Path(__file__).parents[3]

WORK = "echo begun; while ! test -e go; do sleep 0.02; done; echo did it >> done; cat done; exit 5"
"""A command that ends once there is a file `go`."""


async def own(subject: Subject, linger_s: str) -> None:
    """Hold a sandbox in which a command runs, until this process is killed."""
    async with subject.sandbox(linger_s=float(linger_s)) as sandbox:
        work = asyncio.create_task(sandbox.exec(["sh", "-c", WORK]))
        await sandbox.ping()
        say(sandbox.name)
        await work
        await asyncio.sleep(1000)


async def adopt(subject: Subject, name: str) -> None:
    """Tell what runs in a sandbox at its adoption: output and exit code of each, once it ended."""
    sandbox = await subject.backend.adopt(name)
    found = []
    await sandbox.write_file("go", b"")
    for process in sandbox.running():
        parts = []
        while data := await process.read():
            parts.append(data)
        ended = process.ended
        assert isinstance(ended, Ended)
        found.append([b"".join(parts).decode(), ended.exit_code])
    await sandbox.exec(["sh", "-c", "echo adopted > adopted"])
    await sandbox.leave()
    say(json.dumps(found))


async def names(subject: Subject) -> None:
    for found in await subject.backend.list():
        say(f"{found.name} {found.owner_alive} {found.adoptable}")


async def destroy(subject: Subject, name: str) -> None:
    await subject.backend.destroy(name)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def start(subject: Subject, *words: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tests.sandboxes.conformance.elsewhere", subject.name, *words]
    return await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )


async def output(subject: Subject, *words: str) -> str:
    """What one of the functions above says."""
    process = await start(subject, *words)
    out, _ = await process.communicate()
    assert process.returncode == 0, words
    return out.decode()


if __name__ == "__main__":
    does = {each.__name__: each for each in (own, adopt, names, destroy)}
    asyncio.run(does[sys.argv[2]](SUBJECTS[sys.argv[1]](), *sys.argv[3:]))
