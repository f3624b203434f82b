"""The agent as one program, for the Python that this runs on or for any other from 3.9.

Bytecode starts faster by what compiling takes (10 ms), and only the version that made it reads it;
the source is for every other Python, such as that of a container image.
"""

import __future__

import importlib.util
import marshal
from functools import cache
from pathlib import Path

from sandboxes.core import agent

PARTS = ("frames", "files", "rights", "job", "stream", "main")
"""The agent's modules, each after those that it imports."""

FUTURE = "from __future__ import annotations\n"
ANNOTATIONS = __future__.annotations.compiler_flag
"""The same by a flag: the statement imports a module, whenever the agent starts."""

START = """
import sys
for name, code in {parts}:
    sys.modules[name] = module = type(sys)(name)
    exec(code, module.__dict__)
module.main()
"""


def sources() -> dict[str, str]:
    """Full name of each part -> its text."""
    folder = Path(agent.__file__).parent
    return {
        f"{agent.__name__}.{name}": (folder / f"{name}.py").read_text(encoding="utf-8")
        for name in PARTS
    }


@cache
def agent_bytecode() -> bytes:
    """As a .pyc file for the Python that runs this."""
    parts = [
        (name, compile(text.replace(FUTURE, "", 1), name, "exec", ANNOTATIONS, optimize=2))
        for name, text in sources().items()
    ]
    start = START.format(parts=f"__import__('marshal').loads({marshal.dumps(parts)!r})")
    boot = compile(start, "agent", "exec", optimize=2)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(boot)


@cache
def agent_source() -> str:
    """As one Python file that every Python from 3.9 runs."""
    return START.format(parts=repr(list(sources().items())))
