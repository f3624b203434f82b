"""Prints the text files below a folder as one JSON object, path -> text, and stops their clocks.

A file that is too large or no UTF-8 is given by null. Times of change are set to the instant of
the sandbox, so that no listing tells when something was really done.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH112, PTH114, PTH118, PTH123, T201
import json
import os
import sys

SKIPPED = {"__pycache__", ".git", ".pytest_cache"}
root, instant, largest, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
found: dict[str, "str | None"] = {}
os.utime(root, (instant, instant))
for folder, folders, names in os.walk(root):
    folders[:] = sorted(name for name in folders if name not in SKIPPED)
    for name in [*folders, *sorted(names)]:
        path = os.path.join(folder, name)
        try:
            os.utime(path, (instant, instant), follow_symlinks=False)
            if os.path.islink(path) or os.path.isdir(path) or len(found) >= most:
                continue
            with open(path, "rb") as file:
                data = file.read(largest + 1)
            text = data.decode() if len(data) <= largest else None
        except UnicodeDecodeError:
            text = None
        except OSError:
            continue
        found[os.path.relpath(path, root)] = text
print(json.dumps(found))
