"""What decontamination and near-duplicates find, and what they take for one, by method.

    python -m benchmarks.bench_decontamination leaks [--embedder FOLDER] [--dataset D]
    python -m benchmarks.bench_decontamination duplicates --dataset D

`leaks`: 48 invented tasks (`benchmarks/leaks/tasks.jsonl`), each leaked into a conversation as it
is, with other names, with a word in six left out, in other words (written by hand, with the same
names), and in other words with other names. 24 tasks are for choosing thresholds, the other 24 for
reporting only. False alarms are counted on the tasks of the half that is not in the index, in all
five forms, and on the conversations of a dataset if one is given. FOLDER is a model of
sentence-transformers, which is served here over HTTP and asked as any embedder.

`duplicates`: conversations of the dataset are planted again as they are, with a greeting before
each turn, with words left out, and with numbers and names changed. Prints one JSON line per figure.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.curation.duplicates import conversation_text
from synth.curation.embedding import NearestPassages
from synth.curation.evaluation_index import EvaluationIndex
from synth.curation.leaks import LookedThrough, embedded_passages, leaks_of
from synth.curation.passages import trajectory_texts
from synth.curation.settings.config import DecontaminationConfig
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from synth.matching.similarity import near_repeats, sketch
from synth.render.intervals import wilson

TASKS = Path(__file__).parent / "leaks" / "tasks.jsonl"

HALVES = ("development", "reporting")

METHODS = ("ngrams", "minhash", "embedder")

GREETING = "Good morning, and thank you for your time."

COSINES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.8)
NEARS = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
WORDS = (8, 10, 13)
"""Settings that the development half is measured at."""


class LeakedTask(NamedTuple):
    half: str
    evaluation: str
    """The task as its benchmark has it."""
    leaked: dict[str, str]
    """Form of the leak -> what the user says."""


def tasks() -> list[LeakedTask]:
    made = []
    for line in TASKS.read_text().splitlines():
        row = json.loads(line)
        same, other = ({key: pair[n] for key, pair in row["names"].items()} for n in (0, 1))
        text, paraphrase = row["text"], row["paraphrase"]
        leaked = {
            "verbatim": text.format(**same),
            "names changed": text.format(**other),
            "a word in six left out": _thinned(text.format(**same)),
            "paraphrased": paraphrase.format(**same),
            "paraphrased, names changed": paraphrase.format(**other),
        }
        made.append(LeakedTask(row["half"], text.format(**same), leaked))
    return made


def _thinned(text: str) -> str:
    rng = random.Random(text)
    return " ".join(word for word in text.split() if rng.random() > 1 / 6)


def conversation(said: str) -> Row:
    """A trajectory whose user says it, after a greeting."""
    messages = [
        {"role": "system", "content": "You serve the customers of a company and use its tools."},
        {"role": "user", "content": f"{GREETING} {said}"},
        {"role": "assistant", "content": "I will look into that for you now."},
    ]
    return {"messages": messages, "tools": []}


def looked_at(name: str, trajectory: Row, brief: Row | None = None) -> LookedThrough:
    return LookedThrough(name, name, "train", list(trajectory_texts(trajectory, brief)))


class Searcher:
    """The methods over one half of the tasks."""

    def __init__(self, half: str, config: DecontaminationConfig) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "evaluation.jsonl"
            rows = [{"instruction": t.evaluation} for t in tasks() if t.half == half]
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            self.config = config.model_copy(update={"files": (str(file),)})
            self.index = EvaluationIndex(self.config)
        self.nearest: NearestPassages | None = None

    async def embed(self, llm: LLM, many: Sequence[LookedThrough], stored: Iterable[Row]) -> None:
        role = RoleConfig(base_url="http://127.0.0.1/v1", models=EMBEDDER)
        self.nearest = NearestPassages(role, self.index.passages, stored)
        await self.nearest.ask(llm, embedded_passages(many), item="bench")

    def found_by(self, one: LookedThrough) -> set[str]:
        rows = leaks_of(one, self.index, self.nearest, cosine=self.config.cosine)
        return {row["method"] for row in rows}


EMBEDDER: Any = ("embedder",)


def leak_cases(half: str) -> dict[str, list[LookedThrough]]:
    """By form of the leak, the conversations of a half's tasks."""
    cases: defaultdict[str, list[LookedThrough]] = defaultdict(list)
    for number, task in enumerate(tasks()):
        if task.half == half:
            for form, said in task.leaked.items():
                cases[form].append(looked_at(f"{form}-{number}", conversation(said)))
    return cases


def honest_in(path: str | None) -> list[LookedThrough]:
    """Conversations of a dataset, which knows nothing of the tasks."""
    if path is None:
        return []
    dataset = Dataset.open(path)
    briefs = {
        r["task_id"]: r["user_brief"] for r in dataset.rows("tasks", ["task_id", "user_brief"])
    }
    columns = ("trajectory_id", "task_id", "messages", "tools")
    return [
        looked_at(row["trajectory_id"], row, briefs.get(row["task_id"]))
        for rows in dataset.in_commits("trajectories", columns)
        for row in rows
    ]


async def leaks(options: argparse.Namespace) -> None:
    honest = honest_in(options.dataset)
    for half in HALVES:
        other = HALVES[1 - HALVES.index(half)]
        cases = leak_cases(half)
        strangers = {f"other tasks, {form}": many for form, many in leak_cases(other).items()}
        asked = [*_all(cases), *_all(strangers), *honest]
        async with client(options.embedder) as llm:
            stored: list[Row] = []
            for config in configs(half):
                searcher = Searcher(half, config)
                if llm is not None:
                    await searcher.embed(llm, asked, stored)
                    stored += searcher.nearest.new if searcher.nearest else []
                told = {"half": half, **_settings(config)}
                is_default = config == DecontaminationConfig()
                looked = {"dataset": honest} if is_default else {}
                report(searcher, cases | strangers | looked, told)


def configs(half: str) -> Iterator[DecontaminationConfig]:
    """Those to choose from, on the half that is for it; the defaults on the other."""
    default = DecontaminationConfig()
    yield default
    if half == "development":
        for setting, values in (("words", WORDS), ("near", NEARS), ("cosine", COSINES)):
            for value in values:
                if value != getattr(default, setting):
                    yield default.model_copy(update={setting: value})


def _settings(config: DecontaminationConfig) -> Row:
    return {"words": config.words, "near": config.near, "cosine": config.cosine}


def report(searcher: Searcher, cases: dict[str, list[LookedThrough]], told: Row) -> None:
    for form, many in cases.items():
        found = [searcher.found_by(one) for one in many]
        for method in (*METHODS, "any without embedder", "any"):
            if not many or (searcher.nearest is None and method in ("embedder", "any")):
                continue
            hits = sum(_is_hit(methods, method) for methods in found)
            low, high = wilson(hits, len(many))
            line = {"name": "leaks", "form": form, "method": method, "found": hits, "of": len(many)}
            show(told | line | {"interval": [round(low, 3), round(high, 3)]})


def _is_hit(methods: set[str], method: str) -> bool:
    if method == "any":
        return bool(methods)
    if method == "any without embedder":
        return bool(methods - {"embedder"})
    return method in methods


def _all(cases: dict[str, list[LookedThrough]]) -> list[LookedThrough]:
    return [one for many in cases.values() for one in many]


@asynccontextmanager
async def client(folder: str | None) -> AsyncIterator[LLM | None]:
    """The project's client of an embedder that is served here; None without a folder."""
    if folder is None:
        yield None
        return
    async with served(folder) as url:
        roles = {"embedder": RoleConfig(base_url=url, models=EMBEDDER)}
        with tempfile.TemporaryDirectory() as work:
            async with Gateway(roles) as gateway:
                with ShardJournal(Path(work) / "journal.sqlite") as journal:
                    yield LLM(gateway, journal, stage="curation", invocation_id="bench")


@asynccontextmanager
async def served(folder: str) -> AsyncIterator[str]:
    """The `/v1` URL of an embedder, on a free port of this machine."""
    app = embedding_app(folder)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving


def embedding_app(folder: str) -> Callable[..., Awaitable[None]]:
    """Mean of the last hidden states, as models of sentence-transformers want it."""
    import torch
    from fastapi import FastAPI, Request
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    app = FastAPI()

    @app.post("/v1/embeddings")
    async def embeddings(request: Request) -> Row:
        texts = (await request.json())["input"]
        read = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
        with torch.no_grad():
            states = model(**read).last_hidden_state
        mask = read["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(1) / mask.sum(1)
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(means.tolist())]
        tokens = int(mask.sum())
        return {"data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}

    return app


def duplicates(options: argparse.Namespace) -> None:
    """Planted copies, by what was changed in them and by the setting."""
    dataset = Dataset.open(options.dataset)
    rows = chain.from_iterable(dataset.in_commits("trajectories", ("trajectory_id", "messages")))
    texts = sorted({conversation_text(row["messages"]) for row in rows})
    texts = [text for text in texts if len(text.split()) > 20]
    for near in (0.6, 0.7, 0.8, 0.9):
        alike = repeated(texts, near)
        told = {"name": "duplicates", "near": near}
        show(told | {"form": "of the dataset", "found": len(alike), "of": len(texts)})
        base = [text for n, text in enumerate(texts) if n not in alike]
        for form, change in CHANGES.items():
            rng = random.Random(0)
            found = repeated([*base, *(change(text, rng) for text in base)], near)
            hits = sum(found.get(len(base) + n) == n for n in range(len(base)))
            low, high = wilson(hits, len(base))
            line = {"form": form, "found": hits, "of": len(base)}
            show(told | line | {"interval": [round(low, 3), round(high, 3)]})


def repeated(texts: Sequence[str], near: float) -> dict[int, int]:
    """Number of a text -> the earlier one that it repeats."""
    return near_repeats([sketch(text) for text in texts], lambda n: texts[n], near=near)


def _greeted(text: str, rng: random.Random) -> str:
    return "\n".join(f"Hello again. {line}" for line in text.splitlines())


def _words_left_out(text: str, rng: random.Random) -> str:
    return " ".join(word for word in text.split(" ") if rng.random() > 0.05)


def _names_changed(text: str, rng: random.Random) -> str:
    """Every number, and every word that begins large within a line, becomes another."""
    words = text.split(" ")
    changed = [
        f"{word[:1]}x{word[1:]}" if any(c.isdigit() for c in word) or word[:1].isupper() else word
        for word in words
    ]
    return " ".join(changed)


CHANGES: dict[str, Callable[[str, random.Random], str]] = {
    "verbatim": lambda text, rng: text,
    "a greeting before each turn": _greeted,
    "a word in twenty left out": _words_left_out,
    "numbers and large words changed": _names_changed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("leaks", "duplicates"))
    parser.add_argument("--embedder", metavar="FOLDER", help="a model of sentence-transformers")
    parser.add_argument("--dataset", help="a dataset with conversations")
    options = parser.parse_args()
    if options.what == "leaks":
        asyncio.run(leaks(options))
    elif options.dataset is None:
        parser.error("duplicates needs --dataset")
    else:
        duplicates(options)


if __name__ == "__main__":
    main()
