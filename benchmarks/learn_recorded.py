"""Conversations of real language models on their way through the program, to a model that learns.

    python -m benchmarks.learn_recorded [--out data/recorded] [--steps 200] [--pretrain-steps 150]

The recordings (`benchmarks.recorded_episodes`) become a dataset. It is graded and curated by the
stages of `synth grade`, with the offline model as judge, whose word does not count on what another
model said; exported as `synth export --include-code-alone --include-heldout --reasoning field`
does; and learnt by `python -m trainer sft`: by a tiny model from nothing, and by one that has read
prose before. Held-out conversations are never learnt; the validation loss is of them.

Markdown goes to stdout: at each station how many conversations come and stay, and why each other
one goes. Counts that do not add up end the program. `--steps 0` stops before the training,
`--pretrain-steps 0` leaves out the second model. `--out` must not hold an earlier try.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measured import machine
from benchmarks.prose import write_prose
from benchmarks.recorded_episodes import ReadRecordings, RecordedEpisode, read_recordings
from benchmarks.recorded_learning import (
    ReadBack,
    arguments_in,
    conversations_of,
    held_out_loss,
    read_back,
    run_trainer,
)
from benchmarks.recorded_rows import trajectory_id, write_episodes
from benchmarks.recorded_stations import (
    Station,
    account_for,
    export,
    grade,
    in_view,
    stations_of,
)
from records.chat.declarations import Style
from records.errors import ConfigError
from records.tables.schemas import Row
from trainer.data.chat_format import ChatFormat
from trainer.data.corpus import open_corpus
from trainer.data.documents import has_reasoning
from trainer.data.sources import CorpusConfig, ViewName
from trainer.data.tokenizer import Tokenizer, load_tokenizer
from trainer.model.config import PRESETS
from trainer.training.loop import tokenizer_of
from trainer.training.metrics import read_metrics
from trainer.training.run_folder import MODEL, TOKENIZER, TOKENS

VOCABULARY = 4096

DECLARATIONS: Style = "typescript"

SMALLER = {"num_layers": 2, "num_experts": 8}
"""Than the tiny preset: rows of thousands of tokens are what takes the time."""

ROW_MULTIPLE = 64
"""A row has room for the longest conversation, rounded up to a multiple of so many tokens."""


class RecordedData:
    """The dataset of some recordings in `out`, graded, curated and exported; made once."""

    def __init__(self, read: ReadRecordings, out: Path) -> None:
        if out.exists():
            raise ConfigError(f"{out} holds an earlier try; remove it, or choose another --out")
        self.read, self.out = read, out
        self.dataset = write_episodes(out / "dataset", read.episodes)
        asyncio.run(grade(self.dataset.root))
        self.exported = export(self.dataset, out / "export")
        self._episodes = {trajectory_id(episode): episode for episode in read.episodes}

    @property
    def rows(self) -> CorpusConfig:
        """All that was exported; the trainer leaves out what is held out."""
        return CorpusConfig(path=str(self.out / "export" / "data"))

    @property
    def held_out_rows(self) -> list[CorpusConfig]:
        files = sorted(Path(self.rows.path).glob("heldout_*.parquet"))
        return [CorpusConfig(path=str(file), held_out=True) for file in files]

    def stations(self) -> list[Station]:
        """Up to the export."""
        read = self.read
        stayed = read.recordings - read.left_out.total()
        first = Station("reading", read.recordings, stayed, read.left_out)
        return [first, *stations_of(self.dataset, self.exported)]

    def fates(self) -> Counter[tuple[str, str, str]]:
        """Conversations by origin, by what is known of them, and by what curation made of them."""
        told = self._with_episodes(self.dataset.rows("curation"))
        return Counter(
            (episode.origin, episode.known_as, row["drop_reason"] or "accepted")
            for row, episode in told
        )

    def learnt_as(self) -> Counter[str]:
        """What is known of the accepted conversations that may be learnt."""
        told = self._with_episodes(self.dataset.rows("curation"))
        return Counter(
            episode.known_as for row, episode in told if row["accepted"] and row["split"] == "train"
        )

    def _with_episodes(self, rows: Sequence[Row]) -> list[tuple[Row, RecordedEpisode]]:
        stored = self.dataset.rows("trajectories", ["trajectory_id", "episode_id"])
        episode_of = {row["trajectory_id"]: row["episode_id"] for row in stored}
        return [(row, self._episodes[episode_of[row["trajectory_id"]]]) for row in rows]

    def reordered(self) -> tuple[int, int]:
        """(calls whose arguments are exported as another text than the model wrote, calls)."""
        stored = {
            row["trajectory_id"]: arguments_in(row["messages"])
            for row in self.dataset.rows("trajectories", ["trajectory_id", "messages"])
        }
        pairs = []
        for file in sorted(Path(self.rows.path).glob("*.parquet")):
            for row in exported_rows(file):
                back = arguments_in(row["messages"])
                pairs += zip(stored[row["trajectory_id"]], map(_as_written, back), strict=True)
        return sum(one != other for one, other in pairs), len(pairs)


def exported_rows(file: Path) -> list[Row]:
    rows = pq.read_table(file, columns=["trajectory_id", "messages"]).to_pylist()
    return [row | {"messages": json.loads(row["messages"])} for row in rows]


def _as_written(arguments: Any) -> str:
    """As the trainer writes arguments that come as an object."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def data_told(data: RecordedData) -> str:
    """The stations up to the export, and what is known of what passed them."""
    lines = ["## Stations", "", *account_for(data.stations()), ""]
    lines.append(
        f"The view `sft` has {in_view(data.dataset)} of the accepted conversations: code alone "
        "accepted them all."
    )
    lines += ["", "| origin | known to be | curation by code alone | conversations |"]
    lines.append("|---|---|---|---|")
    lines += [f"| {' | '.join(key)} | {n} |" for key, n in sorted(data.fates().items())]
    lines += ["", "| accepted, not held out, and known to be | conversations |", "|---|---|"]
    lines += [f"| {known} | {n} |" for known, n in sorted(data.learnt_as().items())]
    changed, calls = data.reordered()
    lines += ["", f"Calls exported with another text than the model's: {changed} of {calls}."]
    return "\n".join(lines)


def read_back_told(found: ReadBack, declared: str) -> str:
    lost = ", ".join(f"{n} {what}" for what, n in sorted(found.lost.items())) or "nothing"
    return (
        f"| {declared} | {found.conversations} | {found.messages} | {found.calls} | "
        f"{found.thoughts} | {lost} | {found.longest:,} |"
    )


class RecordedTraining:
    """Models that learn the exported conversations, in folders beside them."""

    def __init__(self, data: RecordedData) -> None:
        self.data, self.out = data, data.out
        self.prose = self.out / "prose.jsonl"
        write_prose(self.prose)
        # of what may be learnt alone: a tokenizer is trained, too
        train = CorpusConfig(path=str(next(Path(data.rows.path).glob("train-*.parquet"))))
        views: list[tuple[CorpusConfig, ViewName]] = [
            (train, "sft"),
            (CorpusConfig(path=str(self.prose)), "pretrain"),
        ]
        tokenizer_of(views, vocab_size=VOCABULARY).save(self.out / TOKENIZER)
        self.tokenizer: Tokenizer = load_tokenizer(self.out / TOKENIZER)
        # where one answer has a thought, the trainer writes the marks of thoughts in all
        thinking = any(map(has_reasoning, conversations_of(data.rows)))
        self.chat = ChatFormat(declarations=DECLARATIONS, thinking=thinking)
        self.read_back = read_back(conversations_of(data.rows), self.tokenizer, self.chat)
        self.row_tokens = -(-self.read_back.longest // ROW_MULTIPLE) * ROW_MULTIPLE

    def from_nothing(self, steps: int) -> Path:
        return self._fine_tuned("from-nothing", steps, {"shape": self._shape()})

    def pretrained(self, steps: int, pretrain_steps: int) -> Path:
        before = self.out / "prose-model"
        settings = {"out": before, "steps": pretrain_steps, "peak_lr": 4e-3, "preset": "tiny"}
        data = {"row_tokens": 256, "batch_rows": 16, "micro_rows": 8}
        data |= {"sources": [{"path": self.prose}], "tokenizer": self.out / TOKENIZER}
        whole = settings | {"shape": self._shape(), "data": data}
        run_trainer("pretrain", self.out / "prose-model.toml", whole)
        return self._fine_tuned("pretrained", steps, {"start_from": before / MODEL})

    def _shape(self) -> Row:
        """The tiny preset, made smaller, with positions for the longest conversation."""
        sizes = SMALLER | {"max_positions": self.row_tokens}
        shape = PRESETS["tiny"].model_copy(update=sizes)
        return shape.model_dump(mode="json", exclude_none=True)

    def _fine_tuned(self, name: str, steps: int, start: Mapping[str, Any]) -> Path:
        folder = self.out / name
        settings = {"out": folder, "steps": steps, "peak_lr": 2e-3, **start}
        data = {
            "sources": [{"path": self.data.rows.path}],
            "tokenizer": self.out / TOKENIZER,
            "declarations": DECLARATIONS,
            "row_tokens": self.row_tokens,
            "batch_rows": 1,
            "micro_rows": 1,
        }
        run_trainer("sft", self.out / f"{name}.toml", settings | {"data": data})
        return folder

    def told(self, runs: Mapping[str, Path]) -> str:
        """What each run learnt, and its losses."""
        lines = ["## Tokens read back", ""]
        lines.append(
            "| declarations | conversations | messages of the assistant | calls | thoughts | lost "
            "| longest, tokens |"
        )
        lines.append("|---|---|---|---|---|---|---|")
        lines.append(read_back_told(self.read_back, DECLARATIONS))
        told_as_json = self.chat.model_copy(update={"declarations": "json"})
        as_json = read_back(conversations_of(self.data.rows), self.tokenizer, told_as_json)
        lines += [read_back_told(as_json, "json"), "", "## Trained", ""]
        exported = sum(self.data.exported.rows.values())
        for number, folder in enumerate(runs.values()):
            table = account_for([self._trainer_station(folder, exported)])
            lines += table[2:] if number else table  # one head for all
        lines += [
            "",
            "| model | tokens of the corpus | learnt of them | learnt in training | loss, first "
            "tenth | last tenth | validation loss | validation tokens |",
            "|---|---|---|---|---|---|---|---|",
        ]
        return "\n".join([*lines, *(self._run_told(name, run) for name, run in runs.items())])

    def _trainer_station(self, folder: Path, exported: int) -> Station:
        corpus = open_corpus(folder / TOKENS)
        return Station(f"trainer, {folder.name}", exported, corpus.rows, corpus.left_out)

    def _run_told(self, name: str, folder: Path) -> str:
        corpus, lines = open_corpus(folder / TOKENS), read_metrics(folder)
        tenth = max(1, len(lines) // 10)
        first, last = (sum(x["loss"] for x in p) / tenth for p in (lines[:tenth], lines[-tenth:]))
        loss, tokens = held_out_loss(
            folder,
            self.data.held_out_rows,
            self.row_tokens,
            folder / "held-out-tokens",
        )
        learnt = sum(line["targets"] for line in lines)
        return (
            f"| {name} | {corpus.num_tokens:,} | {int(corpus.learnt.sum()):,} | {learnt:,} | "
            f"{first:.3f} | {last:.3f} | {loss:.3f} | {tokens:,} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("data/recorded"))
    parser.add_argument("--steps", type=int, default=200, help="of fine-tuning")
    parser.add_argument("--pretrain-steps", type=int, default=150, help="on prose, before")
    args = parser.parse_args()
    data = RecordedData(read_recordings(), args.out)
    made = machine()
    print(f"Commit {made['commit']}, {made['hardware']}, load {made['load']}.\n", flush=True)
    print(data_told(data), flush=True)
    if args.steps:
        training = RecordedTraining(data)
        runs = {"from nothing": training.from_nothing(args.steps)}
        if args.pretrain_steps:
            runs["pretrained on prose"] = training.pretrained(args.steps, args.pretrain_steps)
        print("\n" + training.told(runs))


if __name__ == "__main__":
    main()
