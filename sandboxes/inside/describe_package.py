"""Reads what a distribution says of itself and prints it as a JSON object.

Standard input is an object of texts: `metadata` (PKG-INFO), `pyproject` (pyproject.toml),
`requires` (requires.txt of older tools). Ends with 3 where one of them cannot be read.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: T201
import json
import sys
import tomllib
from email import message_from_string

REFUSED = 3
MAX_TEXT = 2_000
"""Characters of one value that are passed on."""


def declared_needs(texts: "dict[str, str]") -> "list[str]":
    """What the distribution says it needs; older tools wrote it to a file beside the metadata, and
    a repository has only what its tools will make that of."""
    metadata = message_from_string(texts["metadata"])
    if declared := metadata.get_all("Requires-Dist"):
        return declared
    if not texts["metadata"]:
        try:
            stated = tomllib.loads(texts["pyproject"]).get("project", {})
            return [str(need) for need in stated.get("dependencies", ())]
        except (tomllib.TOMLDecodeError, AttributeError, TypeError):
            pass
    plain = texts["requires"].partition("[")[0]  # sections in brackets are optional
    return plain.split()


def main() -> None:
    texts = json.loads(sys.stdin.buffer.read())
    metadata = message_from_string(texts["metadata"])
    licence = metadata.get("License-Expression") or metadata.get("License") or "unknown"
    found = {
        "summary": str(metadata.get("Summary", ""))[:MAX_TEXT],
        "license": str(licence).strip().partition("\n")[0][:MAX_TEXT],
        "needs": [str(need) for need in declared_needs(texts)],
    }
    print(json.dumps(found))


try:
    main()
except Exception as error:  # a stranger's texts can break any of this in any way
    sys.stderr.write(f"{type(error).__name__}: {str(error)[:200]}\n")
    sys.exit(REFUSED)
