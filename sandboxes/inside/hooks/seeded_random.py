"""Makes what a Python in a sandbox draws at random a stream of the seed in SANDBOX_SEED.

Each process has a stream of its own: it hangs on its command line, and on how many processes were
started with the same one before. A forked process has one that hangs on its parent's and on how
many were forked before. So neither temporary files nor ids of two processes meet.

Covered: os.urandom, os.getrandom, secrets, tempfile, uuid1 and uuid4, `random` and every
`random.Random()` without a seed, numpy's generators without a seed. Not covered: /dev/urandom when
it is read as a file, ssl.RAND_bytes, SQLite's random() and randomblob(), whatever other native code
draws, a Python that was started with -I or -E. Threads that draw at once share the stream in the
order in which they come.
"""

# This program runs in whatever Python a server has, before anything else of it.
# ruff: noqa: PTH103, PTH123

import hashlib
import itertools
import os
import random
import threading
import uuid

STARTED = "/dev/shm/.started"
"""Holds an empty file for each process that was started."""


class SeededStream:
    """Draws are told apart by their number: SHAKE-256 of the key and it."""

    def __init__(self, key):
        self.key, self.drawn, self.forks = key, 0, 0
        self.lock = threading.Lock()

    def draw(self, size):
        with self.lock:
            number, self.drawn = self.drawn, self.drawn + 1
        return hashlib.shake_256(self.key + number.to_bytes(8, "big")).digest(size)

    def begin_fork(self):
        self.lock.acquire()
        self.forks += 1

    def end_fork(self):
        self.lock.release()

    def in_child(self):
        self.__init__(hashlib.sha256(self.key + b"fork %d" % self.forks).digest())


def own_key(seed):
    """The key of this process: no other in the sandbox has it."""
    with open("/proc/self/cmdline", "rb") as file:
        name = hashlib.sha256(file.read()).hexdigest()[:32]
    os.makedirs(STARTED, exist_ok=True)
    number = next(n for n in itertools.count() if is_first_to_make(f"{STARTED}/{name}-{n}"))
    return hashlib.sha256(f"{seed}/{name}/{number}".encode()).digest()


def is_first_to_make(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


stream = SeededStream(own_key(os.environ["SANDBOX_SEED"]))
os.register_at_fork(
    before=stream.begin_fork, after_in_parent=stream.end_fork, after_in_child=stream.in_child
)
os.urandom = lambda size, /: stream.draw(size)
random._urandom = os.urandom  # type: ignore[attr-defined]
os.getrandom = lambda size, flags=0: stream.draw(size)

plain_seed = random.Random.seed


def seed(self, a=None, version=2):
    plain_seed(self, int.from_bytes(os.urandom(32), "big") if a is None else a, version)


random.Random.seed = seed
random.seed = random._inst.seed
random.seed()
os.register_at_fork(after_in_child=random.seed)

# libuuid's: it knows the real time
uuid._generate_time_safe = None  # type: ignore[attr-defined]
