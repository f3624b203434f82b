"""One seed of the proof, in a folder of its own: data, training, scores; what is there is kept."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.drill_conversations import drill_conversations, write_conversations
from benchmarks.drills import drills, echoes, words_of, write_texts
from benchmarks.proof.pace import (
    DRILLING,
    PRETRAINING,
    SCORING_MINUTES,
    TRIED,
    kept_steps,
    step_seconds,
    steps_within,
)
from benchmarks.proof.slots import CopySlots
from benchmarks.prose import write_prose
from records.files import write_atomic
from records.settings import read_settings, validate_as
from records.store.dataset import Dataset
from trainer.data.sources import CorpusConfig, ViewName
from trainer.data.tokenizer import load_tokenizer
from trainer.evaluation.playing import EpisodeScore
from trainer.evaluation.scoring import SCORES, ScoreConfig, policy_of, score_policy
from trainer.inference.policies import NearestExample, Policy
from trainer.training.loop import tokenizer_of

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs" / "proof"

ECHOES, DRILLS = 80_000, 20_000
"""Texts of some 30 tokens and of some 180: about as many tokens as are read."""

CONVERSATIONS = 6_000
"""Made-up ones, of some 1,700 tokens."""

VOCABULARY = 2048
"""Few tokens, so that each is met often and copying is learnt of all of them."""

PACE_ROWS = 200
"""Conversations that the pace of fine-tuning is taken on."""

SHORT: dict[str, tuple[str, ...]] = {
    "data": ("num_tasks=400",),
    "pretrain": ("steps=20",),
    "drills": ("steps=20",),
    "sft": ("steps=20",),
    "scores": ("tasks=2", 'complexities=["simple"]'),
}
"""Shows every part at work within a few minutes; a model so young can do next to nothing."""

STAGES: dict[str, ViewName] = {"pretrain": "pretrain", "drills": "sft", "sft": "sft"}
"""By config, in their order: what the trainer is asked for."""

TRAINED = ("sft", "unfiltered", "drilled")


class SeedRun:
    def __init__(self, folder: Path, seed: int, *, budget_min: float, short: bool) -> None:
        self.folder, self.seed = folder, seed
        self._budget_min, self._short = budget_min, short
        self.data = folder / "data"
        self._clock, self._log = folder / "seconds.json", folder / "log.txt"
        self._steps = folder / "steps.json"

    def run(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._timed("data", self._make_data)
        self._timed("pretraining", self._pretrain)
        self._timed("made-up conversations", self._drill)
        self._timed("fine-tuning, both at once", self._fine_tune)
        self._timed("scoring", self._score)

    def _make_data(self) -> None:
        words = self._config("data", seed=self.seed)
        self._run("flows.cli.main", "run", *words, "--dataset", self.data)

    def _pretrain(self) -> None:
        prose, told_twice = self.folder / "prose.jsonl", self.folder / "drills.jsonl"
        echoed, tokenizer = self.folder / "echoes.jsonl", self.folder / "tokenizer"
        shorter = 20 if self._short else 1
        if not prose.exists():
            write_prose(prose)
        if not told_twice.exists():
            write_texts(told_twice, drills(DRILLS // shorter, self.seed))
        if not tokenizer.exists():  # of the conversations, too: it has to be short on them
            views: dict[Path, ViewName] = {
                self.data: "sft",
                told_twice: "pretrain",
                prose: "pretrain",
            }
            sources: list[tuple[CorpusConfig, ViewName]] = [
                (CorpusConfig(path=str(path)), view) for path, view in views.items()
            ]
            tokenizer_of(sources, vocab_size=VOCABULARY).save(tokenizer)
        if not echoed.exists():
            words = words_of(load_tokenizer(tokenizer))
            write_texts(echoed, echoes(ECHOES // shorter, words, self.seed))
        texts = (CorpusConfig(path=str(text)) for text in (echoed, told_twice, prose))
        given = {"tokenizer": tokenizer}
        words = self._training("pretrain", "pretrained", *texts, **given)
        if "pretrain" not in self.steps():
            pace = CorpusConfig(path=str(told_twice))
            step_s = self._pace([self._training("pretrain", "pace", pace, **given)], {})
            self._decide("pretrain", self._minutes_to_train() * PRETRAINING, step_s)
        together([[*words, *self._as_many("pretrain")]], self._log)

    def _drill(self) -> None:
        made_up = self.folder / "conversations.jsonl"
        shorter = 20 if self._short else 1
        if not made_up.exists():
            words = words_of(load_tokenizer(self.folder / "tokenizer"))
            rows = drill_conversations(CONVERSATIONS // shorter, words, self.seed)
            write_conversations(made_up, rows)
        source = CorpusConfig(path=str(made_up))
        start = {"start_from": self.folder / "pretrained" / "model"}
        if "drills" not in self.steps():
            few = self._few_of(made_up)
            step_s = self._pace([self._training("drills", "pace", few, **start)], {})
            self._decide("drills", self._minutes_to_train() * DRILLING, step_s)
        command = [*self._training("drills", "drilled", source, **start), *self._as_many("drills")]
        together([command], self._log)

    def _few_of(self, rows: Path) -> CorpusConfig:
        """The first rows of a file, which the pace of a training is taken on."""
        few = self.folder / "pace.jsonl"
        with rows.open(encoding="utf-8") as file:
            few.write_text("".join(islice(file, PACE_ROWS)))
        return CorpusConfig(path=str(few))

    def _fine_tune(self) -> None:
        everything = self.folder / "unfiltered.jsonl"
        if not everything.exists():
            write_unfiltered(Dataset.open(self.data), everything)
        start = {"start_from": self.folder / "drilled" / "model"}
        sources = {"sft": self.data, "unfiltered": everything}
        # a thread each: two models of this size gain more side by side than one from two threads
        threads = {"OMP_NUM_THREADS": half_the_cores()}
        if "sft" not in self.steps():
            few = self._few_of(everything)
            paces = [self._training("sft", name, few, **start) for name in ("pace", "pace-2")]
            self._decide("sft", self._minutes_to_train(), self._pace(paces, threads))
        runs = [
            [
                *self._training("sft", name, CorpusConfig(path=str(path)), **start),
                *self._as_many("sft"),
            ]
            for name, path in sources.items()
        ]
        together(runs, self._log, threads)

    def _pace(self, runs: Sequence[Sequence[str]], env: Mapping[str, str]) -> float:
        """Seconds of a step of runs side by side, by a few steps of each."""
        folders = [
            self.folder / "paces" / str(len(self.steps())) / str(n) for n in range(len(runs))
        ]
        changes = ("--set", f"steps={TRIED}")
        asked = [
            [*run, *changes, "--set", f"out={toml_value(folder)}"]
            for run, folder in zip(runs, folders, strict=True)
        ]
        together(asked, self._log, env)
        return max(map(step_seconds, folders))

    def _minutes_to_train(self) -> float:
        """What is left of the budget when the scoring has its time."""
        spent = sum(self.seconds().values()) / 60 + self._running_min()
        return self._budget_min - spent - SCORING_MINUTES

    def _decide(self, stage: str, minutes: float, step_s: float) -> None:
        wanted = read_settings(CONFIGS / f"{stage}.toml", SHORT[stage] if self._short else ())
        steps = steps_within(minutes, step_s, wanted["steps"])
        taken = steps.wanted if self._short else steps.taken
        write_atomic(self._steps, json.dumps(self.steps() | {stage: taken}).encode())

    def _as_many(self, stage: str) -> list[str]:
        return ["--set", f"steps={self.steps()[stage]}"]

    def steps(self) -> dict[str, int]:
        """Of each training, as decided when it began."""
        return kept_steps(self._steps)

    def _score(self) -> None:
        asked = [(name, self._score_words(name, name)) for name in TRAINED]
        asked.insert(
            1, ("sft-constrained", self._score_words("sft", "sft-constrained", constrained=True))
        )
        left = [
            ["trainer", "eval", *words]
            for name, words in asked
            if not self._is_scored(name, self._score_config(*words))
        ]
        for first in range(0, len(left), 2):
            together(left[first : first + 2], self._log, {"OMP_NUM_THREADS": half_the_cores()})
        copying: dict[str, Callable[[CorpusConfig], Policy]] = {
            "nearest": NearestExample,
            "slots": CopySlots,
        }
        for name, policy in copying.items():
            config = self._score_config(*self._score_words("sft", name))
            if not self._is_scored(name, config):
                answering = policy(CorpusConfig(path=str(self.data)))
                same = SameTasks(answering, policy_of(config))
                score_policy(same, config, Path(config.out), about=name)

    def _score_words(self, model: str, name: str, **settings: bool) -> list[str]:
        return self._config("scores", **self._places(model, name), **settings)

    def _score_config(self, path: str, *changes: str) -> ScoreConfig:
        values = read_settings(Path(path), changes[1::2])  # every other word is `--set`
        return validate_as(ScoreConfig, values, where=path)

    def _is_scored(self, name: str, config: ScoreConfig) -> bool:
        """Under the same settings. A model that was trained further asks for an empty folder."""
        made = self.folder / "scores" / name / SCORES
        return made.exists() and self.scores(name)["config"] == config.model_dump(mode="json")

    def _places(self, model: str, name: str) -> dict[str, Path]:
        out = self.folder / "scores" / name
        return {"model": self.folder / model, "dataset": self.data, "out": out}

    def _training(self, stage: str, name: str, *sources: CorpusConfig, **places: Path) -> list[str]:
        """The command of a training run. `places`: `start_from`, or the tokenizer."""
        settings: dict[str, Any] = {"out": self.folder / name, "seed": self.seed, **places}
        if "tokenizer" in settings:
            settings["data.tokenizer"] = settings.pop("tokenizer")
        tables = (f'{{path = "{source.path}", weight = {source.weight}}}' for source in sources)
        settings["data.sources"] = f"[{', '.join(tables)}]"
        return ["trainer", STAGES[stage], *self._config(stage, **settings)]

    def _config(self, name: str, **settings: Any) -> list[str]:
        """A config file and what is changed of it, as words of a command."""
        changes = [f"{key}={toml_value(value)}" for key, value in settings.items()]
        if self._short:
            changes += SHORT[name]
        return [str(CONFIGS / f"{name}.toml"), *(w for one in changes for w in ("--set", one))]

    def _run(self, *command: Any) -> None:
        together([[str(word) for word in command]], self._log)

    def _timed(self, what: str, work: Callable[[], None]) -> None:
        """Seconds add up over the runs that it took."""
        self._begun = time.monotonic()
        print(f"seed {self.seed}: {what} (follow it in {self._log})", file=sys.stderr, flush=True)
        try:
            work()
        finally:
            seconds = self.seconds()
            seconds[what] = seconds.get(what, 0.0) + time.monotonic() - self._begun
            write_atomic(self._clock, json.dumps(seconds).encode())

    def _running_min(self) -> float:
        """Of the part that is going on."""
        return (time.monotonic() - self._begun) / 60

    def seconds(self) -> dict[str, float]:
        return json.loads(self._clock.read_text()) if self._clock.exists() else {}

    def scores(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / "scores" / name / SCORES).read_text())

    def episodes(self, name: str) -> list[EpisodeScore]:
        return [EpisodeScore(**one) for one in self.scores(name)["episodes"]]


class SameTasks:
    """Answers of one policy on the tasks that another is asked, which its tokens decide."""

    def __init__(self, answering: Policy, measuring: Policy) -> None:
        self.answers, self.prompt_tokens = answering.answers, measuring.prompt_tokens


def half_the_cores() -> str:
    """Threads of each of two processes."""
    return str(max(1, (os.cpu_count() or 2) // 2))


def together(commands: Sequence[Sequence[str]], log: Path, env: Mapping[str, str] = {}) -> None:
    """Run modules side by side; what they say goes to `log`. The first that fails ends the proof,
    with its last words."""
    with log.open("ab") as file:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env={**os.environ, **env},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            for words in commands
        ]
        codes = [one.wait() for one in running]
    for words, code in zip(commands, codes, strict=True):
        if code:
            said = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
            sys.exit(
                f"{said}\n{words[0]} {words[1]} ended with exit code {code}; all that was said is "
                f"in {log}; start the proof again to go on"
            )


def write_unfiltered(dataset: Dataset, path: Path) -> None:
    """All trajectories of the training split that ended by themselves, every assistant turn to be
    learnt: what one would have without rubrics, checks and curation."""
    with dataset.connect() as db:
        rows = db.execute(
            "SELECT trajectory_id, split, messages, tools FROM trajectories WHERE split = 'train' "
            "AND termination_reason NOT IN ('user_error', 'infra_error') ORDER BY trajectory_id"
        )
        names = [column[0] for column in rows.description or ()]
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows.fetchall())
        write_atomic(path, ("\n".join(lines) + "\n").encode())


def toml_value(value: Any) -> str:
    """`true`, a quoted path, a number, or what is TOML already."""
    return (
        json.dumps(str(value))
        if isinstance(value, Path)
        else json.dumps(value)
        if isinstance(value, bool)
        else str(value)
    )
