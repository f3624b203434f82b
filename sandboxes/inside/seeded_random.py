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

import _random
import hashlib
import itertools
import os
import threading

STARTED = "/dev/shm/.started"
"""Holds an empty file for each process that was started."""


class Stream:
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
    for number in itertools.count():
        try:
            os.close(os.open(f"{STARTED}/{name}-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        return hashlib.sha256(f"{seed}/{name}/{number}".encode()).digest()


class SeededRandom(_random.Random):
    """What `random.Random` is made from: without a seed it takes one from the stream."""

    def seed(self, seed=None):
        super().seed(int.from_bytes(os.urandom(32), "big") if seed is None else seed)


stream = Stream(own_key(os.environ["SANDBOX_SEED"]))
os.urandom = lambda size, /: stream.draw(size)
os.getrandom = lambda size, flags=0: stream.draw(size)
os.register_at_fork(
    before=stream.begin_fork, after_in_parent=stream.end_fork, after_in_child=stream.in_child
)
# `random` takes its own part in forks as it is imported, and has to come after ours
_random.Random = SeededRandom

import uuid  # noqa: E402

uuid._generate_time_safe = None  # libuuid's: it knows the real time
