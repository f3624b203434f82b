"""(d) Rephrasing against repetition: the same facts, the same number of tokens, told

    raw x10       one text of each person, ten epochs
    rewrite x10   one rewrite of it, ten epochs
    ten x1        ten rewrites, one epoch

and then asked for in a form that no text of theirs has. Every corpus also has, as often, questions
with answers about the other half of the people, so that all models know what a question is. The
rewrites are by rule, over the facts (`facts`), not by a language model.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.ablations.cells import Cell, Done, Result
from benchmarks.ablations.facts import VALUES, Person, people, question, raw, rewritten
from benchmarks.ablations.learning import Plan, learn, shape
from benchmarks.ablations.plots import Figure
from benchmarks.ablations.prose import Prose
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.model.decoder import Decoder

TITLE = "Rephrasing against repetition"

VOCAB = 512
PEOPLE = 200
ROWS = 4
"""Of a step: few, because what counts is how often a fact is met."""
EPOCHS = 10
EXPOSURES = (10, 40)
"""Times that a fact is told: ten, as in the report, and more, because a small model learns little
from ten."""
RATE = 6e-3
FORMS = ("raw", "rewrite", "ten rewrites")

ASKED_AT_ONCE = 256


def wanted(plan: Plan, scale: float, _done: Done) -> list[Cell]:
    return [
        Cell(
            ablation="rephrasing",
            name=f"{form.replace(' ', '_')}-{exposures}x",
            seed=plan.seed,
            settings={
                "plan": plan.at(rows=ROWS, peak_lr=RATE, corpus="facts").model_dump(mode="json"),
                "form": form,
                "exposures": exposures,
                "people": max(4, round(PEOPLE * scale)),
            },
        )
        for exposures in EXPOSURES
        for form in FORMS
    ]


def run(cell: Cell, _prose: Prose) -> Result:
    plan = Plan.model_validate(cell.settings["plan"])
    form, exposures = cell.settings["form"], cell.settings["exposures"]
    town = people(cell.settings["people"], plan.seed)
    everything = [text for known in FORMS for text in texts_of(town, known)]
    tokenizer = train_tokenizer(everything, vocab_size=VOCAB)
    with TemporaryDirectory() as folder:
        corpora = {known: _corpus(town, known, tokenizer, Path(folder)) for known in ("raw", form)}
        tokens = corpora["raw"].num_tokens * exposures  # what all forms are given
        plan = plan.at(shape=shape(tokenizer.size), steps=max(1, round(tokens / plan.step_tokens)))
        model, result = learn(plan, corpora[form], None)
    return result | {
        "corpus_tokens": corpora[form].num_tokens,
        "unseen": _right(model, tokenizer, [p for p in town if not p.practised]),
        "practised": _right(model, tokenizer, [p for p in town if p.practised]),
    }


def section(seeds: dict[int, Done]) -> str:
    lines = [
        f"{PEOPLE} people, 4 facts each, 16 possible values of a fact: guessing gives 6.2%. The",
        "answer is the likeliest of the 16; unseen questions are about people of whom nothing was",
        "asked in training. Rewrites are by rule, not by a language model.",
        "",
        "| seed | times told | form | tokens of the corpus | tokens learnt | training loss, last "
        "tenth | right, unseen questions | right, practised questions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, done in seeds.items():
        for cell, result in done.values():
            lines.append(
                f"| {seed} | {cell.settings['exposures']} | {cell.settings['form']} | "
                f"{result['corpus_tokens']:,} | {result['tokens']:,} | "
                f"{result['train_loss'][1]:.3f} | {result['unseen']:.1%} | "
                f"{result['practised']:.1%} |"
            )
    return "\n".join(lines)


def figures(seeds: dict[int, Done]) -> list[Figure]:
    lines = {
        f"{form}, seed {seed}": sorted(
            (cell.settings["exposures"], result["unseen"])
            for cell, result in done.values()
            if cell.settings["form"] == form
        )
        for seed, done in seeds.items()
        for form in FORMS
    }
    return [Figure("Right answers to unseen questions", "times told", lines, log_x=True)]


def texts_of(town: Sequence[Person], form: str) -> Iterator[str]:
    """One epoch: ten tellings of each fact in the third form, one in the others."""
    for number in range(EPOCHS if form == "ten rewrites" else 1):
        for person in town:
            yield raw(person) if form == "raw" else rewritten(person, number)
            if person.practised:
                for kind, value in person.facts.items():
                    yield f"{question(person, kind)} {value}"


def _corpus(town: Sequence[Person], form: str, tokenizer: Tokenizer, folder: Path) -> Corpus:
    path = folder / f"{form}.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts_of(town, form)))
    source = CorpusConfig(path=str(path))
    return make_corpus((source,), tokenizer, folder / f"{form}-tokens", view="pretrain")


@torch.no_grad()
def _right(model: Decoder, tokenizer: Tokenizer, town: Sequence[Person]) -> float:
    """Share of questions whose true answer is likelier than each of the other fifteen."""
    right = asked = 0
    for kind, values in VALUES.items():
        pairs = [
            (tokenizer.encode(question(p, kind)), [*tokenizer.encode(f" {value}"), tokenizer.end])
            for p in town
            for value in values
        ]
        scores = torch.cat(
            [
                _logprobs(model, pairs[at : at + ASKED_AT_ONCE])
                for at in range(0, len(pairs), ASKED_AT_ONCE)
            ]
        )
        chosen = scores.unflatten(0, (len(town), len(values))).argmax(-1).tolist()
        right += sum(values[c] == p.facts[kind] for c, p in zip(chosen, town, strict=True))
        asked += len(town)
    return right / asked


def _logprobs(model: Decoder, pairs: Sequence[tuple[list[int], list[int]]]) -> Any:
    """Of each answer after its question, summed over its tokens."""
    longest = max(len(q) + len(a) for q, a in pairs)
    ids = torch.zeros(len(pairs), longest, dtype=torch.long)
    answers = torch.zeros(len(pairs), longest)
    for row, (asked, answer) in enumerate(pairs):
        whole = [*asked, *answer]
        ids[row, : len(whole)] = torch.tensor(whole)
        answers[row, len(asked) : len(whole)] = 1.0
    logits = model.logits(model(ids).hidden_BTD[:, :-1])
    losses = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    return -(losses * answers[:, 1:]).sum(-1)
