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

_OF_CRITIC = (
    Plot(
        "Critic's agreement with code",
        {"critic_agreement": "agreement", "critic_low": "lower end", "critic_high": "upper end"},
    ),
    Plot(
        "Verifier against critic",
        {"reward": "mean reward by code", "critic_differs": "pairs ordered otherwise"},
    ),
    Plot("Growth of pairs ordered otherwise, an iteration", {"critic_differs_trend": ""}),
    Plot("Share of pairs whose two orders disagree", {"critic_inconsistent": ""}),
    Plot("Critic's rewards on", {"critic_on": ""}),
    Plot(
        "Samples that no code rewards",
        {"critic_ranked": "ranked", "critic_off": "off", "critic_alone": "alone"},
    ),
    Plot("Verdicts that cannot be read", {"critic_unreadable": ""}),
    Plot("Loss of right verdicts, nats a token", {"verdict_loss": ""}),
)


def plots_of(lines: Sequence[MetricsLine]) -> tuple[Plot, ...]:
    """Those of every run, two of each family that was played (its reward, its successes), and those
    of a critic where there was one."""
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
    critic = _OF_CRITIC if "critic_on" in names else ()
    return (_FIXED[0], *own, *critic, *_FIXED[1:])
