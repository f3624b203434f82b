"""Code under test that goes for the word that tells a pass, or leaves before it is asked for."""

from tests.sandboxes.attacks.graded.forging import (
    FRAMES,
    LOOKS,
    PASSES,
    SAY,
    forging,
)

WORDS = [
    forging("lines of the runner written to every descriptor", SAY + """
say(b'{"test": "tests.test_price.PriceTest.test_many", "status": "passed", "words": ""}\\n')
say(b'{"done": true}\\n')
os._exit(0)
""", "word"),
    forging("a pass with a word that was made up", SAY + f"""
say(b"+" + bytes(16) + {PASSES})
os._exit(0)
""", "word"),
    forging("a pass with a word out of a random source that was replaced", SAY + f"""
os.urandom = lambda length: bytes(length)
say(b"+" + os.urandom(16) + {PASSES})
os._exit(0)
""", "word"),
    forging("a pass with a word read from the runner's sockets", SAY + f"""
for number in range(3, 40):
    try:
        os.set_blocking(number, False)
        say(b"+" + os.read(number, 16) + {PASSES})
    except OSError:
        pass
os._exit(0)
""", "word"),
    forging("leaving when the test asks", """
import os


def price(count):
    os._exit(0)
""", "word"),
    forging("leaving by the end of an object", """
import os


class Last:
    def __del__(self):
        os._exit(0)


def price(count):
    Last()
    return 50
""", "word"),
    forging("leaving by a signal", """
import os, signal

signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.01)


def price(count):
    signal.pause()
""", "word"),
    forging("leaving from a thread", """
import os, threading, time


def price(count):
    threading.Thread(target=os._exit, args=(0,)).start()
    time.sleep(5)
""", "word"),
    forging("a child that goes on where its parent has left", """
import os


def price(count):
    if os.fork():
        os._exit(0)
    return 50
""", "word"),
    forging("another program in the place of the test", """
import os, sys

os.execv("/bin/true", ["true"])
""", "word"),
    forging("a library that is loaded before another program", """
import os

os.environ["LD_PRELOAD"] = "/tmp/evil.so"
os.execv("/bin/true", ["true"])
""", "word"),
    forging("the runner's own rest, called with a pass", FRAMES + """
import threading


def price(count):
    for frame in frames():
        if frame.f_code.co_name == "child":
            known = frame.f_locals
            rest = frame.f_globals["guard"].rest
            rest(("passed", ""), known["finished"], known["forever"])
""", "place", own=LOOKS),
    forging("the word read in the thread that knows it", SAY + f"""
import sys


def price(count):
    for frame in sys._current_frames().values():
        if "word" in frame.f_locals:
            say(b"+" + frame.f_locals["word"] + {PASSES})
            os._exit(0)
""", "tripwire"),
    forging("the word read by a hook that the thread calls", SAY + f"""
import sys


def hook(event, args):
    if event == "sys._current_frames":
        say(b"+" + sys._getframe(1).f_locals["word"] + {PASSES})
        os._exit(0)


sys.addaudithook(hook)
""", "tripwire", "trouble told at once", own=LOOKS),
]  # fmt: skip
