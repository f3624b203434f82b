"""Scoring plays real episodes: who repeats what was recorded does exactly as well as it did."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from records.chat.k2 import END
from records.digest import canonical_json
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.render.intervals import clustered, wilson
from synth.rubrics.criteria import Rubric
from synth.rubrics.episode import Verdict
from synth.rubrics.reward import left_open, rubric_of
from synth.rubrics.statements.unshown import plainly_told
from tests.trainer.configs import CONFIGS
from tests.trainer.played_dataset import QUIET, make_dataset
from trainer.data.chat import AssistantAnswer, parse_answer
from trainer.data.chat_format import ChatFormat, format_of
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, load_tokenizer
from trainer.evaluation.playing import EpisodeScore, EvalConfig, evaluate
from trainer.evaluation.scoring import (
    EPISODES,
    SCORES,
    ScoreConfig,
    as_json,
    score,
    scores_of,
    table,
)
from trainer.inference.enforcer import AnswerGrammar
from trainer.inference.policies import ModelPolicy, NearestExample, PolicyRequest, num_calls
from trainer.inference.sampler import Sampling
from trainer.model.exchange import export_model
from trainer.model.initialization import new_decoder
from trainer.training.loop import tokenizer_of


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("evaluation") / "data", num_tasks=16)


def of(dataset: Path, **settings: Any) -> EvalConfig:
    given = {"splits": ("train",), "tasks": 8, "episode": QUIET}
    return EvalConfig(dataset=str(dataset), **{**given, **settings})


class Recorded:
    """Says again what the assistant said in the trajectory that opened so."""

    def __init__(self, dataset: Path) -> None:
        rows = Dataset.open(dataset).rows("trajectories", ("trajectory_id", "messages"))
        self._said = {canonical_json(row["messages"][:2]): row["messages"] for row in rows}

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return [self._answer(list(one.messages)) for one in asked]

    def _answer(self, messages: list[Any]) -> AssistantAnswer:
        whole = self._said[canonical_json(messages[:2])]
        for then, now in zip(whole, messages, strict=False):  # the user may thank in other words
            assert then["role"] == now["role"]
            assert then["role"] == "user" or then == now
        said: dict[str, Any] = (
            whole[len(messages)] if len(messages) < len(whole) else {"content": ""}
        )
        return AssistantAnswer(said["content"] or "", list(said.get("tool_calls") or ()), None)

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return 0


def test_repeating_the_recorded_answers_succeeds_where_they_did(
    dataset: Path, tmp_path: Path
) -> None:
    done = evaluate(Recorded(dataset), of(dataset), journal=tmp_path / "j")
    store = Dataset.open(dataset)
    tasks = {row["task_id"]: row for row in store.rows("tasks")}
    rows = {row["task_id"]: row for row in store.rows("trajectories")}
    assert len(done.played) == 8
    for one in done.played:
        row, task = rows[one.task_id], tasks[one.task_id]
        assert one.ended == row["termination_reason"]
        assert one.reward == pytest.approx(row["objective_reward"])
        good = row["objective_reward"] >= rubric_of(task).pass_threshold
        assert (one.success or one.left_open) == good
        assert one.calls == row["num_tool_calls"]
    assert sum(one.success for one in done.played) > 0
    assert sum(one.exact_calls for one in done.played) > 0


class Silent:
    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return [AssistantAnswer("", [], None) for _ in asked]

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return 700


def test_silence_reaches_nothing(dataset: Path, tmp_path: Path) -> None:
    done = evaluate(Silent(), of(dataset, attempts=2), journal=tmp_path / "j")
    assert {one.ended for one in done.played} == {"format_error"}
    assert not any(one.success or one.calls for one in done.played)
    assert len(done.played) == 16


class Babbling(Silent):
    """Says words of no language, and calls nothing."""

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        said = " ".join(["indicodefinally pynamples extrapath ttribute olsystem."] * 12)
        return [AssistantAnswer(said, [], None) for _ in asked]


def test_words_that_code_cannot_read_are_no_success(dataset: Path, tmp_path: Path) -> None:
    done = evaluate(Babbling(), of(dataset), journal=tmp_path / "j")
    assert not any(one.success for one in done.played)


class Lying(Recorded):
    """Says what was recorded, but of each number that a tool gave one more."""

    def __init__(self, dataset: Path) -> None:
        super().__init__(dataset)
        self._meant: dict[str, str] = {}

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        honest = [one._replace(messages=[*map(self._as_meant, one.messages)]) for one in asked]
        return [*map(self._lie, super().answers(honest))]

    def _lie(self, answer: AssistantAnswer) -> AssistantAnswer:
        said = re.sub(r"(?<= is )\d+\b", lambda n: str(int(n[0]) + 1), answer.content)
        self._meant[said] = answer.content
        return answer._replace(content=said)

    def _as_meant(self, message: Any) -> Any:
        if message["role"] != "assistant":
            return message
        return {**message, "content": self._meant.get(message["content"], message["content"])}


def test_a_value_that_nothing_shows_fails_a_task_where_plain_retelling_is_asked(
    dataset: Path, tmp_path: Path
) -> None:
    true = evaluate(Recorded(dataset), of(dataset), journal=tmp_path / "j")
    won = {one.task_id for one in true.played if one.success}
    open_ = evaluate(Lying(dataset), of(dataset), journal=tmp_path / "k")
    strict = evaluate(Lying(dataset), of(dataset, plain_retelling=True), journal=tmp_path / "l")
    lied = {one.task_id for one in strict.played if one.unshown_values}
    assert won & lied
    assert won - lied == {one.task_id for one in strict.played if one.success}
    assert [one.unshown_values for one in open_.played] == [
        one.unshown_values for one in strict.played
    ]


def test_tasks_out_of_bounds_are_left_out_and_counted(dataset: Path, tmp_path: Path) -> None:
    tasks = Dataset.open(dataset).rows("tasks", ("task_id", "split", "reference_plan"))
    plans = [len(t["reference_plan"]) for t in tasks if t["split"] == "train"]
    fewest = max(1, min(plans))  # some tasks want no call
    bounds = of(dataset, tasks=100, max_calls=fewest)
    done = evaluate(Silent(), bounds, journal=tmp_path / "j")
    longer = sum(length > fewest for length in plans)
    assert done.left_out == {"more_calls": longer}
    assert longer
    simple = evaluate(Silent(), of(dataset, complexities=("simple",)), journal=tmp_path / "s")
    tasks = Dataset.open(dataset).rows("tasks", ("complexity", "split"))
    others = sum(t["complexity"] != "simple" and t["split"] == "train" for t in tasks)
    assert simple.left_out == {"other_complexity": others}
    assert others
    with pytest.raises(ConfigError, match=r"left out: \d+ longer_prompt; .*: .*\d+ train"):
        evaluate(Silent(), of(dataset, max_prompt_tokens=699), journal=tmp_path / "k")
    with pytest.raises(ConfigError, match=r"no task to play of splits = \[\]"):
        evaluate(Silent(), of(dataset, splits=()), journal=tmp_path / "l")


@pytest.fixture(scope="module")
def model(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained, with a tokenizer of the dataset."""
    tokenizer = tokenizer_of([(CorpusConfig(path=str(dataset)), "sft")], vocab_size=1500)
    torch.manual_seed(0)
    shape = CONFIGS["plain"].model_copy(
        update={"vocab_size": tokenizer.size, "max_positions": 4096}
    )
    folder = tmp_path_factory.mktemp("model") / "model"
    export_model(new_decoder(shape), folder)
    tokenizer.save(folder)
    return folder


def test_models_that_cannot_answer_are_refused(model: Path, tmp_path: Path) -> None:
    export_model(new_decoder(CONFIGS["plain"]), tmp_path / "narrow")
    load_tokenizer(model).save(tmp_path / "narrow")
    with pytest.raises(ConfigError, match=r"the tokenizer has \d+ tokens, the model only 97"):
        ModelPolicy(tmp_path / "narrow")
    with pytest.raises(ConfigError, match=r"none holds no config.json"):
        ModelPolicy(tmp_path / "none")


def test_tools_are_declared_as_the_training_run_did(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert format_of(tmp_path / "model") == ChatFormat()
    known = tmp_path / "config.json"
    known.write_text('{"data": {"declarations": "typescript"}}')
    told = ChatFormat(declarations="typescript", system="")
    assert format_of(tmp_path) == format_of(tmp_path / "model") == told
    known.write_text('{"data": {"declarations": "yaml"}}')
    with pytest.raises(ConfigError, match=r"declarations = 'yaml'; allowed: json, typescript"):
        format_of(tmp_path)


class Scribbler:
    """Writes blindly what the enforcer lets through, with a liking for calls and for ends. Falls
    silent after some calls."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._grammar = AnswerGrammar(tokenizer, where="test")
        ends = [n for n in range(tokenizer.size) if tokenizer.bytes_of(n) in (b'"', b"}", b"]")]
        self._liked = [tokenizer.special["<|tool_calls_section_begin|>"], *ends]

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return [
            AssistantAnswer("", [], None)
            if num_calls(one.messages) > 8
            else parse_answer(self._tokenizer, self._written(one))
            for one in asked
        ]

    def _written(self, asked: PolicyRequest) -> list[int]:
        rng = Random(asked.seed)
        before = num_calls(asked.messages)
        enforcer = self._grammar.enforcer(asked.tools, calls_before=before, max_calls=2)
        ids: list[int] = []
        while not ids or ids[-1] != self._tokenizer.special[END]:
            allowed = enforcer.allowed()
            wished = [n for n in self._liked if allowed[n]] if rng.random() < 0.7 else []
            ids.append(rng.choice(wished or allowed.nonzero().flatten().tolist()))
            enforcer.take(ids[-1])
        return ids

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return 0


@pytest.mark.slow
def test_what_is_written_under_the_enforcer_fails_only_by_dates_and_bounds(
    dataset: Path, model: Path, tmp_path: Path
) -> None:
    scribbler = Scribbler(load_tokenizer(model))
    done = evaluate(scribbler, of(dataset, tasks=3), journal=tmp_path / "j")
    [scores] = scores_of(done.played)
    heard = [m["content"] for told in done.conversations for m in told["messages"]]
    unforced = (
        "is not a date",
        "is less than the minimum",
        "is greater than the maximum",
        "has less than",
        "has more than",
    )
    beyond = sum(
        "invalid_arguments" in text and any(words in text for words in unforced) for text in heard
    )
    assert 0 < scores.valid_calls.hits == scores.valid_calls.n - beyond


@pytest.mark.slow
def test_a_model_that_learnt_nothing_calls_nothing_validly(
    dataset: Path, model: Path, tmp_path: Path
) -> None:
    sampling = Sampling(temperature=1.0, max_tokens=150)
    policy = ModelPolicy(model, sampling, chat=ChatFormat(declarations="typescript"))
    done = evaluate(policy, of(dataset, tasks=4), journal=tmp_path / "j")
    [scores] = scores_of(done.played)
    assert scores.valid_calls.n > 0
    assert scores.valid_calls.hits == 0
    assert all(one.prompt_tokens > 100 for one in done.played)


def test_the_nearest_example_answers_its_own_training_data_as_it_was(dataset: Path) -> None:
    policy = NearestExample(CorpusConfig(path=str(dataset)))
    with Dataset.open(dataset).connect() as db:
        rows = db.execute("SELECT messages, tools FROM sft WHERE split = 'train' LIMIT 5")
        for messages, tools in rows.fetchall():
            messages, tools = (
                json.loads(v) if isinstance(v, str) else v for v in (messages, tools)
            )
            [answer] = policy.answers([PolicyRequest(messages[:2], tools or (), 0)])
            assert answer.content == (messages[2]["content"] or "")
            names = [call["function"]["name"] for call in messages[2].get("tool_calls") or ()]
            assert [call["function"]["name"] for call in answer.tool_calls] == names


@pytest.mark.slow
def test_scores_are_written_and_come_out_the_same_again(
    dataset: Path, model: Path, tmp_path: Path
) -> None:
    def scored(name: str) -> Path:
        given: dict[str, Any] = of(dataset, tasks=3).model_dump() | {"model": str(model)}
        config = ScoreConfig(**given, out=str(tmp_path / name), sampling=Sampling(max_tokens=30))
        return score(config).folder

    first, second = scored("a"), scored("b")
    found = json.loads((first / SCORES).read_text())
    again = json.loads((second / SCORES).read_text())
    assert found["episodes"] == again["episodes"]
    assert (first / EPISODES).read_text() == (second / EPISODES).read_text()
    assert [row["kind"] for row in found["scores"]] == ["tasks of the training data"]


GOOD = EpisodeScore(
    task_id="t-1", split="heldout_task", cluster="d-1", known_tools=True, solvable=True,
    ended="user_done", success=True, left_open=False, reward=1.0, false_statements=0,
    unshown_values=0, calls=3, valid_calls=3, wanted_calls=2, exact_calls=2, breaches=0, turns=4,
    prompt_tokens=9,
)  # fmt: skip


def test_shares_are_of_what_the_agent_did_itself() -> None:
    bad = GOOD._replace(success=False, reward=0.0, valid_calls=1, exact_calls=0, breaches=2)
    bad = bad._replace(cluster="d-2", false_statements=1, unshown_values=2)
    sorry = GOOD._replace(solvable=False, calls=0, valid_calls=0, wanted_calls=0, exact_calls=0)
    outside = bad._replace(ended="infra_error")
    [unseen, tools] = scores_of(
        [GOOD._replace(split="heldout_tool"), GOOD, bad, sorry, outside, outside]
    )
    assert (tools.split, tools.episodes, unseen.split) == ("heldout_tool", 1, "heldout_task")
    assert (unseen.episodes, unseen.left_aside, unseen.clusters) == (3, 2, 2)
    assert unseen.success[:2] == (2, 3)
    assert unseen.solved[:2] == (1, 2)
    assert unseen.truthful[:2] == unseen.all_shown[:2] == (2, 3)
    assert unseen.valid_calls[:2] == (4, 6)
    assert unseen.exact_calls[:2] == (2, 4)
    assert unseen.without_breach[:2] == (2, 3)
    assert unseen.mean_reward == pytest.approx(2 / 3)
    assert unseen.mean_calls == pytest.approx(4 / 3)
    low, high = clustered([("d-1", 1, 1), ("d-2", 0, 1), ("d-1", 1, 1)])
    head, _, episodes, clusters, calls, success, *_ = table([unseen, tools]).splitlines()
    assert head == "| scored on | new combination of tools | new tools |"
    assert episodes == "| episodes | 3 | 1 |"
    assert clusters == "| domains, or new tools | 2 | 1 |"
    assert calls == "| calls of the reference plan, mean | 1.3 | 2.0 |"
    assert success.startswith(f"| task success | 0.67 ({low:.2f} to {high:.2f}) | 1.00 (")
    [told, _] = as_json([unseen, tools])
    assert told["success"] == {"hits": 2, "n": 3, "share": 2 / 3, "interval": (low, high)}
    assert told["kind"] == "new combination of tools"


def test_intervals_are_of_clusters_and_not_of_episodes() -> None:
    """Ten episodes of a domain that go alike say no more than one of each."""
    few = [("a", 1, 1), ("b", 0, 1), ("c", 1, 1), ("d", 0, 1), ("e", 1, 1), ("f", 1, 1)]
    many = [(cluster, hits * 10, 10) for cluster, hits, _ in few]
    assert clustered(many) == clustered(few) == clustered([one for one in few])
    apart = [(f"{cluster}{i}", hits, 1) for cluster, hits, _ in few for i in range(10)]
    wide, narrow = clustered(many), clustered(apart)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    assert clustered([("a", 0, 50), ("b", 0, 50)]) == wilson(0, 2)
    assert clustered([("a", 50, 50), ("b", 50, 50)]) == wilson(2, 2)


def test_one_cluster_says_next_to_nothing_whatever_its_share() -> None:
    low, high = clustered([("a", 20, 40), ("a", 20, 40)])
    assert low < 0.1
    assert high > 0.9


def test_a_dataset_without_runs_is_refused(tmp_path: Path) -> None:
    Dataset.create_or_open(tmp_path / "empty")
    with pytest.raises(ConfigError, match="no run with trajectories"):
        evaluate(Silent(), of(tmp_path / "empty"), journal=tmp_path / "j")


def test_what_code_cannot_decide_is_left_open() -> None:
    told = {"kind": "communicate", "check": {"values": ["Heron"]}, "words": "The boat is told."}
    rubric = Rubric.model_validate(
        {
            "pass_threshold": 0.5,
            "criteria": [
                {"id": "told", "mandatory": True, "weight": 1.0, **told},
                {"id": "also", "mandatory": False, "weight": 1.0, **told},
            ],
        }
    )
    undecided, met = Verdict(None, 0.0, "open"), Verdict(True, 1.0, "met")
    assert left_open(rubric, {"told": undecided, "also": met}) == ["told"]
    assert left_open(rubric, {"told": met, "also": undecided}) == []
    said = [{"role": "assistant", "content": "It is called Heron."}]
    assert plainly_told(rubric, ["told"], said)
    assert not plainly_told(rubric, ["told"], [{"role": "assistant", "content": "None."}])
