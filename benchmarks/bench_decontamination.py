"""What decontamination and near-duplicates find, and what they take for one, by method.

    python -m benchmarks.bench_decontamination leaks [--embedder FOLDER] [--dataset D]
    python -m benchmarks.bench_decontamination policies
    python -m benchmarks.bench_decontamination duplicates --dataset D

`leaks`: 48 invented tasks (`benchmarks/leaks/tasks.jsonl`), each leaked into a conversation as it
is, with other names, these two amid twice as many other words, with a word in six left out, in
other words (written by hand, with the same names), and in other words with other names. 24 tasks
are for choosing thresholds, the other 24 for reporting only. False alarms are counted on the tasks
of the half that is not in the index, in all forms, and on the conversations of a dataset if one is
given. FOLDER is a model of sentence-transformers, which is served here over HTTP and asked as any
embedder.

`policies`: the rules and tools of every second hand-written domain are the evaluation, and are
leaked into prompts and lists of tools as they are, with a word in six left out, and, of tools, with
other names; those of the other domains must not be found.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.embedder import MODELS, client
from benchmarks.measured import show
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.duplicates import conversation_text
from synth.curation.embedding import NearestPassages
from synth.curation.evaluation_index import EvaluationIndex
from synth.curation.leaks import LookedThrough, embedded_passages, leaks_of
from synth.curation.passages import trajectory_texts
from synth.curation.settings.config import DecontaminationConfig
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.matching.similarity import near_repeats, sketch
from synth.render.intervals import wilson
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.taxonomy import load_taxonomy

TASKS = Path(__file__).parent / "leaks" / "tasks.jsonl"

HALVES = ("development", "reporting")

METHODS = ("ngrams", "minhash", "embedder")

AMID = (
    "I was here last week with my brother and we spoke to one of your colleagues, who was friendly "
    "but in a hurry, so we agreed that I would write again once everything at home is settled. {} "
    "There is no need to call me, since I sit in meetings until the late afternoon and cannot pick "
    "up the phone. Thank you in advance, and please greet the colleague from last week as well."
)
"""What else a user may write in the same message, of twice as many words as a task."""

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
            "verbatim, amid other words": AMID.format(text.format(**same)),
            "names changed, amid other words": AMID.format(text.format(**other)),
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
    """The methods over the evaluations of a configuration."""

    def __init__(self, config: DecontaminationConfig) -> None:
        self.config = config
        self.index = EvaluationIndex(config)
        self.nearest: NearestPassages | None = None

    async def embed(self, llm: LLM, many: Sequence[LookedThrough], stored: Iterable[Row]) -> None:
        role = RoleConfig(base_url="http://127.0.0.1/v1", models=MODELS)
        self.nearest = NearestPassages(role, self.index.passages, stored)
        await self.nearest.ask(llm, embedded_passages(many), item="bench")

    def found_by(self, one: LookedThrough) -> set[str]:
        rows = leaks_of(one, self.index, self.nearest, cosine=self.config.cosine)
        return {row["method"] for row in rows}


def searcher_of(half: str, config: DecontaminationConfig) -> Searcher:
    """Over one half of the tasks."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "evaluation.jsonl"
        rows = [{"instruction": t.evaluation} for t in tasks() if t.half == half]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return Searcher(config.model_copy(update={"files": (str(file),)}))


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
                searcher = searcher_of(half, config)
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


def policies() -> None:
    """Rules and tools, by form of the leak; of half the domains, and those of the other half."""
    rules, tools = ([[], []] for _ in range(2))
    for number, domain in enumerate(load_taxonomy()):
        rules[number % 2] += [rule["text"] for rule in domain_row(domain)["policy"]]
        tools[number % 2] += [_openai_tool(row) for row in tool_rows(domain)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policies.md").write_text("\n\n".join(rules[0]))
        (Path(folder) / "tools.json").write_text(json.dumps(tools[0]))
        config = DecontaminationConfig(files=(folder,))
        searcher = Searcher(config)
    cases = {f"rule, {form}": _prompts(rules[0], change) for form, change in RULE_FORMS.items()}
    cases |= {f"tool, {form}": _offers(tools[0], change) for form, change in TOOL_FORMS.items()}
    cases["rules of other domains"] = _prompts(rules[1], RULE_FORMS["verbatim"])
    cases["tools of other domains"] = _offers(tools[1], TOOL_FORMS["verbatim"])
    report(searcher, cases, _settings(config) | {"near_tools": config.near_tools})


def _openai_tool(row: Row) -> Row:
    return {key: row[key] for key in ("name", "description")} | {"parameters": row["input_schema"]}


def _prompts(rules: Iterable[str], change: Callable[[str], str]) -> list[LookedThrough]:
    """Each in the system prompt of a conversation, between two rules of everybody's."""
    made = []
    for number, rule in enumerate(rules):
        whole = conversation("Hello.")
        common = "You serve the customers of a company.\nBe kind and brief.\n"
        whole["messages"][0]["content"] = f"{common}{change(rule)}\nAnswer in the user's language."
        made.append(looked_at(f"rule-{number}", whole))
    return made


def _offers(tools: Iterable[Row], change: Callable[[Row], Row]) -> list[LookedThrough]:
    """Each as the tool of a conversation."""
    made = []
    for number, tool in enumerate(tools):
        offered = [{"type": "function", "function": change(tool)}]
        made.append(looked_at(f"tool-{number}", conversation("Hello.") | {"tools": offered}))
    return made


def _other_names(tool: Row) -> Row:
    """Of the tool and its parameters; what they are described by stays."""
    schema = tool["parameters"]
    renamed = {f"its_{name}": own for name, own in schema.get("properties", {}).items()}
    return tool | {"name": f"our_{tool['name']}", "parameters": schema | {"properties": renamed}}


RULE_FORMS: dict[str, Callable[[str], str]] = {
    "verbatim": lambda rule: rule,
    "a word in six left out": _thinned,
}

TOOL_FORMS: dict[str, Callable[[Row], Row]] = {
    "verbatim": lambda tool: tool,
    "with other names": _other_names,
    "a word in six of its description left out": lambda tool: (
        tool | {"description": _thinned(tool["description"])}
    ),
}


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
    parser.add_argument("what", choices=("leaks", "policies", "duplicates"))
    parser.add_argument("--embedder", metavar="FOLDER", help="a model of sentence-transformers")
    parser.add_argument("--dataset", help="a dataset with conversations")
    options = parser.parse_args()
    if options.what == "leaks":
        asyncio.run(leaks(options))
    elif options.what == "policies":
        policies()
    elif options.dataset is None:
        parser.error("duplicates needs --dataset")
    else:
        duplicates(options)


if __name__ == "__main__":
    main()
