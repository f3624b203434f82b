"""Goldens: what a stage makes of a fixed input, kept as text, so that a change of it can be read.

A golden is a YAML file beside its test, in `golden/`: the stage's version and what it made, with
texts of several lines as blocks and long texts that come again as aliases. They are written anew by

    WRITE_GOLDENS=1 .venv/bin/python -m pytest tests/synth -k golden

and then read as a diff before they are committed.
"""

import json
import os
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

VARIABLE = "WRITE_GOLDENS"
LONG = 200
"""Characters of a text from which on its repeats are aliases: the prompts, mostly."""

MOST_LINES = 300
"""Of a difference, as shown. The rest follows from the same change, as a rule."""


class _Dumper(yaml.SafeDumper):
    """Equal values give equal text, and unequal values unequal text."""

    def ignore_aliases(self, data: Any) -> bool:
        return not (isinstance(data, str) and len(data) >= LONG)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def readable(version: int, made: Any) -> str:
    """The text of a golden. `made` is anything that JSON can hold."""
    known: dict[str, str] = {}
    # aliases go by identity, so equal texts must be one object
    plain = json.loads(json.dumps(made, sort_keys=True, allow_nan=False))
    body = {"version": version, "made": _shared(plain, known)}
    return yaml.dump(
        body,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,
    )


def _shared(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _shared(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_shared(each, known) for each in value]
    return known.setdefault(value, value) if isinstance(value, str) else value


def assert_golden(path: Path, version: int, made: Any) -> None:
    """That a stage of this version makes what the golden at `path` says, or write it anew."""
    text = readable(version, made)
    if os.environ.get(VARIABLE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    kept = path.read_text() if path.exists() else ""
    if text == kept:
        return
    if kept.splitlines()[:1] == text.splitlines()[:1]:
        advice = (
            f"{path.stem} makes something else of the same input, and its version is still "
            f"{version}. Where its code is why, raise its STAGE_VERSION; where a prompt or a "
            f"fixture of the test is, leave it. Then write"
        )
    else:
        advice = f"{path.stem} has version {version} now, or no golden yet: write"
    difference = list(
        unified_diff(kept.splitlines(), text.splitlines(), "golden", "made now", lineterm="")
    )
    shown = "\n".join(islice(difference, MOST_LINES))
    more = max(0, len(difference) - MOST_LINES)
    pytest.fail(
        f"{advice} {path} anew with {VARIABLE}=1.\n{shown}\n{more} more lines", pytrace=False
    )
