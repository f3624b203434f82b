"""What `bench_grpo.py` compares: GRPO as `python -m trainer rl` runs it and as TRL's trainer does,
from the same model, on the same tasks in the same order."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from benchmarks import grpo_sums
from benchmarks.grpo_sums import ENVIRONMENT, write_rows
from synth.gym.core.environment import GymTask
from synth.gym.core.questions import text_of_action
from synth.gym.difficulty import ModerateBand
from trainer.data.chat import encode_chat, prompt_for_answer
from trainer.data.chat_format import format_of
from trainer.data.tokenizer import load_tokenizer
from trainer.model.config import TransformerConfig
from trainer.optim.muon import OptimizerConfig
from trainer.rl.choice import TaskChoice
from trainer.rl.loop import reinforce
from trainer.rl.run import SAMPLES
from trainer.rl.settings import ChoiceSettings, RLConfig
from trainer.training.loop import train
from trainer.training.settings import TrainConfig

TEMPERATURE, CLIP_NORM, CLIP = 1.0, 1.0, 0.2

SLOT_TOKENS = 256
"""For a question and an answer, with room to spare."""

DOCUMENTS = 32
"""About as many as a step of fine-tuning takes, so that each is learnt once."""


class GrpoPlan(NamedTuple):
    """What all ways have in common."""

    iterations: int
    """Each of them plays, and takes one step."""
    prompts: int
    samples: int
    """Of each prompt."""
    tokens: int
    """That an answer may have."""
    lr: float

    @property
    def episodes(self) -> int:
        """Of an iteration."""
        return self.prompts * self.samples


class GrpoCourse(NamedTuple):
    """Of a run, one number an iteration."""

    rewards: list[float]
    """Mean over the samples."""
    drawn: list[int]
    """Tokens."""
    play_s: list[float]
    """Drawing and scoring."""
    iteration_s: list[float]
    """All of it: playing, learning, and the way of the weights where there is one."""


def fine_tuned(folder: Path, shape: TransformerConfig, steps: int, *, mistakes: float) -> Path:
    """A model that knows how sums are answered, and is wrong as often as its examples."""
    rows = folder / "rows.jsonl"
    write_rows(rows, DOCUMENTS * steps, mistakes=mistakes)
    config = TrainConfig.model_validate(
        {
            "out": str(folder / "start"),
            "preset": None,
            "shape": shape,
            "data": {
                "sources": [{"path": str(rows)}],
                "system": "",
                "row_tokens": 448,
                "batch_rows": 4,
                "micro_rows": 4,
            },
            "steps": steps,
            "peak_lr": 4e-3,
            "validation": {"share": 0.0},
            "checkpoint_every": steps,
            "device": "cpu",
        }
    )
    return train(config).folder / "model"


def tasks_of(plan: GrpoPlan, seed: int) -> list[list[GymTask]]:
    """What each iteration plays: none rests, so that this hangs on no reward."""
    choice = TaskChoice(ENVIRONMENT.tasks(), _choice(plan), seed=seed)
    return [choice.of(iteration) for iteration in range(plan.iterations)]


def _choice(plan: GrpoPlan) -> ChoiceSettings:
    return ChoiceSettings(tasks=plan.prompts, rest=0, band=ModerateBand(k=1))


def ours(start: Path, folder: Path, plan: GrpoPlan, seed: int, *, muon: bool) -> GrpoCourse:
    """As a run of reinforcement learning is, without validation."""
    config = RLConfig.model_validate(
        {
            "out": str(folder),
            "start_from": str(start),
            "iterations": plan.iterations,
            "seed": seed,
            "gym": {"files": [grpo_sums.__file__]},
            "choice": _choice(plan),
            "rollouts": {
                "samples": plan.samples,
                "in_flight": plan.episodes,
                "token_budget": plan.tokens,
            },
            "learning": {
                "objective": {"kind": "grpo", "clip_low": CLIP, "clip_high": CLIP},
                "budget": {"default": {"penalty": 0.0}},
                "temperature": {"start": TEMPERATURE, "shape": "constant"},
                "micro_rows": plan.episodes,
                "lr": plan.lr,
                "optimizer": {"muon": muon},
                "clip_norm": CLIP_NORM,
            },
            "test": {"every": None, "heldout": False},
            "answer_tokens": plan.tokens + 1,
            "slots": plan.episodes,
            "slot_tokens": SLOT_TOKENS,
            "checkpoint_every": plan.iterations,
            "device": "cpu",
        }
    )
    lines: list[Mapping[str, Any]] = []
    reinforce(config, on_iteration=lines.append)
    played = [
        pq.read_table(path, columns=["drawn_tokens"]).column("drawn_tokens").to_pylist()
        for path in sorted((folder / SAMPLES).glob("*.parquet"))
    ]
    return GrpoCourse(
        rewards=[line["reward"] for line in lines],
        drawn=[sum(tokens) for tokens in played],
        play_s=[line["play_s"] for line in lines],
        iteration_s=[line["play_s"] + line["learn_s"] + line["sync_s"] for line in lines],
    )


def with_trl(start: Path, folder: Path, plan: GrpoPlan, seed: int) -> GrpoCourse:
    """TRL's trainer with transformers' generation, AdamW and no reference model. ValueError where
    its prompts are not the tokens that ours are."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    course = GrpoCourse([], [], [], [])
    known = {task.task_id: task for task in ENVIRONMENT.tasks()}
    tasks = [task for of_iteration in tasks_of(plan, seed) for task in of_iteration]
    expected = _prompts(start, tasks[: plan.prompts])

    class Timed(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            began = time.perf_counter()
            made = super()._generate_and_score_completions(inputs)
            course.play_s.append(time.perf_counter() - began)
            course.drawn.append(int(made["completion_mask"].sum()))
            if len(course.play_s) == 1:
                pairs = zip(made["prompt_ids"], made["prompt_mask"], strict=True)
                read = [ids[mask.bool()].tolist() for ids, mask in pairs]
                if read[:: plan.samples] != expected:
                    raise ValueError(f"TRL reads other prompts: {read[0]}, not {expected[0]}")
            return made

    class Clock(TrainerCallback):
        began = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.began = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            course.iteration_s.append(time.perf_counter() - self.began)

    def reward(
        completions: Sequence[Sequence[Mapping[str, Any]]], task_id: Sequence[str], **_: Any
    ) -> list[float | None]:
        worth = [
            ENVIRONMENT.reward(known[name], text_of_action(dict(messages[0]))).value
            for messages, name in zip(completions, task_id, strict=True)
        ]
        course.rewards.append(sum(worth) / len(worth))
        return [*worth]

    rows = [{"prompt": _messages(task), "task_id": task.task_id} for task in tasks]
    own = OptimizerConfig()
    trainer = Timed(
        model=str(start),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=plan.episodes,
            num_generations=plan.samples,
            max_completion_length=plan.tokens,
            max_steps=plan.iterations,
            temperature=TEMPERATURE,
            loss_type="grpo",
            scale_rewards="none",
            epsilon=CLIP,
            beta=0.0,
            learning_rate=plan.lr,
            lr_scheduler_type="constant",
            weight_decay=own.weight_decay,
            adam_beta1=own.beta1,
            adam_beta2=own.beta2,
            adam_epsilon=own.eps,
            max_grad_norm=CLIP_NORM,
            shuffle_dataset=False,
            save_strategy="no",
            logging_steps=1,
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=seed,
        ),
        train_dataset=Dataset.from_list(rows),
        callbacks=[Clock()],
    )
    trainer.remove_callback(PrinterCallback)  # stdout is for measurements
    trainer.train()
    return course


def _messages(task: GymTask) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": ENVIRONMENT.system},
        {"role": "user", "content": ENVIRONMENT.question(task)},
    ]


def _prompts(start: Path, tasks: Sequence[GymTask]) -> list[list[int]]:
    """As our sampler reads them."""
    tokenizer, chat = load_tokenizer(start), format_of(start)
    end = prompt_for_answer(tokenizer)
    return [[*encode_chat(tokenizer, _messages(t), (), chat=chat).ids, *end] for t in tasks]
