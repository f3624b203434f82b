"""Settings of the environment of programs."""

from pydantic import Field

from records.config import Config


class ProgramSettings(Config):
    """Which problems are asked, and what an answer is worth."""

    problems: tuple[str, ...] = ("all",)
    """Built-in problem sets by name, `all` of them, or paths of files of problems (.yaml), of the
    form of `sandboxes/code/problems/basics.yaml`. Repositories have no hidden answers, and are left
    out."""
    validation_share: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of the problems to learn from that chooses a checkpoint instead, drawn by digest. A
    problem's `split` says which are held out."""
    partial: bool = False
    """Whether a program that fails some tests is worth the share that it passes; else it is worth
    nothing. After two tests without an end the others count as failed."""
    live: int | None = Field(default=None, ge=1)
    """Programs that run at once, each in a sandbox. None: what this machine holds."""
