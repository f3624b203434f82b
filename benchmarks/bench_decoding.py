"""What constrained decoding costs: a grammar worked out, and a mask of the vocabulary for a token.

    python benchmarks/bench_decoding.py [--vocab 4096] [--tools 10] [--answers 40]

Tools are those of the built-in domains, `--tools` of a domain at a time; answers are a sentence and
two calls with arguments made from the schemas, and are followed token by token as a sampler does.
Prints one JSON line per measurement: CPU time to work out the grammar of an answer for tools that
were not seen before, to begin another answer with the same tools, and of one token (its mask, and
its being taken), and beside it the time of drawing a token without a grammar.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.measured import show, spread
from records.chat.k2 import END
from tool_specs.domains.domain import load_domains
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling, draw
from trainer.inference.enforcer import AnswerGrammar


class Case(NamedTuple):
    tools: list[dict[str, Any]]
    ids: list[int]
    """An answer that the tools take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--tools", type=int, default=10, help="declared at a time")
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer, cases = cases_of(options)
    about = {
        "vocab": tokenizer.size,
        "tools": options.tools,
        "answers": len(cases),
        "tokens": sum(len(case.ids) for case in cases),
    }
    for measurement in measurements(tokenizer, cases, options.repeats):
        show({**measurement, "parameters": about})


def measurements(
    tokenizer: Tokenizer, cases: Sequence[Case], repeats: int
) -> Iterator[dict[str, Any]]:
    tokens = sum(len(case.ids) for case in cases)
    grammars = [AnswerGrammar(tokenizer, where="benchmark") for _ in range(repeats + 1)]
    new = timed(lambda: [grammars.pop().enforcer(case.tools) for case in cases[:1]], repeats)
    yield {"name": "decoding_new_tools", **spread([s * 1e3 for s in new]), "unit": "CPU ms"}
    grammar = AnswerGrammar(tokenizer, where="benchmark")
    for case in cases:
        grammar.enforcer(case.tools)
    again = timed(lambda: [grammar.enforcer(case.tools) for case in cases], repeats)
    each = [seconds / len(cases) * 1e3 for seconds in again]
    yield {"name": "decoding_known_tools", **spread(each), "unit": "CPU ms"}

    def follow() -> None:
        for case in cases:
            enforcer = grammar.enforcer(case.tools)
            for token in case.ids:
                assert enforcer.allowed()[token]
                enforcer.take(token)

    masks = [
        (seconds - other) / tokens * 1e6
        for seconds, other in zip(timed(follow, repeats), again, strict=True)
    ]
    yield {"name": "decoding_token", **spread(masks), "unit": "CPU us"}
    logits, sampling = torch.randn(1, tokenizer.size), Sampling(temperature=1.0)
    drawn = timed(lambda: [draw(logits, sampling, [0.5]) for _ in range(tokens)], repeats)
    each = [seconds / tokens * 1e6 for seconds in drawn]
    yield {"name": "decoding_draw_alone", **spread(each), "unit": "CPU us"}


def cases_of(options: argparse.Namespace) -> tuple[Tokenizer, list[Case]]:
    declared = [domain.openai_tools()[: options.tools] for domain in load_domains()]
    declared = declared[: options.answers]
    texts = [json.dumps(tools, ensure_ascii=False) for tools in declared]
    tokenizer = train_tokenizer(texts, vocab_size=options.vocab)
    return tokenizer, [Case(tools, answer(tokenizer, tools)) for tools in declared]


def answer(tokenizer: Tokenizer, tools: Sequence[Mapping[str, Any]]) -> list[int]:
    """A sentence, then a call of the first tool and of the last."""
    mark = tokenizer.special
    ids = [*tokenizer.encode("I look that up for you."), mark["<|tool_calls_section_begin|>"]]
    for number, tool in enumerate((tools[0], tools[-1])):
        function = tool["function"]
        arguments = json.dumps(value_of(function["parameters"]), ensure_ascii=False)
        ids += [
            mark["<|tool_call_begin|>"],
            *tokenizer.encode(f"functions.{function['name']}:{number}"),
            mark["<|tool_call_argument_begin|>"],
            *tokenizer.encode(arguments),
            mark["<|tool_call_end|>"],
        ]
    return [*ids, mark["<|tool_calls_section_end|>"], mark[END]]


def value_of(schema: Mapping[str, Any]) -> Any:
    """Of the schema's type, with everything that it declares; bounds and formats are no matter."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: value_of(own) for name, own in schema.get("properties", {}).items()}
        case "array":
            return [value_of(schema.get("items", {}))] * 2
        case "integer":
            return 12
        case "number":
            return 12.5
        case "boolean":
            return True
        case _:
            return "PT-1006 of tomorrow"


def timed(make: Callable[[], Any], repeats: int) -> list[float]:
    """CPU seconds of each repeat; a warm-up is left out."""
    make()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        make()
        seconds.append(time.process_time() - started)
    return seconds


if __name__ == "__main__":
    main()
