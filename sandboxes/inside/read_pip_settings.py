"""Prints the settings of pip as JSON: `settings`, and `default` and `files`, the index that is
asked where none is named and the host that it keeps files on, which are known to pip alone.

The argument is a pip to import. It runs outside a sandbox, since it reads the user's own files.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: T201
import json
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])

from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI

found: Any = Configuration(isolated=False)
found.load()
index = {"default": PyPI.simple_url, "files": PyPI.file_storage_domain}
print(json.dumps({"settings": dict(found.items()), **index}))
