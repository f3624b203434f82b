"""What every benchmark prints beside its figure: the machine, its load, the commit, the repeats."""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

LOAD = round(os.getloadavg()[0], 1)
"""When the benchmark began: what others did, before its own work counts as load."""


def show(measurement: Mapping[str, Any]) -> None:
    """One line of JSON on stdout: the measurement, and what it was made on."""
    print(json.dumps({**measurement, **machine()}), flush=True)


def machine() -> dict[str, Any]:
    return {
        "hardware": f"{os.cpu_count()} x {platform.processor() or platform.machine()}",
        "python": platform.python_version(),
        "load": LOAD,
        "commit": _commit(),
    }


def spread(values: Sequence[float], digits: int = 2) -> dict[str, Any]:
    """Median of the repeats, the range they lay in, and how many there were."""
    low, high = round(min(values), digits), round(max(values), digits)
    return {
        "value": round(statistics.median(values), digits),
        "range": [low, high],
        "n": len(values),
    }


@cache
def _commit() -> str | None:
    """With `-dirty` where files differ from it; None outside a repository."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
