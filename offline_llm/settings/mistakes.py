"""The agent's own mistakes: drawn once per opportunity and conversation, so that a later request
of the same conversation sees the same agent."""

import re
from datetime import date, timedelta
from typing import Any

from offline_llm.reading.toolbox import Param, Tool
from offline_llm.settings.rates import AgentMistakes
from records.seeds import rng_of


class Slips:
    """Whether and how this conversation's agent goes wrong."""

    def __init__(self, rates: AgentMistakes, *, factor: float, talk: str) -> None:
        self._rates, self._factor, self._talk = rates, factor, talk

    def happens(self, kind: str, where: str) -> bool:
        """One draw for the opportunity `where`; the same answer however often it is asked."""
        rate = getattr(self._rates, kind) * self._factor
        return rate > 0 and rng_of(self._talk, f"{kind}:{where}").random() < rate

    def draw(self, purpose: str, where: str = "") -> float:
        """A number in [0, 1) for a habit that is no mistake."""
        return rng_of(self._talk, f"{purpose}:{where}").random()

    def wrong_value(self, tool: Tool, arguments: dict[str, Any], where: str) -> dict[str, Any]:
        """The arguments with one plain value replaced by another that the schema allows."""
        params = [p for p in tool.params if p.name in arguments and not p.is_id]
        rng = rng_of(self._talk, f"which:{where}")
        rng.shuffle(params)
        for param in params:
            other = _other(param, arguments[param.name], rng.random())
            if other is not None:
                return arguments | {param.name: other}
        return arguments

    def wrong_format(self, tool: Tool, arguments: dict[str, Any], where: str) -> dict[str, Any]:
        """The arguments with one value spelled as a person would and the schema forbids."""
        params = [p for p in tool.params if p.name in arguments]
        rng = rng_of(self._talk, f"form:{where}")
        rng.shuffle(params)
        for param in params:
            spelled = _misspelled(param, arguments[param.name])
            if spelled is not None:
                return arguments | {param.name: spelled}
        return arguments


def _other(param: Param, value: Any, draw: float) -> Any:
    others = [v for v in param.enum if v != value]
    if others and not isinstance(value, list):
        return others[int(draw * len(others))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d.*", value):
        moved = date.fromisoformat(value[:10]) + timedelta(days=1)
        return moved.isoformat() + value[10:]
    return None


def _misspelled(param: Param, value: Any) -> Any:
    if isinstance(value, bool | list):
        return None
    if param.enum and isinstance(value, str):
        changed = value.replace("_", " ").title()
        return changed if changed != value else value.upper()
    if isinstance(value, int | float):
        return f"{value} units"
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return f"{value[8:]}/{value[5:7]}/{value[:4]}"
    return None
