"""Attempts to end, stop or slow the agent, by what a program may do to processes of its user."""

import asyncio

from records.errors import TransientError
from sandboxes.core.sandbox import Sandbox
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group, run_payload, walls

SEND = """
def attack():
    agent = AGENT if os.getppid() == AGENT else os.getppid()  # without a process namespace
    for number in SIGNALS:
        try:
            send(agent, number)
        except PermissionError:
            continue
    return "all signals are sent"
"""

WAYS = {
    "kill": "send = os.kill",
    "tgkill": "send = lambda pid, n: syscall(NUMBERS['tgkill'], pid, pid, n)",
    "rt_sigqueueinfo": """
def send(pid, number):
    info = struct.pack("=iii", number, 0, -1) + bytes(116)
    syscall(NUMBERS["rt_sigqueueinfo"], pid, number, info)
""",
    "rt_tgsigqueueinfo": """
def send(pid, number):
    info = struct.pack("=iii", number, 0, -1) + bytes(116)
    syscall(NUMBERS["rt_tgsigqueueinfo"], pid, pid, number, info)
""",
    "pidfd_send_signal": """
def send(pid, number):
    pidfd = os.pidfd_open(pid)
    try:
        syscall(NUMBERS["pidfd_send_signal"], pidfd, number, None, 0)
    finally:
        os.close(pidfd)
""",
    "kill of a group": "send = os.killpg",
    "F_SETOWN": """
import fcntl
def send(pid, number):
    reader, writer = socket.socketpair()
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, 10, number)  # F_SETSIG
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    writer.send(b"x")  # for which the kernel signals the owner
    reader.close()
    writer.close()
""",
}
"""Ways to send a signal. Each defines send(pid, number)."""

KILL_ALL = """
def attack():
    os.kill(-1, 9)
    return "everything is killed"
"""

LIMIT = """
def attack():
    syscall(NUMBERS["prlimit64"], AGENT, RESOURCE, struct.pack("=QQ", 3, 3), None)
    return "the agent has a limit of 3"
"""

READ_LIMIT = """
def attack():
    limit = ctypes.create_string_buffer(16)
    syscall(NUMBERS["prlimit64"], AGENT, 7, None, limit)
    return f"the agent may open {struct.unpack('=QQ', limit)[0]} files"
"""

BY_CALL = """
def attack():
    WORK
    return "the agent is slower"
"""

OF_USER = """
def attack():
    before = os.getpriority(os.PRIO_PROCESS, AGENT)
    os.setpriority(os.PRIO_USER, 0, 19)
    if os.getpriority(os.PRIO_PROCESS, AGENT) == before:
        raise Refused("the agent is another user's")
    return "the agent comes last"
"""


async def outlived(attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """Whether the agent still answers; the payload may have ended with it."""
    with_it = asyncio.create_task(run_payload(attempt, sandbox, scene))
    try:
        await asyncio.wait_for(with_it, 5)
        async with asyncio.timeout(2):
            done = await sandbox.exec(["echo", "alive"])
    except TransientError:
        return "won the agent is gone"
    except TimeoutError:
        return "won the agent does not answer"
    if not (words := with_it.result()).startswith(("won", "refused")):
        return words
    return "refused the agent lives" if done.stdout == b"alive\n" else f"unclear: {done}"


OWN_USER = walls("HIDDEN_AGENT", "APART")
KILLED = walls("PROCESSES", "APART")
STEERED = OWN_USER | walls("CALLS")
EVERY = "SIGNALS = {*range(1, 65)} - {32, 33}"
"""Two are the C library's own."""

attempt = of_group("the agent's life")


def steered(name: str, mechanism: str, work: str, **more: object) -> Attempt:
    payload = BY_CALL.replace("WORK", work)
    return attempt(
        name, mechanism=mechanism,
        **{"payload": payload, "without": STEERED, "refusal": "EPERM"} | more,
    )  # fmt: skip


RESOURCES = {"processor time": 0, "file size": 1, "open files": 7, "memory": 9, "processes": 6}
IO_CLASS = 'syscall(NUMBERS["ioprio_set"], {}, {}, 3 << 13)'

ATTEMPTS = [
    *(
        attempt(f"every signal to the agent by {way}", mechanism=way, refusal="the agent lives",
                payload=f"{EVERY}\n{source}\n{SEND}", by="process namespace", play=outlived,
                without=KILLED | walls("CALLS"))
        for way, source in WAYS.items()
    ),
    attempt("stopping the agent", mechanism="SIGSTOP", refusal="the agent lives", play=outlived,
            payload=f"SIGNALS = [19, 20, 21, 22]\n{WAYS['kill']}\n{SEND}",
            without=KILLED | walls("CALLS"), by="process namespace"),
    attempt("a signal to all processes", mechanism="kill of all", refusal="the agent lives",
            payload=KILL_ALL, play=outlived, without=OWN_USER,
            kernel="it never goes to process 1; without a process namespace it would go to all of"
            " the machine's"),
    *(
        attempt(f"a limit of the agent's {name}", mechanism="prlimit", refusal="EPERM",
                payload=f"RESOURCE = {number}\n{LIMIT}", without=STEERED)
        for name, number in RESOURCES.items()
    ),
    attempt("reading the agent's limits", mechanism="prlimit", refusal="EPERM",
            payload=READ_LIMIT, without=STEERED),
    steered("the agent last of all", "setpriority", "os.setpriority(os.PRIO_PROCESS, AGENT, 19)"),
    steered("the agent's group last of all", "setpriority",
            "os.setpriority(os.PRIO_PGRP, os.getpgid(AGENT), 19)"),
    attempt("all of the agent's user last", mechanism="setpriority", payload=OF_USER,
            without=STEERED, refusal="EPERM"),
    steered("the agent on an idle schedule", "sched_setscheduler",
            "os.sched_setscheduler(AGENT, os.SCHED_IDLE, os.sched_param(0))"),
    steered("the agent's slice of time", "sched_setattr",
            'syscall(NUMBERS["sched_setattr"], AGENT, '
            'struct.pack("=IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0)'),
    steered("the agent on one processor", "sched_setaffinity",
            "os.sched_setaffinity(AGENT, {min(os.sched_getaffinity(0))})"),
    steered("the agent's disk requests last", "ioprio_set", IO_CLASS.format(1, "AGENT")),
    steered("the disk requests of the agent's user last", "ioprio_set",
            IO_CLASS.format(3, "os.getuid()")),
]  # fmt: skip
