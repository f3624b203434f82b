"""How episodes end, and what an end says of the agent."""

from typing import Literal

Reason = Literal[
    "user_done",
    "agent_done",
    "refused",
    "max_turns",
    "token_budget",
    "format_error",
    "user_error",
    "infra_error",
    "budget_stop",
]
"""Why an episode ended. The list is closed."""

TRUNCATED = frozenset({"max_turns", "token_budget", "infra_error", "budget_stop"})
"""Cut off from outside; the others are ends that the conversation came to."""

FILTERED = "refused by the endpoint"
"""`refusal` of an answer that a server's filter left nothing of."""

OUTSIDE = frozenset({"user_error", "infra_error", "budget_stop"})
"""Ends that say nothing about the agent: no verdict is drawn from them, the reward is 0."""
