"""Reads the files below a folder, whole, as one JSON object: path -> base64, of a folder that is
empty its path with a slash -> "".

Takes a request (JSON) as its argument: `root` and `total_bytes`. What is no regular file is left
out, no link is followed. Ends with 3, saying why on stderr, where there is more than that.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH118, PTH123
from __future__ import annotations

import base64
import json
import os
import stat
import sys

TOO_MUCH = 3
SKIPPED = {"__pycache__", "node_modules", ".cache", ".npm"}
"""Folders that hold what a program makes for itself."""

UNFIT = ("-shm",)
"""Endings of files that mean nothing without the process that made them."""


def files_below(root: str, room: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in SKIPPED)
        short = os.path.relpath(folder, root)
        if not (below or names) and short != ".":
            found[short + "/"] = ""
        for name in sorted(names):
            path = os.path.join(folder, name)
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode) or name.endswith(UNFIT):
                continue
            room -= about.st_size
            if room < 0:
                sys.stderr.write(f"no more than {root} may hold fits with {name}")
                sys.exit(TOO_MUCH)
            with open(path, "rb") as file:
                data = file.read(about.st_size)
            found[os.path.relpath(path, root)] = base64.b64encode(data).decode("ascii")
    return found


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(files_below(asked["root"], asked["total_bytes"])))
