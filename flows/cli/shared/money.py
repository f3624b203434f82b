"""Options about what a run may cost. They are short for settings: `roles.all` prices, `budget`."""

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from flows.cli.shared.options import at_least
from records.errors import ConfigError

PRICES = ("usd_per_million_prompt", "usd_per_million_completion")


@Parameter(name="*")
@dataclass(frozen=True)
class Money:
    price: Annotated[str | None, Parameter(negative="")] = None
    """IN,OUT: USD for a million tokens of prompt and of completion, for each role that has no price
    of its own."""
    budget: Annotated[float | None, at_least(0)] = None
    """USD that the run may spend at most."""
    budget_tokens: Annotated[int | None, at_least(0)] = None
    """Tokens, prompt and completion, that the run may use at most."""

    def settings(self) -> dict[str, Any]:
        """As a file would hold them; only what was given."""
        given: dict[str, Any] = {}
        if self.price is not None:
            given["roles"] = {"all": dict(zip(PRICES, self.prices(), strict=True))}
        limits = {"usd": self.budget, "tokens": self.budget_tokens}
        if known := {name: limit for name, limit in limits.items() if limit is not None}:
            given["budget"] = known
        return given

    def words(self) -> list[str]:
        """As the command line has them."""
        given = {
            "--price": self.price,
            "--budget": self.budget,
            "--budget-tokens": self.budget_tokens,
        }
        named = {option: value for option, value in given.items() if value is not None}
        return [
            word
            for option, value in named.items()
            for word in (option, f"{value:g}" if isinstance(value, float) else str(value))
        ]

    def prices(self) -> tuple[float, float]:
        """ConfigError for what is no pair of prices."""
        words = (self.price or "").split(",")
        try:
            prompt, completion = (float(word) for word in words)
        except ValueError:
            prompt = completion = -1.0
        if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
            raise ConfigError(
                f"--price {self.price}: two numbers are wanted, USD for a million tokens of prompt "
                "and of completion, such as --price 0.6,2.5"
            )
        return prompt, completion


NO_MONEY = Money()
"""Nothing was given: what files say holds."""
