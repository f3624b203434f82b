"""One run of reinforcement learning on a seed of the proof, with its scores."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.proof.seed_run import CONFIGS, SeedRun, half_the_cores, together, toml_value
from records.files import write_atomic
from records.settings import read_settings
from records.store.dataset import Dataset
from trainer.evaluation.scoring import SCORES
from trainer.training.metrics import MetricsLine, read_metrics

BASE = "sft"
"""The model that all begin with."""

SCORING_MINUTES = 9.0
"""What playing the tasks takes on two cores, with and without constraints beside each other."""

TRIED = 3
"""Iterations that the first pace is taken of."""

SPARE = 0.92
"""Of what is left, the share that is planned: episodes grow longer and shorter."""

OPEN_PROMPTS = "{open prompts}"
"""In an arm's changes, the path of a file of prompts."""

NUM_OPEN_PROMPTS = 200

SHORT_RUN = ("choice.tasks=2", "rollouts.samples=2", "choice.band.k=2", "test.tasks=2")


class Arm(NamedTuple):
    """What is changed of the config."""

    name: str
    words: str
    changes: Sequence[str] = ()
    """`KEY=VALUE`, as TOML."""


class ArmRun:
    """Learns for so many minutes, then is scored."""

    def __init__(self, proof: SeedRun, arm: Arm, *, minutes: float, short: bool = False) -> None:
        """`minutes` of learning. ConfigError where the proof has not come to its end."""
        self.proof, self.arm = proof, arm
        self._minutes, self._short = minutes, short
        self.folder = proof.folder / "rl" / arm.name
        self._clock, self._log = self.folder / "seconds.json", self.folder / "log.txt"

    def run(self, scorings: Mapping[str, Sequence[str]]) -> None:
        """Do what is not done yet. `scorings`: name of a score -> what it changes of
        `configs/proof/scores.toml`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._learn()
        self._score(scorings)

    def lines(self) -> list[MetricsLine]:
        """Of its iterations."""
        return [line for line in self._metrics() if line["step"] > 0]

    def validations(self) -> list[tuple[int, float]]:
        """Iterations done, mean reward of the validation tasks."""
        return [
            (line["step"], line["validation_reward"])
            for line in self._metrics()
            if line["validation_reward"] is not None
        ]

    def exported(self) -> int:
        """Iterations that the exported weights have learnt from."""
        return json.loads((self._run / "scores.json").read_text())["exported"]

    def seconds(self) -> dict[str, float]:
        return json.loads(self._clock.read_text()) if self._clock.exists() else {}

    def scores(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / name / SCORES).read_text())

    @property
    def _run(self) -> Path:
        return self.folder / "run"

    @property
    def _learnt(self) -> Path:
        """There once the learning is over."""
        return self.folder / "learnt.json"

    def _metrics(self) -> list[MetricsLine]:
        return read_metrics(self._run)

    def _learn(self) -> None:
        """In stretches, the first one a few iterations long, the others by the pace of those."""
        if self._learnt.exists():
            return
        done = len(self.lines())
        wanted = done + TRIED
        while wanted > done:
            began = time.monotonic()
            self._say(f"iterations {done + 1} to {wanted}")
            together([self._training(wanted)], self._log)
            self._add("learning", time.monotonic() - began)
            done = len(self.lines())
            wanted = done + (0 if self._short else self._fitting())
        write_atomic(self._learnt, json.dumps({"iterations": done}).encode())

    def _fitting(self) -> int:
        """Iterations for which there is time, with the validations between and behind them."""
        lines, spent = self.lines(), self.seconds()["learning"]
        playing = [line["play_s"] + line["learn_s"] for line in lines]
        pace, beside = fmean(playing), (spent - sum(playing)) / len(self.validations())
        left = SPARE * (self._minutes * 60 - spent) - beside
        every = read_settings(CONFIGS / "rl.toml", self.arm.changes)["test"]["every"]
        return max(0, int(left / (pace + beside / every)))

    def _training(self, iterations: int) -> list[str]:
        given = {
            "out": self._run,
            "start_from": self.proof.folder / BASE,
            "gym.families.tool_use.dataset": self.proof.data,
            "seed": self.proof.seed,
            "iterations": iterations,
        }
        changes = [f"{key}={toml_value(value)}" for key, value in given.items()]
        changes.append(f"good=[{{path={toml_value(self.proof.data)}}}]")
        for one in self.arm.changes:
            # the file is made only where an arm asks for it
            path = str(self._open_prompts()) if OPEN_PROMPTS in one else ""
            changes.append(one.replace(OPEN_PROMPTS, path))
        changes += SHORT_RUN if self._short else ()
        return ["trainer", "rl", str(CONFIGS / "rl.toml"), *_set(changes)]

    def _open_prompts(self) -> Path:
        """Requests to an assistant without tools, whose answers no code rewards: the first words of
        users in the training data."""
        path = self.folder / "open_prompts.jsonl"
        with Dataset.open(self.proof.data).connect() as db:
            rows = db.execute(
                "SELECT messages FROM trajectories WHERE split = 'train' ORDER BY trajectory_id "
                "LIMIT ?",
                [NUM_OPEN_PROMPTS],
            ).fetchall()
        talks = [json.loads(messages) for (messages,) in rows]
        said = [next(m["content"] for m in talk if m["role"] == "user") for talk in talks]
        lines = (json.dumps({"prompt": text}) for text in dict.fromkeys(said))
        write_atomic(path, ("\n".join(lines) + "\n").encode())
        return path

    def _score(self, scorings: Mapping[str, Sequence[str]]) -> None:
        left = [name for name in scorings if not (self.folder / name / SCORES).exists()]
        if not left:
            return
        self._say("scoring")
        began = time.monotonic()
        commands = [self._scoring(name, scorings[name]) for name in left]
        for first in range(0, len(commands), 2):
            threads = {"OMP_NUM_THREADS": half_the_cores()}
            together(commands[first : first + 2], self._log, threads)
        self._add("scoring", time.monotonic() - began)

    def _scoring(self, name: str, changed: Sequence[str]) -> list[str]:
        given = {
            "model": self._run / "model",
            "dataset": self.proof.data,
            "out": self.folder / name,
        }
        changes = [f"{key}={toml_value(value)}" for key, value in given.items()]
        return ["trainer", "eval", str(CONFIGS / "scores.toml"), *_set([*changes, *changed])]

    def _say(self, what: str) -> None:
        print(f"{self.arm.name}: {what} (follow it in {self._log})", file=sys.stderr, flush=True)

    def _add(self, what: str, seconds: float) -> None:
        spent = self.seconds()
        spent[what] = spent.get(what, 0.0) + seconds
        write_atomic(self._clock, json.dumps(spent).encode())


def _set(changes: Sequence[str]) -> list[str]:
    return [word for one in changes for word in ("--set", one)]
