"""What a newcomer can do after the demo: commands that work where the demo was run."""

import re
from pathlib import Path

from flows.cli.shared.program import program
from synth.llm.settings.config import BudgetConfig
from synth.pipeline.config import RunConfig

EXAMPLE = Path("configs/hosted.toml")
"""The commented example that a checkout has."""

ENDPOINT = (
    'base_url = "https://llm.example/v1", api_key_env = "LLM_API_KEY", models = ["your-model"], '
    "usd_per_million_prompt = 0.6, usd_per_million_completion = 2.5"
)

DEMO = (
    "demo --endpoint https://llm.example/v1 --model your-model --key-env LLM_API_KEY --budget 2 "
    "--price 0.6,2.5"
)
"""On an endpoint, its prices in USD for a million tokens of prompt and of completion."""


def with_your_endpoint() -> list[str]:
    """Lines that make the same data with models of one's own; each works as it is printed once the
    address, the key's variable, the model and its prices are one's own."""
    lines = [
        "The same on your own endpoint, in small and within a budget (or --endpoint env):",
        f"  {program()} {DEMO}",
        "",
    ]
    if EXAMPLE.is_file():
        return [
            *lines,
            f"A run of your own, once {EXAMPLE} names your endpoint (--dry-run spends nothing):",
            f"  {program()} run {EXAMPLE} --dataset data/first --dry-run",
            f"  {program()} run {EXAMPLE} --dataset data/first",
        ]
    return [
        *lines,
        "A run of your own, once these lines name your endpoint (--dry-run spends nothing):",
        "",
        "cat > first.toml <<'END'",
        "num_tasks = 200",
        "budget = {usd = 5.0}",
        f"roles.all = {{{ENDPOINT}}}",
        "END",
        f"{program()} run first.toml --dataset data/first --dry-run",
        f"{program()} run first.toml --dataset data/first",
    ]


def with_more(config: RunConfig, command: str) -> list[str]:
    """Lines that make more of what a demo on an endpoint has made by `command`."""
    words = re.sub(r" --set num_tasks=\S+", "", command.removeprefix("synth "))
    raised = "" if config.budget == BudgetConfig() else ", once the budget in it is raised"
    return [
        f"More of it, from what is there{raised}:",
        f"  {program()} {words} --set num_tasks={config.num_tasks * 4}",
    ]
