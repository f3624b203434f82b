"""One line of metrics a step: on the terminal, in `metrics.jsonl`, for TensorBoard, as a page."""

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from records.files import write_atomic

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

FILE = "metrics.jsonl"

MetricsLine = dict[str, Any]


class Metrics:
    """Appends to the metrics of a run. Lines behind the step that a run goes on from are of a
    future that did not happen, and are cut off."""

    def __init__(self, folder: Path, *, from_step: int) -> None:
        self._path = folder / FILE
        kept = [line for line in read_metrics(folder) if line["step"] <= from_step]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        write_atomic(self._path, text.encode())
        self._file = self._path.open("a", encoding="utf-8")
        self._board = _board(folder / "tensorboard", from_step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()

    def write(self, line: MetricsLine) -> None:
        self._file.write(json.dumps(_as_json(line)) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in line.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, line["step"])


def _as_json(line: MetricsLine) -> MetricsLine:
    """JSON has no number for what is none: a loss of NaN is null there."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in line.items()
    }


def _board(folder: Path, from_step: int) -> "SummaryWriter | None":
    """None where tensorboard is not installed: the curves are drawn without it."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        log.info("tensorboard is not installed: no event files are written")
        return None
    return SummaryWriter(str(folder), purge_step=from_step + 1)


def read_metrics(folder: Path) -> list[MetricsLine]:
    """Every whole line; a kill may have cut the last one."""
    lines: list[MetricsLine] = []
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return lines
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def told(line: MetricsLine) -> str:
    """The line as people read it."""
    parts = [
        f"step {line['step']}",
        f"loss {line['loss']:.4f}",
        f"grad_norm {line['grad_norm']:.3f}",
        f"lr {line['lr']:.2e}",
        f"{line['tokens_per_s']:,.0f} tokens/s",
        f"memory {line['memory_gib']:.2f} GiB",
        f"max_logit {line['max_logit']:.1f}",
    ]
    if line["validation_loss"] is not None:
        parts.insert(2, f"validation {line['validation_loss']:.4f}")
    if line["mfu"] is not None:
        parts.append(f"mfu {line['mfu']:.1%}")
    if line["skipped"]:
        parts.append(f"SKIPPED: {line['why_skipped']}")
    return "  ".join(parts)


def column(lines: Sequence[MetricsLine], name: str) -> list[tuple[int, float]]:
    """(step, value) of every line that has a number there."""
    return [
        (line["step"], float(line[name]))
        for line in lines
        if isinstance(line.get(name), int | float)
    ]
