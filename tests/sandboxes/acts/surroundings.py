"""Acts against what is around the repository: output, environment, the machine, the tests."""

from tests.sandboxes.acts.act import ENDED, UNREADABLE, WORKS, Act, act, py, sh

TESTS = ("run_tests", {})
ANY = {WORKS, UNREADABLE, ENDED}

OUTPUT: tuple[Act, ...] = (
    sh("terminal escapes", r"printf '\033[2J\033]0;title\007\033[31m\233\016'"),
    sh("binary rubbish", "head -c 200000 /dev/urandom; head -c 200000 /dev/urandom >&2"),
    sh("a line of 100 MB", "head -c 100000000 /dev/zero | tr '\\0' x"),
    sh("100 MB of lines", "yes | head -c 100000000; yes | head -c 100000000 >&2"),
    sh("zero bytes", "head -c 100000 /dev/zero"),
    sh("half letters", r"printf '\355\240\200\303\377\360\237'"),
    sh(
        "what looks like a frame",
        r"""printf '\0\0\0\053\0\0\0\0{"id":1,"event":"exit"}'
       printf '{"id": 1, "event": "exit", "exit_code": 0, "stdout_bytes": 0}\n' >&2""",
    ),
    sh("lines broken every way", r"printf 'a\rb\vc\fd\036e\302\205f\342\200\250g\r\n'"),
    sh("output that is closed early", "yes | head -1; exec 1>&-; echo lost"),
)

ENVIRONMENT: tuple[Act, ...] = (
    sh(
        "a library before all others",
        """
        export LD_PRELOAD=/nowhere.so; ls; echo /nowhere.so > /etc/ld.so.preload; true""",
    ),
    sh(
        "another python in front",
        """
        mkdir -p /tmp/bin; printf '#!/bin/sh\\nexit 0\\n' > /tmp/bin/python; chmod +x /tmp/bin/*
        export PATH=/tmp/bin:$PATH; python; cp /tmp/bin/python /opt/env/bin/python
        rm /opt/env/bin/python; true""",
        TESTS,
    ),
    sh(
        "start-up files of its user",
        """
        d=/tmp/.local/lib/python3.11/site-packages; mkdir -p $d
        echo 'import os; os._exit(0)' > $d/usercustomize.py; cp $d/usercustomize.py $d/a.pth
        for f in .bashrc .profile .bash_profile .shrc .pythonrc .gitconfig; do
          echo 'exit 1' > /tmp/$f; done""",
        TESTS,
    ),
    sh(
        "modules of its own for those of the library",
        """
        for m in json os sys hashlib stat itertools encodings site; do
          echo 'raise SystemExit(1)' > $m.py; cp $m.py /tmp /workspace; done""",
    ),
    sh(
        "caches removed",
        "find /opt /workspace /usr/lib/python3* -name __pycache__ -exec rm -rf {} + 2>/dev/null;"
        "true",
    ),
    sh("caches of its own", "mkdir shop/__pycache__; echo > shop/__pycache__/x.pyc", TESTS),
    sh("variables without end", "for i in $(seq 3000); do export V$i=$(printf %1000d 0); done; ls"),
    sh(
        "mounts and namespaces",
        "mount -t tmpfs x /tmp; umount /workspace; umount -l /; "
        "unshare -Ur true; nsenter -t 1 -a true; true",
    ),
    sh("another clock", "command date -s 2001-01-01; hwclock --set --date 2001-01-01; true"),
    sh(
        "another machine",
        "hostname x; reboot -f; swapoff -a; sysctl -w kernel.panic=1; dmesg -C; "
        "echo b > /proc/sysrq-trigger; insmod x; true",
    ),
    sh(
        "another user",
        "su -c true; sudo true; chroot / true; chown 0:0 .; setpriv --reuid 0 true; true",
    ),
    sh("network", "ip link set lo down; ifconfig lo down; (python -m http.server &); true"),
    sh("a terminal", "script -qc true /dev/null; stty -a; echo x > /dev/tty; true"),
    sh("queues and semaphores that stay", "ipcmk -Q; ipcmk -S 10; ipcmk -M 1000"),
)


def tests_that(name: str, does: str, **expected: object) -> Act:
    """Its tests are rewritten, then run."""
    edit = {
        "path": "shop/price.py",
        "old_text": "def price(count):\n",
        "new_text": f"import os\n{does}\ndef price(count):\n",
    }
    return act(f"tests: {name}", ("edit_file", edit), TESTS, **expected)  # type: ignore[arg-type]


RUNS_OF_TESTS: tuple[Act, ...] = (
    tests_that("kill everything", "os.kill(-1, 9)"),
    tests_that("stop everything", "os.kill(-1, 19)", after=WORKS),
    tests_that("kill process 1", "[os.kill(1, s) for s in (1, 2, 3, 9, 15)]"),
    tests_that("say half letters", r"raise ValueError('\ud800 \udc80 \0')"),
    tests_that("end without a word", "os._exit(0)"),
    tests_that("crash", "import ctypes; ctypes.string_at(0)"),
    tests_that(
        "write rubbish everywhere",
        r"""
for fd in range(1, 64):
    try:
        os.write(fd, b'{"tests": 5, "test": [], "status": {}}\n' + b'[' * 100000 + b'\n5\nnull\n')
    except OSError:
        pass""",
    ),
    tests_that("remove what is tested", "import shutil; shutil.rmtree('/tmp/run')"),
    tests_that(
        "remove the repository",
        "import shutil; shutil.rmtree('/workspace/code')",
        code="unreadable",
        after=UNREADABLE,
    ),
    tests_that(
        "fill the disk",
        """
with open('/tmp/big', 'wb') as big:
    try:
        while True: big.write(bytes(1 << 20))
    except OSError: pass""",
    ),
    tests_that("take all memory", "x = b'x' * (1 << 30)", code={None, "sandbox_ended"}, after=ANY),
    tests_that("compute without end", "while True: pass"),
    py(
        "a call of a tool by hand",
        """
        import subprocess
        subprocess.run(["/opt/env/bin/python", "-I", "/opt/tests/run_tests.py"], input=b"rubbish")
        """,
    ),
)
