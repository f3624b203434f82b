"""Attempts of a program that has ended, by what it has left in its own sandbox.

Whoever runs commands in one sandbox after another (a build, then tests) must not be told by the
first what the second did.
"""

import contextlib

from records.errors import ItemError
from sandboxes.core.sandbox import ExecResult, Sandbox
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.agent.reaching import HIDDEN
from tests.sandboxes.attacks.attempt import (
    Attempt,
    Play,
    Scene,
    of_group,
    python,
    run_payload,
    walls,
)

DAEMON = """
import os, time
print("tried", flush=True)
ready, done = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(done, b".")
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    end = time.monotonic() + 9
    while time.monotonic() < end:
        for pid in os.listdir("/proc"):
            if pid.isdigit() and int(pid) > 2 and int(pid) != os.getpid():
                try:
                    work(pid)
                except OSError:
                    pass
        time.sleep(0.005)
    os._exit(0)
os.read(ready, 1)  # it has left the group that is killed with this process
os._exit(0)
"""

WORKS = {
    "writing into a later command's output": ("/proc/PID/fd", """
def work(pid):
    fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, WORD)
    os.close(fd)
"""),
    "reading a later command's environment": ("/proc/PID/environ", """
def work(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        if b"KEY=" in (text := file.read()):
            open("/workspace/caught", "wb").write(text)
"""),
    "reading a later command's arguments": ("/proc/PID/cmdline", """
def work(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"--token" in (text := file.read()):
            open("/workspace/caught", "wb").write(text)
"""),
    "reading a later command's memory": ("/proc/PID/mem", """
def work(pid):
    with open(f"/proc/{pid}/maps") as maps:
        line = next(line for line in maps if "[stack]" in line)
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(start)
        if b"KEY=" in (text := memory.read(end - start)):
            open("/workspace/caught", "wb").write(text)
"""),
    "killing a later command": ("kill", """
def work(pid):
    os.kill(int(pid), 9)
"""),
    "a lower limit for a later command": ("prlimit", """
import resource
def work(pid):
    resource.prlimit(int(pid), resource.RLIMIT_FSIZE, (1, 1))
"""),
}  # fmt: skip

LATER = 'sleep 0.4; echo "$KEY" > result; echo "the real result of $(cat result)"'


def left(work: str) -> Play:
    """A command that leaves a process behind, then one that is worth attacking."""

    async def play(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
        (word,) = scene.args
        source = f"import os\nWORD = {word.encode()!r}\n{work}{DAEMON}"
        first = await sandbox.exec(python(source))
        if first.stdout != b"tried\n":
            return f"unclear: {first}"
        command = ["sh", "-c", LATER, "later", "--token", word]
        later = await sandbox.exec(command, env={"KEY": word}, timeout_s=2)
        return await judged(sandbox, later, word)

    return play


async def judged(sandbox: Sandbox, later: ExecResult, word: str) -> str:
    real = f"the real result of {word}\n".encode()
    try:
        caught = word.encode() in await sandbox.read_file("caught")
    except ItemError:
        caught = False
    if caught:
        return f"won {word}"
    if later.stdout != real:
        return f"won {word}: the later command is not what it was"
    return "refused the later command is untouched"


PLANTED = {
    "programs of well-known names": (
        "PATH", "for d in /workspace /tmp /dev/shm; do for n in cat ls env python3; do"
        " printf '#!/bin/sh\\necho planted\\n' > $d/$n; chmod 755 $d/$n; done; done",
        ["ls"], {"PATH": "/workspace:/usr/bin:/bin"}, "commands found on a fixed path"),
    "a module in the working folder": (
        "sys.path", "echo 'print(\"planted\")' > /workspace/json.py",
        ["/usr/bin/python3", "-c", "import json"], {}, "programs of ours run isolated"),
    "settings of the shell": (
        "BASH_ENV", "echo 'echo planted' > /tmp/.bashrc; cp /tmp/.bashrc /tmp/.profile",
        ["bash", "-c", "true"], {"BASH_ENV": "/tmp/.bashrc"}, "an environment of ours alone"),
    "a library to load first": (
        "LD_PRELOAD", "printf 'void __attribute__((constructor)) f(void)"
        "{write(1,\"planted\\\\n\",8);}' > a.c;"
        " cc -w -shared -fPIC -o /workspace/libc.so.6 a.c 2>/dev/null",
        ["ls", "/opt"], {"LD_PRELOAD": "/workspace/libc.so.6"}, "an environment of ours alone"),
}  # fmt: skip
"""Name -> (mechanism, what a first command plants, a later command, what the control gives that one
beside what every command gets, and what is so left out)."""


def planted(script: str, command: list[str], env: dict[str, str]) -> Play:
    async def play(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
        done = await sandbox.exec(["sh", "-c", f"cd /workspace; {script}"])
        if done.exit_code:
            return f"unclear: {done}"
        isolated = command
        if command[0].endswith("python3") and not scene.control:
            isolated = [command[0], "-I", *command[1:]]
        later = await sandbox.exec(isolated, env=env if scene.control else {})
        return "won planted" if b"planted" in later.stdout else "refused what was planted sleeps"

    return play


DESCRIPTORS = """
import os, stat, sys
print("tried", flush=True)
known = os.listdir("/proc/self/fd")
more = [fd for fd in map(int, known) if fd > 2]
for fd in more:
    try:
        found = os.fstat(fd)
    except OSError:  # the one that listed the others
        continue
    print("won descriptor", fd, oct(found.st_mode))
    sys.exit()
print("refused no descriptor but the three")
"""


async def inherited(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """Looks for descriptors that the agent has left open; the control leaves one."""
    command = python(DESCRIPTORS)
    if scene.control:
        command = ["sh", "-c", 'exec 7</etc/passwd; exec "$@"', "sh", *command]
    done = await sandbox.exec(command)
    return done.stdout.decode().splitlines()[-1]


SEARCH = """
SKIPPED = {"/proc", "/usr", "/opt/python"}

def attack():
    names = set()
    with open("/proc/net/unix") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            names |= {words[7]} if len(words) > 7 else set()
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in SKIPPED]
        for name in files:
            path = os.path.join(folder, name)
            try:
                if (os.lstat(path).st_mode & 0o170000) == 0o140000:
                    names.add(path)
            except OSError:
                continue
    for name in sorted(names):
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(name.replace("@", chr(0), 1) if name.startswith("@") else name)
                return "connected to " + name
            except OSError:
                continue
    raise Refused("no socket that answers")
"""

NAMED = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(chr(0) + "agent")
s.listen()
print("ready", flush=True)
time.sleep(30)
"""


async def search(attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """Looks for the agent's socket by every name there is; the control gives one a name."""
    if scene.control:
        agent = await sandbox.open_stdio(python(NAMED))
        await agent.read()
    return await run_payload(attempt, sandbox, scene)


OWN_FILES = ("mem", "environ", "fd/0", "fd/1", "auxv", "pagemap", "syscall", "io")
"""Of /proc/self, which for whoever reads for the host is the agent's."""


async def read_through(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """The host reads a result that is a link to secrets of whoever reads, here of the agent."""
    for number, name in enumerate(OWN_FILES):
        await sandbox.exec(["ln", "-s", f"/proc/self/{name}", f"/workspace/{number}"])
        with contextlib.suppress(ItemError):
            return f"won {len(await sandbox.read_file(str(number)))} bytes of the agent's {name}"
    return "refused nothing of the agent's is read"


async def write_through(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """The host writes where a link leads to settings of whoever writes, here of the agent."""
    for number, name in enumerate(("oom_score_adj", "coredump_filter", "comm")):
        await sandbox.exec(["ln", "-s", f"/proc/self/{name}", f"/workspace/{number}"])
        with contextlib.suppress(ItemError):
            await sandbox.write_file(str(number), b"1000")
            return f"won the agent's {name} is set"
    return "refused nothing of the agent's is written"


attempt, channel = of_group("left behind"), of_group("the host's channel")
ORPHANS = walls("ORPHANS")

ATTEMPTS = [
    *(
        attempt(name, mechanism=mechanism, play=left(work), without=ORPHANS,
                scene=scenes.of(scenes.nonce), refusal="the later command is untouched")
        for name, (mechanism, work) in WORKS.items()
    ),
    *(
        attempt(name, mechanism=mechanism, play=planted(script, command, env), guard=guard,
                refusal="what was planted sleeps")
        for name, (mechanism, script, command, env, guard) in PLANTED.items()
    ),
    channel("descriptors that a command inherits", mechanism="inherited descriptors",
            play=inherited, guard="descriptors closed for commands",
            refusal="no descriptor but the three"),
    channel("a result that is a link to the agent's secrets", mechanism="/proc/self",
            play=read_through, without=HIDDEN, by="agent not dumpable",
            refusal="nothing of the agent's is read"),
    channel("a link to the agent's settings where the host writes", mechanism="/proc/self",
            play=write_through, without=HIDDEN, by="agent not dumpable",
            refusal="nothing of the agent's is written"),
    channel("the agent's socket by its name", mechanism="Unix sockets", payload=SEARCH,
            play=search, guard="a socket without a name inside", refusal="no socket that answers"),
]  # fmt: skip
