"""How many sandboxes a machine holds at once, and how fast they are started."""

import os
from pathlib import Path

from pydantic import Field

from records.config import Config

PER_CORE, MEMORY_EACH = 8, 256 << 20
"""Sandboxes that a machine holds unless told otherwise: by cores, and by its available memory."""


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_live() -> int:
    """How many sandboxes may be alive at once here unless a setting says so."""
    found = Path("/proc/meminfo").read_text() if Path("/proc/meminfo").exists() else ""
    lines = [line.split() for line in found.splitlines() if line.startswith("MemAvailable:")]
    by_memory = int(lines[0][1]) * 1024 // MEMORY_EACH if lines else PER_CORE
    return max(2, min(PER_CORE * cores(), by_memory))


class PoolSettings(Config):
    live: int = Field(default_factory=machine_live, ge=1)
    """Sandboxes alive at once, of all templates."""

    idle: int = Field(default_factory=machine_live, ge=0)
    """Clean ones kept per template; those beyond are closed."""

    lease_s: float = Field(default=3600.0, gt=0)
    """Wall clock of a lease; then its sandbox is ended under its holder."""

    starts_per_s: float = Field(default=50.0, gt=0)
    """Starts in the long run."""

    starts_at_once: int = Field(default_factory=lambda: 2 * cores(), ge=1)
    """Starts that go on at the same time: on this machine they take its cores."""
