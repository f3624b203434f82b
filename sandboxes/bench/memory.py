"""What sandboxes take of this machine's memory: their processes by PSS, and the kernel's part."""

from collections.abc import Iterable
from pathlib import Path

KERNEL = ("Slab", "KernelStack", "PageTables", "Percpu")
"""Lines of /proc/meminfo: what namespaces, mounts and processes take beside their own pages."""


def processes_mb(pids: Iterable[int]) -> float:
    """Megabytes (2^20) of these processes, pages that several have divided among them. The caller
    may look into its own sandboxes' agents, hidden though they are from what runs beside them."""
    return sum(lines_of(Path(f"/proc/{pid}/smaps_rollup"))["Pss"] for pid in pids) / 1024


def kernel_mb() -> float:
    """Megabytes that the kernel has for itself now, for whatever reason."""
    found = lines_of(Path("/proc/meminfo"))
    return sum(found.get(name, 0) for name in KERNEL) / 1024


def lines_of(path: Path) -> dict[str, int]:
    """The lines `Name:  number kB` of a file of /proc."""
    pairs = (line.partition(":") for line in path.read_text().splitlines())
    return {name: int(rest.split()[0]) for name, _, rest in pairs if rest.endswith(" kB")}
