"""Whole runs with a critic: what they leave, and that a kill while it ranks changes nothing."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from records.errors import ConfigError
from tests.trainer.configs import small
from tests.trainer.rl.critic.scripted import answers_in
from tests.trainer.rl.small_rl import ENVIRONMENT, rl_config
from tests.trainer.rl.test_loop import without_clock
from trainer.data.chat import AssistantAnswer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import train_tokenizer
from trainer.inference.policies import ModelPolicy, PolicyRequest
from trainer.model.exchange import export_model, import_model
from trainer.model.initialization import new_decoder
from trainer.rl.critic.asking import FOLDER as CRITIC_PROMPTS
from trainer.rl.loop import reinforce
from trainer.rl.settings import RLConfig
from trainer.training.metrics import read_metrics

CRITIC = {"enabled": True, "held_back": 0.5, "measured_pairs": 8, "lesson_pairs": 2}

ROWS = [{"prompt": f"Say something nice, {n}.", "rubric": ["has a digit"]} for n in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("critic")
    texts = [f"Number {n}? Say a number. It is {n * 7}, first or second." for n in range(200)]
    prompt = (CRITIC_PROMPTS / "ranking.md").read_text()  # else it has a token for every letter
    tokenizer = train_tokenizer([*texts, *[prompt] * 9], vocab_size=900)
    shape = small(vocab_size=tokenizer.size, max_positions=4096, init_std=0.05)
    export_model(new_decoder(shape, 0), made / "start", tokenizer, chat=ChatFormat(system=""))
    (made / "prompts.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (made / "digits.py").write_text(ENVIRONMENT.replace("1.0 if digits else 0.0", "digits / 100"))
    return made


def config_of(folder: Path, out: str, **other: Any) -> RLConfig:
    settings: dict[str, Any] = {
        "iterations": 2,
        "gym": {
            "files": [str(folder / "digits.py")],
            "families": {"open": {"files": [{"path": str(folder / "prompts.jsonl")}]}},
        },
        "choice": {"tasks": 10, "band": {"k": 2}, "rest": 0},
        "critic": CRITIC,
        "test": {"every": None, "heldout": False},
        "slot_tokens": 4096,
    }
    return rl_config(folder, out, **(settings | other))


def digits(text: str) -> int:
    return sum(c.isdigit() for c in text)


class RightByCode:
    """In place of the verdicts of a model that has learnt nothing yet: what code would say. Ends
    the process as a kill does at one of its calls."""

    def __init__(self, last: int | None = None) -> None:
        self.calls, self._last = 0, last

    def __call__(
        self, policy: ModelPolicy, asked: Sequence[PolicyRequest]
    ) -> list[AssistantAnswer]:
        self.calls += 1
        if self.calls == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        return [AssistantAnswer(self._verdict(*answers_in(one)), [], None) for one in asked]

    def _verdict(self, first: str, second: str) -> str:
        one, other = (digits(text) for text in (first, second))
        return "equal" if one == other else "first" if one > other else "second"


def answered_by(monkeypatch: pytest.MonkeyPatch, rule: RightByCode) -> None:
    def answers(policy: ModelPolicy, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return rule(policy, asked)

    monkeypatch.setattr(ModelPolicy, "answers", answers)  # rollouts draw by another


def samples_of(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "samples").glob("*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_a_critic_that_knows_nothing_is_off_and_learns_what_code_knows(folder: Path) -> None:
    done = reinforce(config_of(folder, "off", iterations=1))
    (line,) = read_metrics(done.folder)
    assert line["critic_on"] == line["critic_ranked"] == 0
    assert line["critic_asked"] == 2 * line["critic_measured"] > 0
    assert line["critic_lessons"] == 2
    assert line["verdict_loss"] > 0
    rows = [row for row in samples_of(done.folder) if row["family"] == "open"]
    assert rows
    assert {row["reward"] for row in rows} == {None}
    ended = ("completed", "truncated", "repeats")
    assert line["critic_off"] == sum(row["outcome"] in ended for row in rows) > 0
    assert line["left_out"] == len(rows) + sum(
        row["reward"] is None for row in samples_of(done.folder) if row["family"] == "digits"
    )
    assert "reward/open" not in line
    curves = (done.folder / "curves.html").read_text()
    assert "Verifier against critic" in curves


def test_killed_while_it_ranks_the_run_comes_out_to_the_bit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.rl.loop.draw", lambda config: None)  # most of the time otherwise
    rule = RightByCode()
    answered_by(monkeypatch, rule)
    whole = reinforce(config_of(folder, "whole")).folder
    lines = read_metrics(whole)
    assert [line["critic_on"] for line in lines] == [1, 1]
    assert rule.calls == 4
    ranked = [row for row in samples_of(whole) if row["family"] == "open"]
    assert len({row["reward"] for row in ranked if row["reward"] is not None}) > 1
    assert all(json.loads(row["reward_parts"]).keys() == {"critic_ties"} for row in ranked
               if row["reward"] is not None)  # fmt: skip
    verified = [
        row for row in samples_of(whole) if row["family"] == "digits" and row["reward"] is not None
    ]
    told = [json.loads(row["reward_parts"])["digits"] / 100 for row in verified]
    assert [row["reward"] for row in verified] == told

    if (child := os.fork()) == 0:
        signal.alarm(120)
        try:
            answered_by(monkeypatch, RightByCode(last=4))
            reinforce(config_of(folder, "killed"))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    killed = folder / "killed"
    assert len(list((killed / "samples").glob("*"))) == 1  # it was in the second iteration
    again = reinforce(config_of(folder, "killed"))
    assert again.begun == 1
    assert without_clock(read_metrics(killed)) == without_clock(lines)
    assert samples_of(killed) == samples_of(whole)
    one, other = (import_model(out / "model").state_dict() for out in (whole, killed))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_tasks_to_rank_are_refused_without_a_critic(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"4 tasks \(open\) are ranked by a critic"):
        reinforce(config_of(folder, "refused", critic={}))
