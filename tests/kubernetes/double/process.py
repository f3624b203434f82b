"""The double as a process that tests start, kill and start again on the same port and state."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


class Process:
    """Everything of it lies in one folder: kubeconfig, state, log."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.url = ""
        self._words = words
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Process":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, on its former port if it had one, and wait until it serves."""
        words = [
            *(sys.executable, "-m", "tests.kubernetes.double", "--port", str(self._port)),
            *("--kubeconfig", str(self.kubeconfig), "--state", str(self.folder / "state")),
            *("--log", str(self.folder / "requests"), *self._words),
        ]
        self._process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Read the line that it prints once it listens; a restarted one prints it again."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("ready "):
            raise RuntimeError(f"the double did not start: {line!r}, exit {self._process.poll()}")
        self.url = line.split()[1]
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def requests(self) -> list[dict[str, Any]]:
        """The log's lines so far."""
        lines = (self.folder / "requests").read_text().splitlines()
        return [json.loads(line) for line in lines]
