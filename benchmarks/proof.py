"""Does the data teach? A small model from nothing, before and after fine-tuning, on unseen tasks.

    python benchmarks/proof.py [--seeds 1] [--out data/proof] [--short]

For each seed: a dataset is made (configs/proof/data.toml); a model is pretrained on prose and on
made-up texts that say things twice (`drills.py`: to copy is learnt there), fine-tuned on what was
accepted, and scored by playing tasks that it has not seen, with tools and domains that it has not
seen beside them. The baselines play the same tasks: the model that was only pretrained; one
fine-tuned for as many tokens on all trajectories, accepted or not; and the nearest example of the
training data. What is there already is kept: a proof that was stopped goes on.

The table goes to stdout, and to `<out>/proof.md`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drills import drills, echoes, words_of, write_texts
from benchmarks.measured import machine
from benchmarks.prose import write_prose
from records.files import write_atomic
from records.settings import read_settings, validate_as
from records.store.dataset import Dataset
from synth.episode.environment import OUTSIDE
from synth.rubrics.criteria import Rubric
from trainer.data.sources import CorpusConfig, ViewName
from trainer.data.tokenizer import load_tokenizer
from trainer.evaluation.run import SCORES, ScoreConfig, policy_of, score_policy
from trainer.evaluation.scores import KINDS, Share, told
from trainer.inference.policies import NearestExample, Policy
from trainer.training.loop import tokenizer_of

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs" / "proof"

ECHOES, DRILLS = 80_000, 20_000
"""Texts of some 30 tokens and of some 180: about as many tokens as are read."""

VOCABULARY = 2048
"""Few tokens, so that each is met often and copying is learnt of all of them."""

SHORT: dict[str, tuple[str, ...]] = {
    "data": ("num_tasks=300",),
    "pretrain": ("steps=20",),
    "sft": ("steps=20",),
    "scores": ("tasks=5", "complexities=[]"),
}
"""Shows every part at work within a few minutes; a model so young can do next to nothing."""

TRAINED = {
    "sft": "fine-tuned on accepted trajectories",
    "unfiltered": "fine-tuned on all trajectories",
    "pretrained": "pretrained only",
}
POLICIES = {
    "sft": TRAINED["sft"],
    "sft-constrained": f"{TRAINED['sft']}, constrained decoding",
    "unfiltered": f"{TRAINED['unfiltered']}, as many tokens",
    "pretrained": TRAINED["pretrained"],
    "pretrained-constrained": f"{TRAINED['pretrained']}, constrained decoding",
    "nearest": "nearest training example",
    "teacher": "the teacher: offline model, clumsy",
}
"""Rows of the table, in their order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1, help="runs with seeds 0, 1, ...")
    parser.add_argument("--out", type=Path, default=Path("data/proof"))
    parser.add_argument("--short", action="store_true", help="minutes instead of 90")
    args = parser.parse_args()
    proofs = [
        Proof(args.out / f"seed-{seed}", seed, short=args.short) for seed in range(args.seeds)
    ]
    for proof in proofs:
        proof.run()
    text = report(proofs, short=args.short)
    write_atomic(args.out / "proof.md", text.encode())
    print(text)


class Proof:
    """One seed, in a folder of its own."""

    def __init__(self, folder: Path, seed: int, *, short: bool) -> None:
        self.folder, self.seed, self.short = folder, seed, short
        self.data = folder / "data"
        self._clock, self._log = folder / "seconds.json", folder / "log.txt"

    def run(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._timed("data", self._make_data)
        self._timed("pretraining", self._pretrain)
        self._timed("fine-tuning, both at once", self._fine_tune)
        self._timed("scoring", self._score)

    def _make_data(self) -> None:
        words = self._config("data", seed=self.seed)
        self._run("flows.cli.main", "run", *words, "--dataset", self.data)

    def _pretrain(self) -> None:
        prose, told_twice = self.folder / "prose.jsonl", self.folder / "drills.jsonl"
        echoed, tokenizer = self.folder / "echoes.jsonl", self.folder / "tokenizer"
        shorter = 20 if self.short else 1
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
        together([self._training("pretrain", "pretrained", *texts, tokenizer=tokenizer)], self._log)

    def _fine_tune(self) -> None:
        everything = self.folder / "unfiltered.jsonl"
        if not everything.exists():
            write_unfiltered(Dataset.open(self.data), everything)
        start = {"start_from": self.folder / "pretrained" / "model"}
        runs = [
            self._training("sft", "sft", CorpusConfig(path=str(self.data)), **start),
            self._training("sft", "unfiltered", CorpusConfig(path=str(everything)), **start),
        ]
        # a thread each: two models of this size gain more side by side than one from two threads
        together(runs, self._log, {"OMP_NUM_THREADS": _half_the_cores()})

    def _score(self) -> None:
        asked = [(name, self._score_words(name, name)) for name in TRAINED]
        for name in ("sft", "pretrained"):
            words = self._score_words(name, f"{name}-constrained", constrained=True)
            asked.append((f"{name}-constrained", words))
        left = [
            ["trainer", "eval", *words]
            for name, words in asked
            if not self._is_scored(name, self._score_config(*words))
        ]
        for first in range(0, len(left), 2):
            together(left[first : first + 2], self._log, {"OMP_NUM_THREADS": _half_the_cores()})
        config = self._score_config(*self._score_words("sft", "nearest"))
        if not self._is_scored("nearest", config):
            nearest = NearestExample(CorpusConfig(path=str(self.data)))
            policy = SameTasks(nearest, policy_of(config))
            score_policy(policy, config, Path(config.out), about="nearest")

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

    def _training(
        self, stage: ViewName, name: str, *sources: CorpusConfig, **places: Path
    ) -> list[str]:
        """The command of a training run. `places`: `start_from`, or the tokenizer."""
        settings: dict[str, Any] = {"out": self.folder / name, "seed": self.seed, **places}
        if "tokenizer" in settings:
            settings["data.tokenizer"] = settings.pop("tokenizer")
        tables = (f'{{path = "{source.path}", weight = {source.weight}}}' for source in sources)
        settings["data.sources"] = f"[{', '.join(tables)}]"
        return ["trainer", stage, *self._config(stage, **settings)]

    def _config(self, name: str, **settings: Any) -> list[str]:
        """A config file and what is changed of it, as words of a command."""
        changes = [f"{key}={_toml(value)}" for key, value in settings.items()]
        if self.short:
            changes += SHORT[name]
        return [str(CONFIGS / f"{name}.toml"), *(w for one in changes for w in ("--set", one))]

    def _run(self, *command: Any) -> None:
        together([[str(word) for word in command]], self._log)

    def _timed(self, what: str, work: Callable[[], None]) -> None:
        """Seconds add up over the runs that it took."""
        begun = time.monotonic()
        print(f"seed {self.seed}: {what} (follow it in {self._log})", file=sys.stderr, flush=True)
        try:
            work()
        finally:
            seconds = self.seconds()
            seconds[what] = seconds.get(what, 0.0) + time.monotonic() - begun
            write_atomic(self._clock, json.dumps(seconds).encode())

    def seconds(self) -> dict[str, float]:
        return json.loads(self._clock.read_text()) if self._clock.exists() else {}

    def scores(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / "scores" / name / SCORES).read_text())


class SameTasks:
    """Answers of one policy on the tasks that another is asked, which its tokens decide."""

    def __init__(self, answering: Policy, measuring: Policy) -> None:
        self.answers, self.prompt_tokens = answering.answers, measuring.prompt_tokens


def _half_the_cores() -> str:
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


def teacher_scores(proof: Proof, what: str) -> dict[str, Share]:
    """Split -> how the offline model itself did on the tasks that the models were scored on."""
    asked = {
        one["task_id"]: one["split"]
        for one in proof.scores("sft")["episodes"]
        if what == "success" or one["solvable"]
    }
    dataset = Dataset.open(proof.data)
    pass_threshold = {
        row["task_id"]: Rubric.model_validate(row["rubric"]).pass_threshold
        for row in dataset.rows("tasks", ("task_id", "rubric"))
        if row["task_id"] in asked
    }
    hits: dict[str, list[bool]] = {}
    columns = ("trajectory_id", "task_id", "objective_reward", "termination_reason")
    for row in dataset.rows("trajectories", columns):
        if (task := row["task_id"]) in asked and row["termination_reason"] not in OUTSIDE:
            good = row["objective_reward"] >= pass_threshold[task]
            hits.setdefault(asked[task], []).append(good)
    return {split: Share(sum(found), len(found)) for split, found in hits.items()}


YOUNG = (
    "**The short form: every part at work.** The models have seen 20 steps and can do nothing yet; "
    "`make proof` is the measurement."
)

MORE = (
    ("solved", "Task success, of tasks that can be solved"),
    ("exact_calls", "Calls of the reference plan made with the same arguments"),
    ("without_breach", "Episodes in which no policy was broken"),
)


def report(proofs: Sequence[Proof], *, short: bool) -> str:
    """Markdown: success and validity by policy and split, over all seeds together; in the short
    form no more than that the parts work."""
    made = machine()
    command = f"python benchmarks/proof.py --seeds {len(proofs)}{' --short' if short else ''}"
    parts = [
        "# Does the data teach?",
        f"    {command}\n\nCommit {made['commit']}, {made['hardware']}, load at the start "
        f"{made['load']}, {len(proofs)} seed(s). Data by the **offline "
        "model**, whose language is regular; a real model's data would be harder to learn from and "
        "worth more. Shares with 95% intervals (Wilson), episodes of all seeds together."
        + (f"\n\n{YOUNG}" if short else ""),
        _table(proofs, "success", "Task success"),
        _table(proofs, "valid_calls", "Valid calls"),
        *(() if short else (_table(proofs, *what) for what in MORE)),
        "## What it took\n\n" + "\n".join(_cost(proof) for proof in proofs),
    ]
    return "\n\n".join(parts) + "\n"


def _table(proofs: Sequence[Proof], what: str, title: str) -> str:
    splits = [one["split"] for one in proofs[0].scores("sft")["scores"]]
    lines = [
        f"## {title}\n",
        f"| | {' | '.join(KINDS[split] for split in splits)} |",
        f"|---|{'---|' * len(splits)}",
    ]
    for name, words in POLICIES.items():
        found = [shares_of(proof, name, what) for proof in proofs]
        if not all(found):
            continue
        cells = [told(_sum([shares[s] for shares in found if s in shares])) for s in splits]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shares_of(proof: Proof, name: str, what: str) -> dict[str, Share]:
    if name == "teacher":
        return teacher_scores(proof, what) if what in ("success", "solved") else {}
    rows = proof.scores(name)["scores"]
    return {row["split"]: Share(row[what]["hits"], row[what]["n"]) for row in rows}


def _sum(shares: Sequence[Share]) -> Share:
    return Share(sum(s.hits for s in shares), sum(s.n for s in shares))


def _cost(proof: Proof) -> str:
    seconds = proof.seconds()
    told_ = ", ".join(f"{what} {took / 60:.1f}" for what, took in seconds.items())
    total = sum(seconds.values()) / 60
    return f"- seed {proof.seed}: {total:.1f} minutes ({told_}); {_sizes(proof)}"


def _sizes(proof: Proof) -> str:
    with Dataset.open(proof.data).connect() as db:
        [(made, kept)] = db.execute(
            "SELECT count(*), count(*) FILTER (accepted AND split = 'train') FROM trajectories"
        ).fetchall()
    why = proof.scores("sft")["left_out"]
    left_out = ", ".join(f"{count} {reason}" for reason, count in why.items()) or "none"
    return f"{made} trajectories, {kept} of them learnt from; tasks left out of scoring: {left_out}"


def _toml(value: Any) -> str:
    """`true`, a quoted path, a number, or what is TOML already."""
    return (
        json.dumps(str(value))
        if isinstance(value, Path)
        else json.dumps(value)
        if isinstance(value, bool)
        else str(value)
    )


if __name__ == "__main__":
    main()
