"""The curves of a run of reinforcement learning."""

from collections.abc import Sequence

from trainer.training.curves import Plot
from trainer.training.metrics import MetricsLine

_FIXED = (
    Plot("Mean reward", {"reward": "samples", "validation_reward": "validation"}),
    Plot("Tokens that a sample draws", {"drawn": ""}),
    Plot("Share of samples that were cut", {"truncated": ""}),
    Plot("Samples without a reward", {"left_out": ""}),
    Plot("Groups without a signal", {"groups_equal": "equal rewards", "groups_alone": "alone"}),
    Plot(
        "Tasks that were tried, by difficulty",
        {
            "tasks_too_hard": "too hard",
            "tasks_moderate": "moderate",
            "tasks_too_easy": "too easy",
        },
    ),
    Plot("KL from the policy that drew", {"kl_k1": "k1", "kl_k3": "k3"}),
    Plot("Entropy, nats a token", {"entropy": ""}),
    Plot("Share of tokens out of bounds", {"cut": ""}),
    Plot("Share of tokens that older weights drew", {"stale": ""}),
    Plot("Share of routes that agree", {"route_agreement": ""}),
    Plot("Norm of the gradient", {"grad_norm": ""}),
    Plot("Largest attention logit", {"max_logit": ""}),
    Plot("Temperature", {"temperature": ""}),
    Plot("Loss of good conversations, nats a token", {"ptx_loss": ""}),
    Plot("Seconds", {"play_s": "playing", "learn_s": "learning", "sync_s": "sending weights"}),
    Plot("Tokens drawn a second", {"tokens_per_s": ""}),
    Plot("Share of the time waiting for environments", {"waiting_share": ""}),
)


def plots_of(lines: Sequence[MetricsLine]) -> tuple[Plot, ...]:
    """Those of every run, and two of each family that was played: its reward, its successes."""
    names = {name for line in lines for name in line}
    families = sorted(name.removeprefix("reward/") for name in names if name.startswith("reward/"))
    own = [
        plot
        for family in families
        for plot in (
            Plot(
                f"Reward: {family}",
                {f"reward/{family}": "samples", f"validation/{family}": "validation"},
            ),
            Plot(
                f"Successes: {family}",
                {f"success/{family}": "samples", f"validation_success/{family}": "validation"},
            ),
        )
    ]
    return (_FIXED[0], *own, *_FIXED[1:])
