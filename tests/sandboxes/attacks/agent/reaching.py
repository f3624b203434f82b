"""Attempts to reach into the agent: its memory, its descriptors, what /proc tells of it."""

from tests.sandboxes.attacks.attempt import Attempt, of_group, walls

READ_MEMORY = """
def attack():
    with open(f"/proc/{AGENT}/mem", "rb", 0) as memory, open(f"/proc/{AGENT}/maps") as maps:
        memory.seek(int(maps.read().partition("-")[0], 16))
        return f"{len(memory.read(16))} bytes of the agent"
"""

WRITE_MEMORY = """
def attack():
    with open(f"/proc/{AGENT}/maps") as maps:
        line = next(line for line in maps if "[stack]" in line)
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    with open(f"/proc/{AGENT}/mem", "r+b", 0) as memory:
        memory.seek(end - 16)
        word = memory.read(16)
        memory.seek(end - 16)
        memory.write(word)
    return "the agent's stack is written"
"""

VECTOR = """
def attack():
    buffer = ctypes.create_string_buffer(16)
    local = struct.pack("=QQ", ctypes.addressof(buffer), 16)
    remote = struct.pack("=QQ", 4096, 16)
    try:
        syscall(NUMBERS[CALL], AGENT, local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:  # nothing is mapped there, found out after the check
            raise
    return "the agent's memory is open"
"""

TRACE = """
def attack():
    syscall(NUMBERS["ptrace"], REQUEST, AGENT, None, None)
    os.waitpid(AGENT, 0x40000000) if REQUEST == 16 else None
    return "the agent is traced"
"""

STEAL = """
def attack():
    pidfd = os.pidfd_open(AGENT)
    found = []
    for number in range(64):
        try:
            found.append(syscall(NUMBERS["pidfd_getfd"], pidfd, number, 0))
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
    return f"{len(found)} descriptors of the agent"
"""

OPEN_ALL = """
def attack():
    names = os.listdir(f"/proc/{AGENT}/fd")
    return f"{len(names)} descriptors, " + " ".join(
        os.readlink(f"/proc/{AGENT}/fd/{name}") for name in names)
"""

WRITE_ALL = """
def attack():
    opened = 0
    for name in os.listdir(f"/proc/{AGENT}/fd"):
        try:
            os.close(os.open(f"/proc/{AGENT}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK))
            opened += 1
        except OSError:  # sockets cannot be opened, pipes and files can
            continue
    return f"{opened} descriptors of the agent open for writing"
"""

READ_FILE = """
def attack():
    with open(f"/proc/{AGENT}/" + NAME, "rb") as file:
        return f"{len(file.read(4096))} bytes"
"""

READ_LINK = """
def attack():
    return os.readlink(f"/proc/{AGENT}/" + NAME)
"""

LIST = """
def attack():
    return " ".join(os.listdir(f"/proc/{AGENT}/" + NAME)) or "an empty folder"
"""

WRITE_FILE = """
def attack():
    with open(f"/proc/{AGENT}/" + NAME, "w") as file:
        file.write(TEXT)
    return "written"
"""

OF_A_THREAD = """
def attack():
    with open(f"/proc/{AGENT}/task/{AGENT}/mem", "rb", 0):
        return "the agent's memory, by its thread"
"""

COMPARE = """
def attack():
    syscall(NUMBERS["kcmp"], AGENT, os.getpid(), 0, 0, 0)
    return "descriptors compared with the agent's"
"""

ROBUST = """
def attack():
    head, size = ctypes.c_void_p(), ctypes.c_size_t()
    syscall(NUMBERS["get_robust_list"], AGENT, ctypes.byref(head), ctypes.byref(size))
    return f"an address in the agent's memory, {head.value}"
"""

WATCH = """
def attack():
    kind = struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x61) + bytes(64)
    return f"counters of the agent, {syscall(NUMBERS['perf_event_open'], kind, AGENT, -1, -1, 0)}"
"""

PAGES = """
def attack():
    address, status = ctypes.c_void_p(4096), ctypes.c_int()
    syscall(NUMBERS["move_pages"], AGENT, 1, ctypes.byref(address), None, ctypes.byref(status), 0)
    return f"a page of the agent, status {status.value}"
"""

MIGRATE = """
def attack():
    node = ctypes.c_ulong(1)
    syscall(NUMBERS["migrate_pages"], AGENT, 2, ctypes.byref(node), ctypes.byref(node))
    return "the agent's pages are moved"
"""

ADVISE = """
def attack():
    pidfd = os.pidfd_open(AGENT)
    vector = struct.pack("=QQ", 0, 0)
    syscall(NUMBERS["process_madvise"], pidfd, vector, 1, 20, 0)  # MADV_COLD
    return "the agent's pages are judged"
"""

RELEASE = """
def attack():
    syscall(NUMBERS["process_mrelease"], os.pidfd_open(AGENT), 0)
    return "the agent's memory is taken back"
"""

ENTER = """
def attack():
    syscall(NUMBERS["setns"], os.pidfd_open(AGENT), 0x20000000)  # CLONE_NEWPID
    return "in the agent's namespace"
"""

RUN_IT = """
def attack():
    done = os.spawnv(os.P_WAIT, f"/proc/{AGENT}/exe", ["agent", "-I", "-S", "-c", ""])
    if done == 127:
        with open(f"/proc/{AGENT}/exe", "rb"):
            pass
    return f"the agent's program ran and left {done}"
"""

HIDDEN = walls("HIDDEN_AGENT", "USER")
"""Whoever makes it, the agent and the program then are one user."""
TRACED = HIDDEN | walls("CALLS")
RIGHTS = walls("CAPABILITIES")
attempt = of_group("the host's channel")


def hidden(name: str, mechanism: str, payload: str, **more: object) -> Attempt:
    """What /proc lets nobody do whom the agent is hidden from."""
    return attempt(
        name, mechanism=mechanism, payload=payload,
        **{"refusal": "EACCES", "without": HIDDEN, "by": "agent not dumpable"} | more,
    )  # fmt: skip


def by_call(name: str, call: str, payload: str, **more: object) -> Attempt:
    return attempt(
        name, mechanism=call, payload=payload,
        **{"refusal": "EPERM", "without": TRACED, "by": "system call filter"} | more,
    )  # fmt: skip


def named(payload: str, name: str, text: str = "") -> str:
    return f"NAME, TEXT = {name!r}, {text!r}\n{payload}"


ATTEMPTS = [
    hidden("reading the agent's memory", "/proc/PID/mem", READ_MEMORY),
    hidden("writing the agent's memory", "/proc/PID/mem", WRITE_MEMORY),
    hidden("the agent's memory by its thread", "/proc/PID/task", OF_A_THREAD),
    hidden("where the agent's memory lies", "/proc/PID/maps", named(READ_FILE, "maps")),
    hidden("the agent's pages", "/proc/PID/pagemap", named(READ_FILE, "pagemap")),
    hidden("the agent's auxiliary vector", "/proc/PID/auxv", named(READ_FILE, "auxv")),
    hidden("the agent's environment", "/proc/PID/environ", named(READ_FILE, "environ")),
    hidden("what the agent reads and writes", "/proc/PID/io", named(READ_FILE, "io")),
    hidden("the agent's system calls", "/proc/PID/syscall", named(READ_FILE, "syscall")),
    hidden("the agent's descriptors, listed", "/proc/PID/fd", OPEN_ALL),
    hidden("the agent's descriptors, opened", "/proc/PID/fd", WRITE_ALL),
    hidden("positions of the agent's descriptors", "/proc/PID/fdinfo", named(LIST, "fdinfo")),
    hidden("the agent's mapped files", "/proc/PID/map_files", named(LIST, "map_files")),
    hidden("the agent's program", "/proc/PID/exe", named(READ_LINK, "exe")),
    hidden("the agent's program, run", "/proc/PID/exe", RUN_IT),
    hidden("the agent's folder", "/proc/PID/cwd", named(LIST, "cwd")),
    hidden("the agent's root", "/proc/PID/root", named(LIST, "root")),
    hidden("the agent's namespaces", "/proc/PID/ns", named(READ_LINK, "ns/pid")),
    hidden("forgetting what the agent has used", "/proc/PID/clear_refs",
           named(WRITE_FILE, "clear_refs", "1")),
    hidden("the agent dies first when memory runs out", "/proc/PID/oom_score_adj",
           named(WRITE_FILE, "oom_score_adj", "1000")),
    hidden("the agent's dumps", "/proc/PID/coredump_filter",
           named(WRITE_FILE, "coredump_filter", "0x33")),
    by_call("the agent's robust futexes", "get_robust_list", ROBUST),
    by_call("reading the agent's memory by process_vm_readv", "process_vm_readv",
            f"CALL = 'process_vm_readv'\n{VECTOR}", as_root=True),
    by_call("writing the agent's memory by process_vm_writev", "process_vm_writev",
            f"CALL = 'process_vm_writev'\n{VECTOR}", as_root=True),
    by_call("tracing the agent", "ptrace", f"REQUEST = 0x4206\n{TRACE}"),
    by_call("stopping the agent by tracing it", "ptrace", f"REQUEST = 16\n{TRACE}"),
    by_call("taking the agent's descriptors", "pidfd_getfd", STEAL),
    by_call("comparing descriptors with the agent's", "kcmp", COMPARE),
    by_call("counting what the agent does", "perf_event_open", WATCH),
    by_call("asking for the agent's pages", "move_pages", PAGES),
    by_call("moving the agent's pages", "migrate_pages", MIGRATE),
    by_call("judging the agent's pages", "process_madvise", ADVISE, as_root=True,
            without=TRACED | RIGHTS),
    by_call("taking the agent's memory back", "process_mrelease", RELEASE,
            kernel="it is taken of processes that are dying"),
    by_call("entering the agent's namespaces", "setns", ENTER, as_root=True,
            without=TRACED | RIGHTS),
]  # fmt: skip
