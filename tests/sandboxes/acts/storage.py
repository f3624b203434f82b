"""Acts against memory, disks and the repository's files."""

from tests.sandboxes.acts.act import ENDED, UNREADABLE, WORKS, Act, act, py, sh

REPO = "/workspace/code/repo"
ANY = {WORKS, UNREADABLE, ENDED}
NEW = ("edit_file", {"path": "new.py", "old_text": "", "new_text": "x = 1\n"})
TESTS = ("run_tests", {})
LIST = ("list_files", {})
OR_ENDED = {None, "sandbox_ended", "unreadable", "timed_out"}

SHARED = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(400):
    at = libc.shmat(libc.shmget(0, 1 << 20, 0o1666), None, 0)
    if at not in (None, 2**64 - 1):
        ctypes.memset(at, 1, 1 << 20)
"""
"""It outlives the process that the kernel kills for it."""

MEMORY: tuple[Act, ...] = tuple(
    made._replace(codes=frozenset(OR_ENDED), after=frozenset(ANY))
    for made in (
        py("one large object", "x = b'x' * (1 << 30)"),
        py("memory page by page", "x = [bytearray(1 << 20) for _ in range(2000)]"),
        py(
            "memory of many processes",
            """
            import os
            for _ in range(4):
                os.fork()
            x = b'x' * (50 << 20)
            """,
        ),
        py("shared memory of System V", SHARED),
        py(
            "files in memory",
            """
            import os
            fds = [os.memfd_create(str(n)) for n in range(40)]
            for fd in fds:
                os.write(fd, b'x' * (8 << 20))
            """,
        ),
        sh("a text that doubles", "s=xxxxxxxx; while :; do s=$s$s; done"),
        sh("the end of a file without lines", "tail /dev/zero"),
        sh(
            "all three disks full",
            """
            for d in /workspace/code /tmp /dev/shm; do head -c 1G /dev/zero > $d/big; done
            python -c 'x = b"x" * (1 << 30)'; true""",
            NEW,
            LIST,
        ),
        py(
            "pipes full of data",
            """
            import os, fcntl
            for _ in range(200):
                r, w = os.pipe()
                os.set_blocking(w, False)
                os.write(w, b'x' * 65536)
            """,
        ),
    )
)

FILL = "head -c 1G /dev/zero > {0}/big; ls {0}"
DISKS: tuple[Act, ...] = (
    sh("a full workspace", FILL.format("."), NEW, code="not_written"),
    sh("a full /tmp, then tests", FILL.format("/tmp"), TESTS),
    sh("a full /dev/shm, then tests", FILL.format("/dev/shm"), TESTS),
    py(
        "a hundred thousand files",
        """
        for n in range(100_000):
            open(f"many-{n}", "w").close()
        """,
        LIST,
        code={None, "unreadable", "sandbox_ended"},
        after=ANY,
    ),
    py(
        "many files elsewhere",
        """
        import os
        os.mkdir("/dev/shm/x")
        for n in range(20_000):
            open(f"/dev/shm/x/many-{n}", "w").close()
        """,
        code={None, "unreadable", "sandbox_ended"},
        after=ANY,
    ),
    py(
        "very deep folders",
        """
        import os
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
        open("file", "w").close()
        """,
    ),
    py(
        "names as long as can be",
        """
        import os
        for letter in "abc":
            os.mkdir(letter * 255)
            os.chdir(letter * 255)
            open(letter * 255, "w").close()
        """,
    ),
    py(
        "a path longer than any",
        """
        import os
        for _ in range(14):
            os.mkdir("n" * 255)
            os.chdir("n" * 255)
        open("file.py", "w").write("x = 1")
        """,
    ),
    py(
        "names that are no UTF-8",
        r"""
        for name in (b"\xff.py", b"\xed\xa0\x80.py", b"a\xc3.py"):
            open(name, "w").write("x = 1")
        """,
        LIST,
    ),
    py(
        "names with line breaks and escapes",
        r"""
        for name in ("a\nb.py", "\x1b[2Jc.py", "-rf", "*", " ", "\\", "'", "\x01", "\u202e.py"):
            open(name, "w").write("x = 1")
        """,
        LIST,
    ),
    sh("a sparse file of a terabyte", "truncate -s 1T big; ls -l big", TESTS),
    sh("a file that grows", "(while :; do echo x >> grows.txt; done) & sleep 0.2"),
    sh(
        "a file that changes its kind all the time",
        "(while :; do ln -s / x; rm x; echo > x; rm x; mkfifo x; rm x; done) & sleep 0.2",
    ),
    py(
        "more text than a call may change",
        """
        for n in range(150):
            open(f"text-{n}.txt", "w").write(f"{n:02}" * 10_000)
        """,
        LIST,
    ),
    py(
        "texts of zero bytes and half letters",
        r"""
        open("zero.py", "wb").write(b"\0" * 1000)
        open("half.py", "wb").write(b"\xc3")
        open("line.py", "wb").write(b"x" * 3_000_000)
        """,
        ("search_text", {"text": "\0"}),
    ),
    py(
        "thousands of links",
        """
        import os
        for n in range(3000):
            os.link("shop/price.py", f"l{n}")
            os.symlink("/", f"s{n}")
        """,
    ),
)

OUT = f"cd / && rm -rf {REPO} && "
REPOSITORY: tuple[Act, ...] = (
    sh("a closed repository", f"chmod 000 {REPO}", code="unreadable", after=UNREADABLE),
    sh("a closed folder above it", "chmod 000 ..", code="unreadable", after=UNREADABLE),
    sh(
        "a closed workspace",
        "chmod 000 /workspace",
        code={None, "unreadable"},
        after={WORKS, UNREADABLE},
    ),
    sh("a closed /tmp", "chmod 000 /tmp", TESTS, code={None, "not_copied"}),
    sh("a closed file", "chmod 000 shop/price.py", LIST),
    sh("a closed folder", "chmod 000 shop", LIST),
    sh("no repository", OUT + "true", code="unreadable", after=UNREADABLE),
    sh("no repository, then tests", OUT + "true", TESTS, code="unreadable", after=UNREADABLE),
    sh("no repository, then an edit", OUT + "true", NEW),
    sh("the folder it stands in, removed", 'rm -rf "$PWD"', code="unreadable", after=UNREADABLE),
    sh(
        "all that can be removed",
        "rm -rf /workspace /tmp /dev/shm /opt /etc 2>/dev/null",
        code="unreadable",
        after=UNREADABLE,
    ),
    sh(
        "a link to everything for a repository",
        OUT + f"ln -s / {REPO}",
        code="unreadable",
        after=UNREADABLE,
    ),
    sh(
        "a link for the folder above",
        "cd / && mv /workspace/code /workspace/other && ln -s other /workspace/code",
        code="unreadable",
        after=UNREADABLE,
    ),
    sh("a FIFO for a repository", OUT + f"mkfifo {REPO}", code="unreadable", after=UNREADABLE),
    sh("a file for a repository", OUT + f"echo > {REPO}", NEW, code="unreadable", after=UNREADABLE),
    sh(
        "a loop of links for a repository",
        OUT + f"ln -s loop {REPO} && ln -s repo /workspace/code/loop",
        code="unreadable",
        after=UNREADABLE,
    ),
    sh("a repository moved away and back", f"cd / && mv {REPO} /tmp/r && mv /tmp/r {REPO}"),
    sh("an empty repository", OUT + f"mkdir {REPO}", LIST, code="not_found"),
    sh("links in circles", "ln -s . a; ln -s .. b; ln -s d c; ln -s c d", TESTS),
    sh("a FIFO for a file", "rm shop/price.py; mkfifo shop/price.py", TESTS),
    sh(
        "a socket for a file",
        "rm shop/price.py; python -c 'import socket; "
        'socket.socket(socket.AF_UNIX).bind("shop/price.py")\'',
        TESTS,
    ),
    sh("a folder for a file", "rm shop/price.py; mkdir shop/price.py", TESTS),
    sh("a file for a folder", "rm -r tests; echo > tests", TESTS),
    sh("a device for a file", "rm shop/price.py; ln -s /dev/zero shop/price.py", LIST),
    sh("times of other centuries", "touch -d 2399-01-01 .; touch -d 1901-12-14 shop/price.py"),
    sh("rights of every kind", "chmod -R 7777 .; chmod 1000 shop/price.py", LIST),
    sh("a broken git", "git init -q .; echo rubbish > .git/HEAD; rm -rf .git/objects; git log"),
    sh("a file for .git", "echo gitdir: / > .git; git status"),
    sh("the copy for tests is a link", f"ln -s {REPO} /tmp/run", TESTS),
    sh(
        "the copy for tests cannot be removed",
        "mkdir -p /tmp/run/a/b; chmod 000 /tmp/run/a",
        TESTS,
        code="not_copied",
    ),
    sh("the copy for tests is a FIFO", "mkfifo /tmp/run", TESTS),
    act(
        "a path through a file",
        ("edit_file", {"path": "shop/price.py/x", "old_text": "", "new_text": "x"}),
        code="not_written",
    ),
)
ENDING: tuple[Act, ...] = (
    py(
        "no memory left for the agent itself",
        SHARED,
        ("run_shell", {"command": "true " + "x" * 10_000_000}),
        code="sandbox_ended",
        after=ENDED,
    ),
)
