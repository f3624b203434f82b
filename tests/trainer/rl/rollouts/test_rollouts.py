"""Every episode comes back once, with its name and its exact tokens, whatever goes wrong in it."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from records.chat.k2 import END
from records.errors import ConfigError
from synth.gym.core.environment import GymTask
from tests.trainer.rl.rollouts.toys import (
    FAULTS,
    STEP_S,
    Errands,
    Twice,
    model_folder,
    policy_of,
    tasks_of,
    tokenizer,
)
from trainer.data.chat import parse_answer
from trainer.inference.drawing import Sampling
from trainer.inference.policies import ModelPolicy
from trainer.rl.rollouts.episodes import EpisodeKey
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.samples import Group, RolloutSample, sample_to_json
from trainer.rl.rollouts.settings import RepeatSettings, RolloutSettings
from trainer.rl.rollouts.table import write_samples
from trainer.rl.rollouts.weights import LocalWeights


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models of one shape."""
    return [model_folder(tmp_path_factory.mktemp(f"model_{seed}"), seed) for seed in (0, 1)]


def settings_of(**other: Any) -> RolloutSettings:
    return RolloutSettings(**({"samples": 2, "chunk_tokens": 5, "step_s": 300.0} | other))


def play(
    policy: ModelPolicy,
    settings: RolloutSettings,
    folder: Path,
    *iterations: Sequence[GymTask],
    environment: Errands | None = None,
    seed: int = 0,
) -> tuple[list[list[Group]], list[Any]]:
    """Groups and accounts, iteration by iteration."""

    async def all_of_them() -> tuple[list[list[Group]], list[Any]]:
        played = [Twice(), environment or Errands()]
        rollouts = Rollouts(policy, played, settings, folder, seed=seed)
        groups, figures = [], []
        for number, tasks in enumerate(iterations):
            groups.append(await rollouts.play(tasks, number))
            figures.append(rollouts.figures)
        await rollouts.close()
        return groups, figures

    return asyncio.run(all_of_them())


def samples_of(groups: Sequence[Group]) -> list[RolloutSample]:
    return [sample for group in groups for sample in group.samples]


def key_of(sample: RolloutSample) -> EpisodeKey:
    return EpisodeKey(sample.begun, sample.task.task_id, sample.number)


@pytest.mark.parametrize("deterministic", [False, True])
def test_groups_come_back_whole_in_order_with_exact_tokens(
    deterministic: bool, folders: list[Path], tmp_path: Path
) -> None:
    tasks = [*tasks_of("twice", 3), *tasks_of("errands", 2, turns=3)]
    settings = settings_of(samples=3, in_flight=4, deterministic=deterministic)
    environment, own = Errands(), tokenizer()
    policy = policy_of(folders[0])
    [groups], [figures] = play(policy, settings, tmp_path, tasks, environment=environment)
    assert [group.task for group in groups] == tasks
    for group in groups:
        assert [sample.number for sample in group.samples] == [0, 1, 2]
        for sample in group.samples:
            [tokens] = sample.tokens
            said = [m["content"] for m in sample.messages if m["role"] == "assistant"]
            drawn = [tokens.ids[answer.begin : answer.end] for answer in tokens.answers]
            played = drawn[: -1 if sample.outcome in ("silent", "endless") else None]
            assert said == [parse_answer(own, ids).content for ids in played]
            assert sample.turns == len(drawn)
            assert sample.drawn == sum(map(len, drawn)) == sum(tokens.drawn) > 0
            assert (sample.reward is None) == (sample.outcome in ("silent", "endless"))
    samples = samples_of(groups)
    assert len({sample.seed for sample in samples}) == 15
    assert any(sample.turns == 3 for sample in samples)
    account = figures.account
    assert account.outcomes == Counter(sample.outcome for sample in samples)
    assert set(account.outcomes) >= {"completed", "endless"}
    assert (account.begun, account.finished, account.carried, account.lost) == (15, 15, 0, 0)
    assert figures.tokens == sum(sample.drawn for sample in samples)
    assert 0 < figures.occupancy <= 1
    assert environment.open == 0


def test_another_seed_of_the_run_draws_others(folders: list[Path], tmp_path: Path) -> None:
    said = []
    for name, seed in (("a", 0), ("b", 1), ("c", 1)):
        policy = policy_of(folders[0])
        [[group]], _ = play(
            policy, settings_of(samples=3), tmp_path / name, tasks_of("twice", 1), seed=seed
        )
        said.append([(sample.seed, sample.tokens[0].ids) for sample in group.samples])
    assert said[1] == said[2]
    assert not {seed for seed, _ in said[0]} & {seed for seed, _ in said[1]}
    assert [ids for _, ids in said[0]] != [ids for _, ids in said[1]]


def test_samples_hang_on_task_number_and_iteration_alone(
    folders: list[Path], tmp_path: Path
) -> None:
    """However they are played, and beside whatever."""
    tasks = [*tasks_of("twice", 2), *tasks_of("errands", 2, turns=3)]
    said = []
    for number, (deterministic, in_flight, slots, asked) in enumerate(
        [(True, 8, 3, tasks), (False, 2, 2, tasks[::-1]), (False, 9, 1, tasks[2:])]
    ):
        settings = settings_of(deterministic=deterministic, in_flight=in_flight)
        policy = policy_of(folders[0], slots=slots)
        [groups], _ = play(policy, settings, tmp_path / str(number), asked)
        said.append({key_of(s): (s.messages, s.outcome, s.reward) for s in samples_of(groups)})
    assert said[0] == said[1]
    assert said[2] == {key: said[0][key] for key in said[2]}
    assert len(said[2]) == 4


def test_what_environments_do_wrong_costs_their_episode_alone(
    folders: list[Path], tmp_path: Path
) -> None:
    expected = {}
    tasks = []
    for fault, outcome in FAULTS.items():
        for at in (-1, 0, 1):
            if at > -1 or fault in ("raises", "exits", "hangs"):
                body = {"turns": 3, "fault": fault, "at": at}
                tasks.append(GymTask(f"{fault} at {at}", "errands", "train", (), body))
                expected[tasks[-1].task_id] = outcome
    busy = GymTask("busy", "errands", "train", (), {"turns": 1, "fault": "busy", "at": -1})
    blocking = GymTask("blocks", "twice", "train", (), {"number": 1, "blocks": True})
    nan = GymTask("nan", "twice", "train", (), {"number": 1, "worth": "nan"})
    tasks += [blocking, nan, busy, *tasks_of("errands", 2, turns=2), *tasks_of("twice", 2)]
    expected |= {"blocks": "environment_timeout", "nan": "reward_no_number"}
    environment = Errands()
    settings = settings_of(
        samples=1, step_s=STEP_S, grace_s=STEP_S, token_budget=600, silent_answers=9
    )
    policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=200), slots=16)
    [groups], [figures] = play(policy, settings, tmp_path, tasks, environment=environment)
    found = {sample.task.task_id: sample for sample in samples_of(groups)}
    assert {task: sample.outcome for task, sample in found.items()} == {
        task.task_id: expected.get(task.task_id, "completed") for task in tasks
    }
    for sample in found.values():
        assert sample.lost == (sample.reward is None) == bool(sample.detail)
    account = figures.account
    assert (account.begun, account.finished, account.lost) == (len(tasks), 5, len(expected))
    assert environment.begun["busy"] == 3
    assert environment.open == 0


@pytest.mark.parametrize(
    ("always", "sampling", "other", "outcome", "worth"),
    [
        (END, Sampling(max_tokens=20), {}, "silent", None),
        (END, Sampling(max_tokens=20), {"silence": "fails"}, "silent", 0.0),
        ("i", Sampling(max_tokens=20), {}, "endless", None),
        ("i", Sampling(max_tokens=90), {"token_budget": 20}, "truncated", 0.0),
        (
            "i",
            Sampling(max_tokens=90),
            {"repeats": RepeatSettings(tokens=24, period=4)},
            "repeats",
            0.0,
        ),
        (END, Sampling(max_tokens=9), {"silent_answers": 9, "most_turns": 3}, "too_many_turns", 0),
    ],
)
def test_a_policy_that_stops_writing_or_never_stops_has_its_name(
    always: str,
    sampling: Sampling,
    other: dict[str, Any],
    outcome: str,
    worth: float | None,
    tmp_path: Path,
) -> None:
    policy = policy_of(model_folder(tmp_path / "model", always=always), sampling)
    settings = settings_of(**other)
    [groups], _ = play(policy, settings, tmp_path / "kept", tasks_of("errands", 1, turns=8))
    for sample in samples_of(groups):
        assert sample.outcome == outcome
        assert (sample.reward.value if sample.reward else None) == worth
        assert sample.truncated == (outcome in ("truncated", "repeats", "too_many_turns"))
        if outcome == "truncated":
            assert sample.drawn == 20
        if outcome == "repeats":
            assert 24 <= sample.drawn < 24 + 5
        if outcome == "too_many_turns":
            assert sample.turns == 3


def test_a_cut_answer_is_played_and_keeps_what_it_is_worth(tmp_path: Path) -> None:
    policy = policy_of(model_folder(tmp_path / "model", always="i"), Sampling(max_tokens=90))
    settings = settings_of(token_budgets={"twice": 7}, token_budget=50)
    task = GymTask("t", "twice", "train", (), {"number": 1, "worth": 0.75})
    [[group]], _ = play(policy, settings, tmp_path / "kept", [task])
    for sample in group.samples:
        assert (sample.outcome, sample.truncated, sample.drawn) == ("truncated", True, 7)
        assert sample.reward is not None
        assert sample.reward.value == 0.75
        assert sample.messages[-1]["content"] == "i" * 7
        assert sample.tokens[0].drawn[-1] is False  # the end token, which it did not draw


def test_an_episode_that_its_environment_cut_is_truncated_and_keeps_its_reward(
    folders: list[Path], tmp_path: Path
) -> None:
    policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=200))
    tasks = tasks_of("errands", 2, turns=2, cuts=True)
    [groups], _ = play(policy, settings_of(silent_answers=9), tmp_path, tasks)
    for sample in samples_of(groups):
        assert (sample.outcome, sample.truncated) == ("truncated", True)
        assert sample.reward is not None
        assert sample.reward.parts == {"words": 1.0}


def test_a_conversation_that_outgrows_its_slot_is_truncated(
    folders: list[Path], tmp_path: Path
) -> None:
    policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=200), slot_tokens=300)
    settings = settings_of(silent_answers=99, most_turns=99, token_budget=5000)
    [groups], _ = play(policy, settings, tmp_path, tasks_of("errands", 2, turns=50))
    for sample in samples_of(groups):
        assert (sample.outcome, sample.turns > 1) == ("truncated", True)
        assert sample.reward is not None
        assert len(sample.tokens[0].ids) > 260


def test_nobody_waits_for_the_environment_of_another(folders: list[Path], tmp_path: Path) -> None:
    """The step of one episode waits until all others are over, one after the other."""
    others = tasks_of("errands", 4, turns=2)
    over, closed_ones = asyncio.Event(), list[str]()

    class Slow(Errands):
        async def begin(self, task: GymTask, seed: int) -> Any:
            episode = await super().begin(task, seed)
            step, close = episode.step, episode.close

            async def waiting(action: Any) -> Any:
                await over.wait()
                return await step(action)

            async def closed() -> None:
                await close()
                closed_ones.append(task.task_id)
                if len(closed_ones) == len(others):
                    over.set()

            episode.close = closed  # type: ignore[method-assign]
            if task.task_id == "slow":
                episode.step = waiting  # type: ignore[method-assign]
            return episode

    slow = GymTask("slow", "errands", "train", (), {"turns": 1})
    settings = settings_of(samples=1, in_flight=2, silent_answers=9, token_budget=5000)
    policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=200), slots=1)
    [groups], [figures] = play(policy, settings, tmp_path, [slow, *others], environment=Slow())
    assert {sample.outcome for sample in samples_of(groups)} == {"completed"}
    assert figures.account.finished == 5
    assert closed_ones[-1] == "slow"
    assert figures.waiting_s > 0


def mixed(number: int) -> list[GymTask]:
    """Tasks of an iteration, some of them faulty."""
    rng = random.Random(number)
    faults = [fault for fault in FAULTS if fault not in ("hangs", "late")]
    tasks = tasks_of("errands", 3, turns=rng.randrange(2, 5))
    tasks.append(
        GymTask(
            f"faulty-{number}",
            "errands",
            "train",
            (),
            {"turns": 4, "fault": rng.choice(faults), "at": rng.randrange(3)},
        )
    )
    return [*tasks, *tasks_of("twice", 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"deterministic": True, "phase_tokens": 90, "in_flight": 5},
        {"deterministic": True, "segment_tokens": 4, "in_flight": 20},
        {"phase_tokens": 70, "in_flight": 6, "part_samples": 3},
        {"segment_tokens": 6, "in_flight": 3},
    ],
)
def test_every_episode_is_accounted_for_and_none_is_rewarded_twice(
    other: dict[str, Any], folders: list[Path], tmp_path: Path
) -> None:
    """Over iterations in which episodes pause and go on, fail and grow too old."""
    iterations = [mixed(0), mixed(1), [], [], []]
    environment = Errands()
    settings = settings_of(most_iterations=3, **other)
    groups, figures = play(
        policy_of(folders[0]), settings, tmp_path, *iterations, environment=environment
    )
    carried, seen = 0, Counter[EpisodeKey]()
    for number, (tasks, some, told) in enumerate(zip(iterations, groups, figures, strict=True)):
        account = told.account
        assert account.begun == carried + 2 * len(tasks)
        assert account.begun == account.finished + account.carried + account.lost
        carried = account.carried
        for sample in samples_of(some):
            seen[key_of(sample)] += 1
            assert sample.begun <= sample.ended <= number < sample.begun + 3
            assert (sample.reward is None) == (
                sample.lost or sample.outcome in ("silent", "endless")
            )
    assert carried == 0
    wanted = {
        EpisodeKey(at, task.task_id, number)
        for at, tasks in enumerate(iterations)
        for task in tasks
        for number in range(2)
    }
    assert seen == Counter(wanted)
    assert figures[0].account.carried > 0
    assert any(s.ended > s.begun for some in groups for s in samples_of(some))
    assert environment.open == 0


def paused_and_gone_on(
    folders: list[Path], kept: Path, *, again: bool
) -> tuple[list[list[Group]], Errands]:
    """Three iterations, each with other weights; with `again` each by a new process's objects."""
    environment, groups = Errands(), []
    settings = settings_of(deterministic=True, segment_tokens=9, in_flight=3, most_iterations=9)
    iterations = [tasks_of("errands", 2, turns=3), tasks_of("twice", 2), [], []]

    async def some() -> None:
        def begin() -> tuple[ModelPolicy, Rollouts]:
            policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=30))
            return policy, Rollouts(policy, [Twice(), environment], settings, kept)

        policy, rollouts = begin()
        for number, tasks in enumerate(iterations):
            if number and again:
                policy, rollouts = begin()
            weights = LocalWeights(policy)
            if number:
                sync = weights.take(folders[number % 2], number)
                assert sync.checksum == policy.checksum()
                assert weights.version == sync.version == number
            groups.append(await rollouts.play(tasks, number))
            if again:
                await rollouts.close()
        await rollouts.close()

    asyncio.run(some())
    return groups, environment


def test_paused_episodes_go_on_under_new_weights_with_their_environments(
    folders: list[Path], tmp_path: Path
) -> None:
    """Brought back by their answers, by another process, they come out the same to the bit."""
    kept_open, environment = paused_and_gone_on(folders, tmp_path / "a", again=False)
    assert set(environment.begun.values()) == {2}  # a sample each
    samples = [sample for some in kept_open for sample in samples_of(some)]
    over_several = [s for s in samples if s.ended > s.begun]
    assert over_several
    versions = {
        (sample.begun, sample.ended): {v for v in sample.tokens[0].versions if v is not None}
        for sample in over_several
    }
    assert all({begun, ended} == {min(v), max(v)} for (begun, ended), v in versions.items())
    brought_back, environment = paused_and_gone_on(folders, tmp_path / "b", again=True)
    assert max(environment.begun.values()) > 2
    assert [[sample_to_json(s) for s in samples_of(some)] for some in brought_back] == [
        [sample_to_json(s) for s in samples_of(some)] for some in kept_open
    ]


def test_an_environment_that_comes_back_otherwise_is_found_out(
    folders: list[Path], tmp_path: Path
) -> None:
    settings = settings_of(segment_tokens=8, deterministic=True, silent_answers=9)
    tasks = tasks_of("errands", 2, turns=9)
    play(policy_of(folders[0]), settings, tmp_path, tasks)

    class Moody(Errands):
        async def begin(self, task: GymTask, seed: int) -> Any:
            return await super().begin(task, seed + 1)

    async def later() -> list[Group]:
        rollouts = Rollouts(policy_of(folders[0]), [Twice(), Moody()], settings, tmp_path)
        await rollouts.play(tasks, 0)
        return await rollouts.play([], 1)

    found = Counter(sample.outcome for sample in samples_of(asyncio.run(later())))
    assert found["changed"] > 0
    assert set(found) <= {"changed", "silent", "endless"}


def test_an_iteration_that_was_played_is_read_and_one_of_other_weights_played_anew(
    folders: list[Path], tmp_path: Path
) -> None:
    tasks, settings = mixed(0), settings_of(segment_tokens=8, most_iterations=2)
    policy = policy_of(folders[0])
    first, figures = play(policy, settings, tmp_path, tasks, [])
    again, read = play(policy_of(folders[0]), settings, tmp_path, tasks, [])
    as_json = [[sample_to_json(s) for s in samples_of(some)] for some in first]
    assert [[sample_to_json(s) for s in samples_of(some)] for some in again] == as_json
    assert read == figures
    other, _ = play(policy_of(folders[1]), settings, tmp_path, tasks, [])
    keys = [key_of(s) for some in other for s in samples_of(some)]
    assert sorted(keys) == sorted(key_of(s) for some in first for s in samples_of(some))
    assert [[sample_to_json(s) for s in samples_of(some)] for some in other] != as_json
    rollouts = Rollouts(policy, [Errands()], settings, tmp_path)
    rollouts.delete_before(2)
    assert [path.name for path in tmp_path.iterdir()] == ["iteration-000001"]
    asyncio.run(rollouts.play([], 2))
    with pytest.raises(ConfigError, match="none of iteration 3 that are over"):
        asyncio.run(rollouts.play([], 4))


def test_what_cannot_be_played_is_refused(folders: list[Path], tmp_path: Path) -> None:
    policy, settings = policy_of(folders[0]), settings_of()
    with pytest.raises(ConfigError, match="two environments play the family errands"):
        Rollouts(policy, [Errands(), Errands()], settings, tmp_path)
    rollouts = Rollouts(policy, [Errands()], settings, tmp_path)
    with pytest.raises(ConfigError, match=r"family twice; there are environments of: errands"):
        asyncio.run(rollouts.play(tasks_of("twice", 1), 0))
    with pytest.raises(ConfigError, match="errands-0 is asked for 2 times in one iteration"):
        asyncio.run(rollouts.play(tasks_of("errands", 1, turns=1) * 2, 0))
    nan = GymTask("nan", "errands", "train", (), {"turns": float("nan")})
    with pytest.raises(ConfigError, match="task nan of the family errands is no JSON"):
        asyncio.run(rollouts.play([nan], 0))
    assert list(tmp_path.iterdir()) == []


def test_a_policy_whose_weights_are_damaged_stops_the_phase_and_closes_what_is_open(
    folders: list[Path], tmp_path: Path
) -> None:
    policy, environment = policy_of(folders[0]), Errands()
    policy._sampler.model.lm_head.weight.data.fill_(float("nan"))
    for deterministic in (True, False):
        settings = settings_of(deterministic=deterministic)
        with pytest.raises(ConfigError, match="logits are no numbers"):
            play(
                policy,
                settings,
                tmp_path / str(deterministic),
                tasks_of("errands", 3, turns=2),
                environment=environment,
            )
        assert environment.open == 0


def test_samples_are_rows_that_sql_reads(folders: list[Path], tmp_path: Path) -> None:
    tasks = [*tasks_of("twice", 2), *tasks_of("errands", 1, turns=2)]
    [groups], _ = play(policy_of(folders[0]), settings_of(), tmp_path / "kept", tasks)
    write_samples(tmp_path / "samples.parquet", groups)
    rows = (
        duckdb.connect()
        .execute(
            "select task_id, sample, reward, outcome, messages->>'$[0].role', "
            f"""tokens_by_version->>'$."0"' from '{tmp_path}/samples.parquet'"""
        )
        .fetchall()
    )
    assert rows == [
        (
            s.task.task_id,
            s.number,
            s.reward.value if s.reward else None,
            s.outcome,
            "system",
            str(s.drawn),
        )
        for s in samples_of(groups)
    ]
