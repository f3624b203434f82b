"""Commands in a sandbox of any backend: what comes back, however odd the command."""

import asyncio

import pytest

from records.errors import ItemError
from sandboxes.core.sandbox import ExecResult
from tests.sandboxes.conformance.subjects import Subject


def plainly(code: int, stdout: bytes = b"", stderr: bytes = b"") -> ExecResult:
    return ExecResult(code, stdout, stderr, timed_out=False, truncated=False, out_of_memory=False)


async def test_output_error_input_and_exit_code_come_through(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        done = await sandbox.exec(["sh", "-c", "cat; echo oh >&2; exit 3"], stdin=b"\0\xffhello")
        assert done == plainly(3, b"\0\xffhello", b"oh\n")
        assert await sandbox.exec(["true"], stdin=bytes(3_000_000)) == plainly(0)
        assert await sandbox.exec(["sh", "-c", "exit 255"]) == plainly(255)
        for number in (9, 11, 15):
            killed = await sandbox.exec(["sh", "-c", f"kill -{number} $$"])
            assert killed.exit_code == 128 + number


ODD: dict[str, tuple[list[str], dict[str, str], str | None, int]] = {
    "no command": ([], {}, None, 127),
    "an empty command": ([""], {}, None, 127),
    "a command that is not there": (["no-such-command"], {}, None, 127),
    "a path that is not there": (["/no/such/command"], {}, None, 127),
    "a folder": (["/tmp"], {}, None, 126),
    "a file that is no program": (["/etc/passwd"], {}, None, 126),
    "a zero byte": (["echo", "a\0b"], {}, None, 126),
    "half a character": (["echo", "\ud800"], {}, None, 126),
    "half a character for a command": (["\ud800"], {}, None, 126),
    "too long an argument": (["echo", "x" * 300_000], {}, None, 126),
    "a zero byte in the environment": (["true"], {"A": "a\0b"}, None, 126),
    "half a character in the environment": (["true"], {"A": "\udfff"}, None, 126),
    "no name in the environment": (["true"], {"A=B": "c"}, None, 126),
    "a working folder that is not there": (["true"], {}, "/no/such/folder", 127),
    "a working folder that is a file": (["true"], {}, "/etc/passwd", 126),
    "a zero byte in the working folder": (["true"], {}, "/tmp\0", 126),
}


async def test_what_cannot_be_started_is_a_result_and_no_error(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        for name, (argv, env, cwd, code) in ODD.items():
            done = await sandbox.exec(argv, env=env, cwd=cwd)
            assert done == plainly(code, b"", done.stderr), name
            assert done.stderr.endswith(b"\n"), name
        # a byte that is no character of its own travels as Python writes it
        assert (await sandbox.exec(["printf", "%s", "\udc80é\n"])).stdout == "\udc80é\n".encode(
            errors="surrogateescape"
        )


async def test_much_goes_both_ways_at_once(subject: Subject) -> None:
    data = bytes(range(256)) * (5_000_000 // 256)
    async with subject.sandbox() as sandbox:
        assert await sandbox.exec(["cat"], stdin=data) == plainly(0, data)
        both = await sandbox.exec(["sh", "-c", "tee /dev/stderr </dev/stdin"], stdin=data)
        assert both == plainly(0, data, data)


async def test_output_is_cut_at_its_limit_and_the_beginning_kept(subject: Subject) -> None:
    limits = {"output_bytes": 10_000}
    async with subject.sandbox(limits=limits) as sandbox:
        flood = await sandbox.exec(["sh", "-c", "yes | head -c 20000000; echo also >&2"])
        assert flood == ExecResult(0, b"y\n" * 5_000, b"also\n", False, True, False)
        exact = await sandbox.exec(["head", "-c", "10000", "/dev/zero"])
        assert exact == plainly(0, bytes(10_000))


async def test_at_its_time_limit_a_command_ends_with_what_it_said(subject: Subject) -> None:
    script = "echo before; trap '' TERM INT HUP; sleep 1000 & sleep 1000; echo after"
    async with subject.sandbox() as sandbox:
        cut = await sandbox.exec(["sh", "-c", script], timeout_s=0.3)
        assert cut == ExecResult(137, b"before\n", b"", True, False, False)
        assert (await sandbox.exec(["echo", "alive"])).stdout == b"alive\n"


async def test_many_commands_at_once_each_get_their_own_answer(subject: Subject) -> None:
    async def one(number: int) -> None:
        text = str(number).encode() * 1000
        done = await sandbox.exec(["sh", "-c", f"cat; exit {number}"], stdin=text)
        assert done == plainly(number, text)

    async with subject.sandbox() as sandbox:
        await asyncio.gather(*map(one, range(12)))


async def test_a_command_sees_its_own_environment_and_folder_alone(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_CALLER", "1")
    async with subject.sandbox(env={"OF_TEMPLATE": "a\nb"}) as sandbox:
        seen = await sandbox.exec(["env", "-0"], env={"OF_COMMAND": "é=x"})
        names = dict(line.split("=", 1) for line in seen.stdout.decode().split("\0") if line)
        assert (names["OF_TEMPLATE"], names["OF_COMMAND"]) == ("a\nb", "é=x")
        assert "OF_THE_CALLER" not in names
        assert "OF_COMMAND" not in (await sandbox.exec(["env"])).stdout.decode()
        assert (await sandbox.exec(["pwd"], cwd="/tmp")).stdout == b"/tmp\n"
        here = (await sandbox.exec(["pwd"])).stdout.decode().strip()
        assert here == sandbox.template.workdir


LATER = "sleep 0.6; echo late > late"
LEFT = {
    "in the background": f"({LATER}) &",
    "in a session of its own": f"setsid sh -c '{LATER}' &",
    "a daemon": f"(setsid sh -c '({LATER}) & exit' &);",
    "deaf to signals": f"(trap '' TERM HUP INT; {LATER}) &",
}


async def test_what_a_command_left_running_ends_with_it(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        server = await sandbox.open_stdio(["cat"])  # beside it, nothing may be lost
        for how in LEFT.values():
            done = await sandbox.exec(["sh", "-c", f"{how} echo started"])
            assert done.stdout == b"started\n"
        stopped = asyncio.create_task(sandbox.exec(["sh", "-c", f"echo > begun; {LATER}"]))
        while (await sandbox.exec(["test", "-e", "begun"])).exit_code:
            assert not stopped.done()
        stopped.cancel()
        assert (await asyncio.gather(stopped, return_exceptions=True))[0] is not None
        await sandbox.exec(["sleep", "0.8"])
        with pytest.raises(ItemError, match="late"):
            await sandbox.read_file("late")
        await server.write(b"still here\n")
        assert await server.read() == b"still here\n"
