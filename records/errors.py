"""Errors, named by what the caller should do about them.

* SynthError
  - ConfigError      stop now, exit code 2: no retry can help
  - BudgetError      stop cleanly, exit code 3: the run goes on once the budget is raised
  - TransientError   retry with backoff: rate limit, timeout, lost sandbox
  - UnavailableError stop cleanly, exit code 1: an endpoint is gone for longer than the run waits
  - PendingError     exit code 1: items are left pending for what was around them; go on later
  - FruitlessError   exit code 1: the run has ended and made nothing of what was asked for
  - ItemError        write the item down as failed and go on: a bad item is data, not a crash
"""


class SynthError(Exception):
    """Base of every error this project raises on purpose. Caught alone it means exit code 1."""


class ConfigError(SynthError):
    """Cannot work as configured. Says which setting, its value, and what is allowed."""


class BudgetError(SynthError):
    """The next request does not fit the budget. Nothing is lost; raise the budget and resume."""


class TransientError(SynthError):
    """Likely to pass on its own. The only class that a retry policy catches."""


class UnavailableError(SynthError):
    """An endpoint is gone for longer than the run waits. Nothing is lost; the same command goes on
    from here."""


class PendingError(SynthError):
    """The run has ended, and items of it were tried in vain for what is around them. Nothing is
    lost; the same command tries them again."""


class FruitlessError(SynthError):
    """The run has ended, and made nothing, or nothing of a source that it was told to use."""


class ItemError(SynthError):
    """This one item failed. Recorded on its row; never cancels its siblings."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        """A short snake_case word that counts group by."""
        self.detail = detail
        """The rest in words, such as what a server said; may be empty."""
