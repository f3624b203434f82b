"""What a newcomer can do after the demo: commands that work where the demo was run."""

import os
import shlex
import shutil
import sys
from pathlib import Path

EXAMPLE = Path("configs/hosted.toml")
"""The commented example that a checkout has."""

ROLES = ("generator", "agent", "user", "judge")
"""Roles that every run asks."""

ENDPOINT = (
    'base_url = "https://llm.example/v1", api_key_env = "LLM_API_KEY", '
    'models = [{name = "your-model"}]'
)


def program() -> str:
    """How this `synth` is started from here: by its name where the PATH finds it, else by path."""
    own = Path(sys.executable).with_name("synth")
    if not own.exists():
        return shlex.join([sys.executable, "-m", "flows.cli"])
    if (found := shutil.which("synth")) and own.samefile(found):
        return "synth"
    shown = os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)
    return shlex.quote(shown)


def with_your_endpoint() -> list[str]:
    """Lines that make the same data with models of one's own; each works as it is printed once the
    address, the key's variable and the model are one's own."""
    if EXAMPLE.is_file():
        return [
            f"With your own endpoint, once {EXAMPLE} names it (--dry-run spends nothing):",
            f"  {program()} run {EXAMPLE} --dataset data/first --dry-run",
            f"  {program()} run {EXAMPLE} --dataset data/first",
        ]
    settings = [f"{role} = {{{ENDPOINT}}}" for role in ROLES]
    return [
        "With your own endpoint, once these lines name it (--dry-run spends nothing):",
        "",
        "cat > first.toml <<'END'",
        "num_tasks = 200",
        "budget = {usd = 5.0}",
        "[roles]",
        *settings,
        "END",
        f"{program()} run first.toml --dataset data/first --dry-run",
        f"{program()} run first.toml --dataset data/first",
    ]
