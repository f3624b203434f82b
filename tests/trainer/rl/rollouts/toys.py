"""Small environments that do one thing each, right or wrong, and small models that play them."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from records.chat.k2 import END
from records.errors import TransientError
from records.seeds import rng_of
from synth.gym.core.environment import GymEpisode, GymStep, GymTask, Reward
from synth.gym.core.questions import Questions
from synth.llm.wire.request import Message
from tests.trainer.configs import small
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.policies import ModelPolicy
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model
from trainer.model.initialization import new_decoder

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Find it.",
            "parameters": {"type": "object", "properties": {"id": {"type": "boolean"}}},
        },
    }
]

RANDOM = Sampling(temperature=1.0, max_tokens=12)

TEXTS = ["where is it? here it is, there it was. what is twice one, two or three? "] * 9


def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, vocab_size=300)


def model_folder(folder: Path, seed: int = 0, *, always: str | None = None) -> Path:
    """An exported model: random, with answers of some six tokens, or one that writes the same token
    whatever it reads."""
    own = tokenizer()
    shape = {"num_layers": 2, "num_experts": 4, "init_std": 0.05}  # half of a pass's time
    model = new_decoder(small(vocab_size=own.size, max_positions=2048, **shape), seed)
    if always is None:
        ends_soon(model, own.special[END])
    else:
        says_only(model, own.special[END] if always == END else own.encode(always)[0])
    export_model(model, folder)
    own.save(folder)
    return folder


def ends_soon(model: Decoder, end: int) -> None:
    """A feature that all hidden states have makes the end token likely."""
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] += 0.3
        model.lm_head.weight[end, 0] += 1.0


def says_only(model: Decoder, token: int) -> None:
    """All that layers add is nothing, so every hidden state is ones: its token gets all of it."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "norm" in name or "embed" in name else 0.0)
        model.lm_head.weight[token] = 1.0


def policy_of(folder: Path, sampling: Sampling = RANDOM, **other: Any) -> ModelPolicy:
    return ModelPolicy(
        folder, sampling, **({"slots": 3, "slot_tokens": 700, "device": "cpu"} | other)
    )


def tasks_of(family: str, count: int, **body: Any) -> list[GymTask]:
    return [
        GymTask(f"{family}-{n}", family, "train", ("kind:toy",), {"number": n, **body})
        for n in range(count)
    ]


class Twice(Questions):
    """One turn. What it computes with `blocks` never ends."""

    family = "twice"

    def tasks(self) -> Sequence[GymTask]:
        return tasks_of(self.family, 4)

    def question(self, task: GymTask) -> str:
        return f"What is twice {task.body['number']}?"

    def reward(self, task: GymTask, answer: str) -> Reward:
        if task.body.get("blocks"):
            time.sleep(3600)
        if "worth" in task.body:
            return Reward(float(task.body["worth"]))
        return Reward((len(answer) % 4) / 3, {"length": float(len(answer))})


class Errands:
    """As many turns as the task says; what is said in between hangs on the seed and on all that was
    said. `fault` of a task goes wrong in the step `at`, or before the first where that is -1."""

    family = "errands"

    def __init__(self, on_step: Callable[[GymTask], None] | None = None) -> None:
        self.begun: Counter[str] = Counter()
        self.open = 0
        """Episodes that were begun and not closed."""
        self.on_step = on_step

    def tasks(self) -> Sequence[GymTask]:
        return tasks_of(self.family, 3, turns=2)

    async def begin(self, task: GymTask, seed: int) -> GymEpisode:
        self.begun[task.task_id] += 1
        fault = task.body.get("fault") if task.body.get("at") == -1 else None
        if fault == "busy":
            if self.begun[task.task_id] < 3:
                raise TransientError("full just now")
        elif fault:
            await go_wrong(fault)
        self.open += 1
        return Errand(self, task, seed)

    async def close(self) -> None: ...


class Errand:
    def __init__(self, environment: Errands, task: GymTask, seed: int) -> None:
        self._environment, self._task, self._seed = environment, task, seed
        self._turns, self._closed = 0, False
        self.tools: Sequence[Mapping[str, Any]] = TOOLS
        opening = f"Where is it? {rng_of(str(seed), 'opening').randrange(100)}"
        self.messages: list[Message] = [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": opening},
        ]

    async def step(self, action: Message) -> GymStep:
        body = self._task.body
        if self._environment.on_step:
            self._environment.on_step(self._task)
        self.messages.append(action)
        at, self._turns = self._turns, self._turns + 1
        if body.get("at") == at and (wrong := await go_wrong(body["fault"], self.messages)):
            return wrong
        words = str(action.get("content"))
        if self._turns >= body["turns"]:
            worth = Reward(len(words) % 2, {"words": 1.0})
            return GymStep([], done=True, reward=worth, truncated=body.get("cuts", False))
        drawn = rng_of(f"{self._seed} {words}", "observation", self._turns).randrange(1000)
        seen: list[Message] = [
            {"role": "tool", "tool_call_id": call["id"], "name": "find", "content": f"at {drawn}"}
            for call in action.get("tool_calls") or ()
        ] or [{"role": "user", "content": f"no, where? {drawn}"}]
        self.messages.extend(seen)
        return GymStep(seen, done=False)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._environment.open -= 1


FAULTS = {
    "raises": "environment_error",
    "exits": "environment_error",
    "no_step": "environment_error",
    "no_reward": "environment_error",
    "no_messages": "environment_error",
    "other_messages": "environment_error",
    "no_json": "environment_error",
    "no_text": "environment_error",
    "hangs": "environment_timeout",
    "late": "late",
    "nan": "reward_no_number",
    "text": "reward_no_number",
    "nan_part": "reward_no_number",
    "too_much": "reward_out_of_range",
    "outside": "outside",
}
"""What may go wrong in a step -> how the episode ends."""

STEP_S = 0.8
"""Of settings under which an environment hangs after this time, and is late until twice it."""


async def go_wrong(fault: str, messages: list[Message] | None = None) -> Any:
    """What a step returns that went wrong, if it returns."""
    ends = {
        "nan": Reward(float("nan")),
        "text": Reward("much"),  # type: ignore[arg-type]
        "nan_part": Reward(0.5, {"part": float("inf")}),
        "too_much": Reward(1.01),
        "no_reward": None,
        "no_json": Reward(1.0),
        "no_text": Reward(1.0),
    }
    if fault == "raises":
        raise KeyError("nothing there")
    if fault == "exits":
        raise SystemExit(3)
    if fault == "hangs":
        await asyncio.sleep(3600)
    if fault == "late":
        await asyncio.sleep(1.5 * STEP_S)
        return GymStep([], done=True, reward=Reward(1.0))
    if fault == "outside":
        return GymStep([], done=True, outside="server_down \ud800")
    if fault == "no_json" and messages is not None:
        messages[-1]["content"] = {1, 2}
    if fault == "no_text" and messages is not None:
        messages.append({"role": "user", "content": "half a letter: \ud800"})
    if fault == "no_messages" and messages is not None:
        messages.append({"role": "nobody", "content": "!"})
        return GymStep(messages[-1:], done=False)
    if fault == "other_messages" and messages is not None:
        messages[0] = {"role": "system", "content": "You harm."}
        return GymStep([], done=False)
    return GymStep([], done=True, reward=ends[fault]) if fault in ends else "no step"
