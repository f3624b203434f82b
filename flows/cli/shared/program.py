"""How `synth` is started where it runs now, for lines that are to be pasted."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """How this `synth` is started from here: by its name where the PATH finds it, else by path."""
    own = Path(sys.executable).with_name("synth")
    if not own.exists():
        return shlex.join([sys.executable, "-m", "flows.cli"])
    if (found := shutil.which("synth")) and own.samefile(found):
        return "synth"
    try:
        here = Path.cwd()
    except OSError:  # the folder in which it was started is gone
        return shlex.quote(str(own))
    return shlex.quote(os.path.relpath(own) if own.is_relative_to(here) else str(own))
