"""The figures of `rl_figures.py` as tables in Markdown: medians, ranges behind them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Measurement = Mapping[str, Any]


def tables(measured: Sequence[Measurement], machine: Mapping[str, Any]) -> str:
    """A heading and a table for each kind of measurement that is there."""
    made = [
        *_table(
            "Steps a second of environments, without a model",
            ("family", "episodes at once", "steps/s", "ms a step", "whole reward"),
            [_family(one) for one in measured if one["name"] == "gym_family"],
        ),
        *_table(
            "Steps a second of tool-use tasks",
            ("user", "episodes at once", "steps / CPU s", "steps / s", "ms: calls", "ms: words"),
            [_tool_use(one) for one in measured if one["name"] == "gym_tool_use"],
        ),
        *_table(
            "Rollouts against episodes in flight",
            ("in flight", "tokens/s", "steps/s", "slots in use", "waiting for environments"),
            [_rollouts(one) for one in measured if one["name"] == "rollouts"],
        ),
        *_table(
            "Reading and weights",
            ("what", "", ""),
            [_one(one) for one in measured if one["name"] in ("rollouts_read", "rollouts_weights")],
        ),
        *_table(
            "GRPO here and with TRL",
            (
                *("way", "s an iteration", "of it drawing and scoring", "tokens/s"),
                *("tokens/s while drawing", "reward, first quarter", "last quarter"),
            ),
            [_grpo(one) for one in measured if one["name"] == "grpo"],
        ),
        *_table(
            "Times of an iteration, of the same repeat",
            ("way", "times as long as the first"),
            [(one["way"], _spread(one)) for one in measured if one["name"] == "grpo_ratio"],
        ),
        *_table(
            "Mean reward by iteration, median of the repeats",
            ("way", "rewards"),
            [
                (one["way"], " ".join(f"{reward:.2f}" for reward in one["curve"]))
                for one in measured
                if one["name"] == "grpo"
            ],
        ),
    ]
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    return "\n".join([f"{told}.", *made]) + "\n"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Nothing without a row."""
    if rows:
        yield from ("", f"### {title}", "")
        yield from (_line(columns), "|---" + "|---:" * (len(columns) - 1) + "|")
        yield from map(_line, rows)


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _spread(figure: Measurement) -> str:
    low, high = figure["range"]
    return f"{figure['value']:,} ({low:,} to {high:,})"


def _family(one: Measurement) -> tuple[object, ...]:
    told = one["parameters"]
    return told["family"], told["at_once"], _spread(one), one["step_ms"], one["whole_share"]


def _tool_use(one: Measurement) -> tuple[object, ...]:
    told = one["parameters"]
    wall, calls, words = _spread(one["of_wall"]), one["calls_ms"], one["words_ms"]
    return told["user"], told["at_once"], _spread(one), wall, calls, words


def _rollouts(one: Measurement) -> tuple[object, ...]:
    told = one["parameters"]
    number = f"{told['in_flight']}{', deterministic' if told['deterministic'] else ''}"
    others = (_spread(one[name]) for name in ("steps_per_s", "occupancy", "waiting_share"))
    return number, _spread(one), *others


def _one(one: Measurement) -> tuple[object, ...]:
    told = one["parameters"]
    if one["name"] == "rollouts_weights":
        return f"new weights, {told['mib']} MiB", _spread(one), one["unit"]
    return f"tokens read, beginnings shared: {told['shared']}", f"{one['value']:,}", one["unit"]


def _grpo(one: Measurement) -> tuple[object, ...]:
    names = ("playing_share", "tokens_per_s", "playing_tokens_per_s", "reward_first", "reward_last")
    return one["way"], _spread(one), *(_spread(one[name]) for name in names)
