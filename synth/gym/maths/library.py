"""reasoning-gym, as it is used inside the worker: puzzles drawn, and its scorers asked.

Some of its scorers hand the answer to Python's `eval`, or to sympy's parser, which does the same
(`kinds.py` says which); these are never asked.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from records.digest import canonical_json
from synth.gym.maths.kinds import KINDS


def prepare(arguments: Mapping[str, Any]) -> None:
    """What children inherit: the library and the data set."""
    _data_set(arguments["kind"], arguments["level"], canonical_json(arguments["settings"]))


def answer(arguments: Mapping[str, Any]) -> Any:
    """For `draw`, entries of the given indices; for a `reply`, the library's own score, or None
    where the puzzle of that index is not the one that is asked about."""
    kind, level = arguments["kind"], arguments["level"]
    puzzles = _data_set(kind, level, canonical_json(arguments["settings"]))
    if "draw" in arguments:
        return [_entry(kind, puzzles, index) for index in arguments["draw"]]
    entry = puzzles[arguments["index"]]
    if _question(entry) != arguments["question"]:
        return None  # another version of the library drew the task
    return float(puzzles.score_answer(arguments["reply"], entry))


def _entry(kind: str, puzzles: Any, index: int) -> dict[str, Any]:
    entry = puzzles[index]
    facts = {name: _plain(entry["metadata"][name]) for name in KINDS[kind].facts}
    solution = entry["answer"]
    return {
        "question": _question(entry),
        "answer": None if solution is None else str(solution),
        "facts": facts,
        "category": puzzles.category,
    }


def _question(entry: Mapping[str, Any]) -> str:
    return entry["question"].strip("\n")


@lru_cache(maxsize=64)
def _data_set(kind: str, level: int | None, settings: str) -> Any:
    import reasoning_gym
    from reasoning_gym.factory import CURRICULA, DATASETS, create_curriculum

    own = json.loads(settings)
    if level is None:
        return reasoning_gym.create_dataset(kind, **own)
    if kind not in CURRICULA:
        raise ValueError(f"{kind} has no levels; leave `level` out")
    curriculum = create_curriculum(kind)
    curriculum.set_global_level(level)
    config = curriculum.generate_configuration()
    for name, value in own.items():
        if not hasattr(config, name):
            raise ValueError(f"{kind} has no setting {name!r}")
        setattr(config, name, value)
    config.validate()
    return DATASETS[kind][0](config=config)


def _plain(value: Any) -> Any:
    """As JSON has it: lists for tuples, Python's own numbers and words for NumPy's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return value.item() if hasattr(value, "item") else value
