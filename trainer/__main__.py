"""`python -m trainer`: train, and exchange weights with Hugging Face's format."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from records.errors import ConfigError, SynthError
from records.settings import read_settings, validate_as

app = App(
    name="python -m trainer",
    help="Pretrain, fine-tune and reinforce a Kimi K2-style model, move its weights in and out.",
)

Settings = Annotated[
    tuple[str, ...],
    Parameter(name="--set", negative=(), help="A setting of the config, such as steps=50."),
]


@app.command
def pretrain(config: Path, /, *, set_: Settings = ()) -> None:
    """Train on texts: the view `pretrain` of a dataset, or Parquet, JSON lines and text files.

    Started again, it goes on from its last checkpoint.

    Args:
        config: TOML file of settings; configs/ has examples.
    """
    _train("pretrain", config, set_)


@app.command
def sft(config: Path, /, *, set_: Settings = ()) -> None:
    """Train on conversations: the view `sft` of a dataset, or anybody's Parquet and JSON lines.

    Started again, it goes on from its last checkpoint.

    Args:
        config: TOML file of settings; configs/ has examples.
    """
    _train("sft", config, set_)


@app.command
def rl(config: Path, /, *, set_: Settings = ()) -> None:
    """Learn from rewards: play tasks of environments, learn from what came of them, again.

    Started again, it goes on from its last checkpoint. `out` has the samples of every iteration as
    Parquet, curves.html and, at the end, the model and its scores on held-out tasks.

    Args:
        config: TOML file of settings; configs/ has examples.
    """
    from trainer.rl.loop import reinforce
    from trainer.rl.settings import RLConfig
    from trainer.rl.testing import scores_table

    values = read_settings(config, set_)
    done = reinforce(validate_as(RLConfig, values, where=str(config)))
    if done.after:
        print(scores_table(done.before, done.after))  # noqa: T201
    print(f"{done.folder}: {done.words}")  # noqa: T201


@app.command(name="eval")
def eval_(config: Path, /, *, set_: Settings = ()) -> None:
    """Let a model play held-out tasks of a dataset to their end, and score what it did.

    Prints task success, call validity, exact calls and broken policies, each with its interval,
    for unseen tasks, unseen tools and unseen domains; `out` has them as JSON, and the
    conversations.

    Args:
        config: TOML file of settings; configs/ has examples.
    """
    from trainer.evaluation.scoring import ScoreConfig, score, table

    def tell(done: int, of: int) -> None:
        logging.getLogger(__name__).info("%d of %d episodes", done, of)

    values = read_settings(config, set_)
    done = score(validate_as(ScoreConfig, values, where=str(config)), on_played=tell)
    print(table(done.scores))  # noqa: T201
    print(f"\n{done.folder}")  # noqa: T201


@app.command
def generate(
    model: Path,
    /,
    *,
    prompt: str,
    system: str | None = None,
    tools: Path | None = None,
    max_tokens: int = 200,
    temperature: float = 0.0,
    seed: int = 0,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Let a model answer a user's message; prints the message as JSON.

    Args:
        model: Folder of a training run, or of an exported model.
        prompt: What the user says.
        system: What it is told before; left out: what it was told in training where a conversation
            had no system message.
        tools: JSON file with a list of tools as OpenAI has them, declared as in training.
        max_tokens: Tokens of the answer, at most.
        temperature: 0 takes the likeliest token.
        seed: Of the draws.
        device: auto takes a GPU where torch sees one.
    """
    from records.chat.k2 import END
    from trainer.data.chat import encode_chat, parse_answer, prompt_for_answer
    from trainer.data.chat_format import format_of
    from trainer.inference.loading import load_sampler
    from trainer.inference.sampler import Sampling
    from trainer.model.exchange import model_folder

    given = {"temperature": temperature, "max_tokens": max_tokens}
    sampling = validate_as(Sampling, given, where="generate")
    messages, declared = _asked(prompt, system, tools)
    sampler, tokenizer = load_sampler(model_folder(model), device=device, slots=1)
    asked = encode_chat(tokenizer, messages, declared, chat=format_of(model)).ids
    asked += prompt_for_answer(tokenizer)
    (made,) = sampler.generate([asked], sampling, stop=tokenizer.special[END], seeds=[seed])
    answer = parse_answer(tokenizer, made.ids)
    print(json.dumps(answer._asdict() | {"finish_reason": made.finish_reason}))  # noqa: T201


def _asked(
    prompt: str, system: str | None, tools: Path | None
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """(messages, tools); ConfigError for a file that cannot be read as tools."""
    from trainer.data.conversations import conversation_of

    row: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}], "system": system}
    try:
        row |= {"tools": json.loads(tools.read_text())} if tools else {}
        conversation = conversation_of(row)
    except (OSError, ValueError) as error:
        raise ConfigError(f"tools = {str(tools)!r}: {error}") from error
    assert conversation is not None  # it has messages
    return conversation.messages, conversation.tools


@app.command
def serve(
    model: Path,
    /,
    *,
    name: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8300,
    slots: int = 8,
    slot_tokens: int | None = None,
    waiting: int = 64,
    constrained: bool = False,
    key_env: str | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Serve a model over OpenAI's protocol, so that it plays a role of a run.

    Answers are drawn together, as many as there are slots; configs/endpoints/bundled.toml is the
    endpoint for it.

    Args:
        model: Folder of a training run, or of an exported model.
        name: What requests call it; left out: the folder's name.
        host: Address to listen on; one that other machines reach needs --key-env.
        port: Port; 0 takes a free one, which is printed.
        slots: Answers that are drawn together.
        slot_tokens: Tokens of prompt and answer together; left out: what the model takes.
        waiting: Requests that may wait for a slot; more are told to come again.
        constrained: Hold every answer to the template and to calls of declared tools with
            arguments of the declared types.
        key_env: Name of a variable with a key that every request has to show.
        device: auto takes a GPU where torch sees one.
    """
    from trainer.serving.server import key_in, listening_at, serve_model, served_model

    key = key_in(key_env)
    called = name or model.resolve().name
    with listening_at(host, port, has_key=key is not None) as listener:
        served = served_model(
            model,
            name=called,
            slots=slots,
            slot_tokens=slot_tokens,
            most_waiting=waiting,
            constrained=constrained,
            key=key,
            device=device,
        )
        address = f"http://{host}:{listener.getsockname()[1]}/v1"
        serve_model(served, listener, on_ready=lambda: _say_served(called, address))


def _say_served(name: str, address: str) -> None:
    print(f"{name} is served at {address} (Ctrl-C stops it)", flush=True)  # noqa: T201


@app.command
def export(
    run: Path, out: Path, /, *, model_type: Literal["deepseek_v3", "kimi_k2"] = "deepseek_v3"
) -> None:
    """Write a model as Hugging Face safetensors, one tensor an expert, with its tokenizer and the
    chat template that it was trained with.

    Args:
        run: Folder of a training run, or of an exported model.
        out: Folder to write; must not exist.
        model_type: deepseek_v3 loads in transformers, kimi_k2 in vLLM and SGLang.
    """
    from trainer.data.chat_format import format_of
    from trainer.model.exchange import export_model, import_with_tokenizer, model_folder

    if out.exists():
        raise ConfigError(f"{out} exists; choose a folder that does not")
    chat = format_of(run)
    model, tokenizer = import_with_tokenizer(model_folder(run))
    export_model(model, out, tokenizer, chat=chat, model_type=model_type)
    print(out)  # noqa: T201
    _tell_of_template(model_folder(run))


@app.command(name="import")
def import_(model: Path, /) -> None:
    """Check that a Hugging Face folder can be loaded, and say what it is.

    Args:
        model: Folder with config.json and safetensors; `start_from` of a config may name it.
    """
    from trainer.model.exchange import import_model
    from trainer.model.size import size_of

    size = size_of(import_model(model).config)
    print(f"{model}: {size.total:,} parameters, {size.active:,} active a token")  # noqa: T201
    _tell_of_template(model)


def _tell_of_template(folder: Path) -> None:
    from trainer.data.chat_template import has_other_template

    if has_other_template(folder):
        logging.getLogger(__name__).warning(
            "%s has a chat template of its own, which is not used: training, generate and export "
            "speak Kimi K2's",
            folder,
        )


def _train(stage: str, path: Path, overrides: tuple[str, ...]) -> None:
    # late: processes that tokenise import this module, and have no use for torch
    from trainer.training.account import account_of, as_lines
    from trainer.training.loop import train
    from trainer.training.settings import TrainConfig

    values: dict[str, Any] = read_settings(path, overrides) | {"stage": stage}
    done = train(validate_as(TrainConfig, values, where=str(path)), on_step=_tell)
    print("\n".join(as_lines(account_of(done.folder))))  # noqa: T201
    print(f"{done.folder}: {done.words}")  # noqa: T201


def _tell(line: dict[str, Any]) -> None:
    from trainer.training.metrics import told

    logging.getLogger(__name__).info("%s", told(line))


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong use or configuration."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each turn of the user
    try:
        app()
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except SynthError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
