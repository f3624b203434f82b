"""What a neighbour does while it is attacked: a program that uses a little of everything."""

from tests.sandboxes.attacks.attempt import NUMBERS

WORK = (
    f"NUMBERS = {NUMBERS}"
    + r"""
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p

def call(function, *arguments):
    result = function(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def inotify():
    fd = call(libc.inotify_init1, 0)
    for folder in (b"/workspace", b"/tmp"):
        call(libc.inotify_add_watch, fd, folder, 0x100)  # IN_CREATE
    os.close(os.open("/workspace/watched", os.O_CREAT))
    assert b"watched" in os.read(fd, 4096), "another event"
    os.unlink("/workspace/watched")
    os.close(fd)

def terminal():
    ours, theirs = os.openpty()
    os.write(ours, b"typed\n")
    assert os.read(theirs, 99) == b"typed\n", "another line"
    os.close(ours), os.close(theirs)

def pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    assert os.write(writer, bytes(60_000)) == 60_000, "it takes less than usual"
    os.close(reader), os.close(writer)

def signals():
    class Value(ctypes.Union):
        _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]
    signal.pthread_sigmask(signal.SIG_BLOCK, [50])
    for _ in range(10):
        call(libc.sigqueue, os.getpid(), 50, Value(7))
    for _ in range(10):
        assert signal.sigtimedwait([50], 1).si_signo == 50, "none came"

def timer():
    ident = ctypes.c_void_p()
    call(libc.timer_create, 1, None, ctypes.byref(ident))
    call(libc.timer_delete, ident)

def descriptors():
    one, two = socket.socketpair()
    for _ in range(10):
        socket.send_fds(one, [b"x"], [0, 1])
    for fd in socket.recv_fds(two, 1, 2)[1]:
        os.close(fd)
    one.close(), two.close()

def locks():
    with open("/workspace/lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

def children():
    for _ in range(5):
        if (child := os.fork()) == 0:
            os._exit(7)
        assert os.waitpid(child, 0)[1] == 7 << 8, "it ended in another way"

def shared_memory():
    ident = call(libc.shmget, 0, 65536, 0o1600)
    call(libc.shmctl, ident, 0, None)

def locked_memory():
    ident = call(libc.shmget, 0, 65536, 0o1600)
    try:
        call(libc.shmctl, ident, 11, None)  # SHM_LOCK
    finally:
        call(libc.shmctl, ident, 0, None)

def message():
    call(libc.msgctl, call(libc.msgget, 0, 0o1600), 0, None)

def semaphore():
    call(libc.semctl, call(libc.semget, 0, 5, 0o1600), 0, 0)

def server():
    with socket.create_server(("127.0.0.1", 8080)) as s:
        with socket.create_connection(("127.0.0.1", 8080)) as mine, s.accept()[0] as theirs:
            mine.sendall(b"hello")
            assert theirs.recv(9) == b"hello", "other words"

def abstract_name():
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(chr(0) + "service")

def disk():
    with open("/tmp/file", "wb") as file:
        file.write(bytes(2_000_000))
    os.unlink("/tmp/file")

def memory():
    block = mmap.mmap(-1, 8_000_000)
    block.write(b"x" * 8_000_000)
    block.close()

def files():
    for fd in [os.open("/usr/bin/env", os.O_RDONLY) for _ in range(100)]:
        os.close(fd)

def processor():
    assert os.getpriority(os.PRIO_PROCESS, 0) == start[3], "its priority is lower"
    rank = call(libc.syscall, NUMBERS["ioprio_get"], 1, 0)
    assert rank == start[0], "its input and output are put last"
    assert os.sched_getaffinity(0) == start[1], "it lost processors"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == start[2], "it may open fewer files"

def randomness():
    with open("/dev/random", "rb", 0) as file:
        assert len(file.read(64)) == 64, "too few numbers"

def keys():
    name = f"key-{time.monotonic_ns()}".encode()
    call(libc.syscall, NUMBERS["add_key"], b"user", name, b"value", 5, -2)

def requests():
    ident = ctypes.c_ulong(0)
    call(libc.syscall, NUMBERS["io_setup"], 8, ctypes.byref(ident))
    call(libc.syscall, NUMBERS["io_destroy"], ident)

start = (call(libc.syscall, NUMBERS["ioprio_get"], 1, 0), os.sched_getaffinity(0),  # ioprio_get
         resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0))
WORK = [inotify, terminal, pipe, signals, timer, descriptors, locks, children, shared_memory,
        locked_memory, message, semaphore, server, abstract_name, disk, memory, files, processor,
        randomness]
RARE = {"keys": keys, "requests": requests}
print("ready", flush=True)
for line in sys.stdin:
    for part in [*WORK, *(RARE[word] for word in line.split())]:
        try:
            part()
        except (OSError, AssertionError) as error:
            print(f"{part.__name__}: {error}", flush=True)
            break
    else:
        print("all is done", flush=True)
"""
)
"""For each line of its input it does a bit of everything, and the rare work that the line names."""
