"""Puzzles of reasoning-gym: the library's own solutions pass, wrong and cheating answers do not."""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from synth.gym.core.environment import GymTask
from synth.gym.maths import puzzles as module
from synth.gym.maths.kinds import KINDS, LEFT_OUT
from synth.gym.maths.puzzles import Puzzles, PuzzleSettings, PuzzlesSettings
from synth.gym.maths.splits import SplitCounts

pytestmark = pytest.mark.slow

TWO = SplitCounts(train=2, validation=0, heldout=0)
ALL = PuzzlesSettings(seed=5, kinds=tuple(PuzzleSettings(kind=k, counts=TWO) for k in KINDS))


@pytest.fixture(scope="module")
def environment() -> Iterator[Puzzles]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "DRAWN_TOGETHER", 3)
        made = Puzzles(ALL)
        made.tasks()
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="module")
def by_kind(environment: Puzzles) -> Mapping[str, list[GymTask]]:
    found = defaultdict[str, list[GymTask]](list)
    for task in environment.tasks():
        found[task.body["kind"]].append(task)
    return found


def tagged(text: str) -> str:
    return f"<answer>{text}</answer>"


def solution_of(task: GymTask) -> str:
    """The library's, or for the one kind that comes without any a colouring found by trying."""
    if task.body["answer"] is not None:
        return task.body["answer"]
    assert task.body["kind"] == "graph_color"
    text = task.body["question"]
    vertices, edges, colours = (
        eval(re.search(rf"{name}: (\[.*?\])\n", text + "\n")[1])  # type: ignore[index]
        for name in ("Vertices", "Edges", "Possible colors")
    )
    found: dict[int, int] = {}
    for vertex in vertices:  # greedy does for graphs as sparse as these
        taken = {found.get(a) for a, b in edges if b == vertex}
        taken |= {found.get(b) for a, b in edges if a == vertex}
        found[vertex] = next(colour for colour in colours if colour not in taken)
    return json.dumps(found)


def value(environment: Puzzles, task: GymTask, reply: str) -> float:
    return environment.reward(task, reply).value


def test_every_kind_s_own_solutions_are_worth_1_by_the_library_too(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]]
) -> None:
    rewards = {
        (kind, number): environment.reward(task, f"Let me see. {tagged(solution_of(task))}")
        for kind, tasks in by_kind.items()
        for number, task in enumerate(tasks)
    }
    assert {key: reward for key, reward in rewards.items() if reward.value != 1.0} == {}
    assert by_kind.keys() == KINDS.keys()
    for (kind, _), reward in rewards.items():
        assert ("library" in reward.parts) == KINDS[kind].scored, kind
        assert reward.parts.get("library", 1.0) == 1.0, kind


def test_no_answer_several_answers_and_answers_to_others_are_worth_nothing(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = environment._library_score

    def asked_where_it_counts(body: Mapping[str, Any], *rest: Any) -> float | None:
        return asked(body, *rest) if KINDS[body["kind"]].check == "library" else None

    monkeypatch.setattr(environment, "_library_score", asked_where_it_counts)
    taken: list[tuple[str, str]] = []
    for kind, (task, other) in by_kind.items():
        right, wrong = solution_of(task), solution_of(other)
        replies = [
            "",
            right,
            f"The answer is {right}.",
            tagged(""),
            tagged("I do not know"),
            tagged("42424242"),
            tagged("yes or no"),
            tagged("None"),
            tagged("nan"),
            tagged("[]"),
            tagged("{}"),
            tagged(task.body["question"]),
            tagged(f"{right} or {wrong}x"),
            tagged(f"not {right}"),
            tagged(right) + tagged(wrong + "1"),
            tagged("x" * 3000),
        ]
        if right != wrong and KINDS[kind].check != "library":
            replies.append(tagged(wrong))
        taken += [(kind, reply[:60]) for reply in replies if value(environment, task, reply) != 0.0]
    assert taken == []


def test_an_answer_is_never_executed(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]], tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    touch = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    for tasks in by_kind.values():
        for reply in (touch, f"[{touch}]"):
            assert value(environment, tasks[0], tagged(reply)) == 0.0
            assert not mark.exists(), tasks[0].body["kind"]


def test_a_detour_is_no_shortest_solution(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]]
) -> None:
    task = by_kind["tower_of_hanoi"][0]
    first = solution_of(task).splitlines()[0]
    disk, start, end = re.findall(r"\d+", first)
    back = f"Move disk {disk} from Peg {end} to Peg {start}"
    detour = "\n".join([first, back, solution_of(task)])
    reward = environment.reward(task, tagged(detour))
    assert reward.value == 0.0
    assert 0 < reward.parts["library"] < 1  # what the library gives for it


def test_the_library_takes_what_the_value_does_not(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]]
) -> None:
    task = by_kind["game_of_life_halting"][0]
    reward = environment.reward(task, tagged("whatever"))
    assert (reward.value, reward.parts["library"]) == (0.0, 1.0)
    task = by_kind["number_sorting"][0]
    numbers = [float(number) for number in json.loads(solution_of(task).replace("'", '"'))]
    beside = [number + 0.4 for number in numbers]
    reward = environment.reward(task, tagged(json.dumps(beside)))
    assert (reward.value, reward.parts["library"]) == (0.0, 1.0)


def test_cryptarithms_are_solved_by_any_assignment_that_adds_up_and_no_other(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]]
) -> None:
    for task in by_kind["cryptarithm"]:
        pairs = dict(pair.split("=") for pair in solution_of(task).split(","))
        (a, b), *_ = itertools.combinations(pairs, 2)
        swapped = pairs | {a: pairs[b], b: pairs[a]}
        words = re.findall(r"^[+ ]*([A-Z]+)$", task.body["question"], re.MULTILINE)
        *terms, total = ("".join(swapped[c] for c in word) for word in words)
        adds_up = sum(map(int, terms)) == int(total) and all(t[0] != "0" for t in (*terms, total))
        reply = ",".join(f"{letter}={digit}" for letter, digit in swapped.items())
        assert value(environment, task, tagged(reply)) == float(adds_up)
        same = ",".join(f"{letter}=1" for letter in pairs)
        assert value(environment, task, tagged(same)) == 0.0


def test_every_kind_of_the_library_is_used_or_left_out_with_a_reason() -> None:
    program = "import json, reasoning_gym.factory as f; print(json.dumps(sorted(f.DATASETS)))"
    done = subprocess.run(
        [sys.executable, "-c", "import reasoning_gym\n" + program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == sorted(KINDS.keys() | LEFT_OUT.keys())


def test_a_task_of_another_version_of_the_library_is_not_scored(
    environment: Puzzles, by_kind: Mapping[str, list[GymTask]]
) -> None:
    task = by_kind["jugs"][0]
    body = {**task.body, "question": "Which jug?"}
    with pytest.raises(ConfigError, match="draws another puzzle of kind 'jugs'"):
        environment.reward(task._replace(body=body), tagged('["fill A"]'))


def beside(environment: Puzzles, settings: Mapping[str, Any]) -> Puzzles:
    """Others, with the process that has the library already."""
    made = Puzzles(PuzzlesSettings.model_validate(settings))
    made._checker = environment._checker
    return made


def tasks_elsewhere(settings: Mapping[str, Any]) -> list[str]:
    """Ids of tasks, as another process with another order of sets makes them."""
    program = (
        "import json, sys\n"
        "from synth.gym.maths.puzzles import Puzzles, PuzzlesSettings\n"
        "made = Puzzles(PuzzlesSettings.model_validate(json.loads(sys.argv[1])))\n"
        "print(json.dumps([task.task_id for task in made.tasks()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(settings)],
        env=os.environ | {"PYTHONHASHSEED": "77"},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_same_seed_draws_the_same_tasks_in_any_process(environment: Puzzles) -> None:
    counts = {"train": 3, "validation": 1, "heldout": 0}
    kinds = [{"kind": k, "counts": counts} for k in ("family_relationships", "word_ladder", "aiw")]
    settings = {"seed": 9, "kinds": kinds}
    here = beside(environment, settings)
    ids = [task.task_id for task in here.tasks()]
    assert tasks_elsewhere(settings) == ids
    other = beside(environment, settings | {"seed": 10})
    assert not set(ids) & {task.task_id for task in other.tasks()}


def test_levels_and_settings_of_the_library_reach_it(environment: Puzzles) -> None:
    own = (
        PuzzleSettings(kind="chain_sum", counts=TWO, level=0),
        PuzzleSettings(kind="chain_sum", counts=TWO, level=3),
        PuzzleSettings(kind="chain_sum", counts=TWO, settings={"min_terms": 9, "max_terms": 9}),
    )
    made = beside(environment, {"kinds": own})
    tasks = made.tasks()
    assert [task.tags[-1] for task in tasks] == ["level:0"] * 2 + ["level:3"] * 2 + [
        "level:default"
    ] * 2
    terms = [len(re.findall(r"\d+", task.body["question"])) for task in tasks]
    assert max(terms[:2]) < min(terms[2:4])
    assert terms[4:] == [9, 9]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"kind": "chain_sum", "settings": {"min_wheels": 1}}, "min_wheels"),
        ({"kind": "chain_sum", "level": 2, "settings": {"min_wheels": 1}}, "min_wheels"),
        ({"kind": "gsm_symbolic", "level": 2}, "has no levels"),
        ({"kind": "gcd", "settings": {"max_value": 2}, "counts": {"train": 99}}, "ask for fewer"),
    ],
)
def test_what_cannot_be_drawn_says_so(
    own: dict[str, Any], words: str, environment: Puzzles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEWEST_DRAWS", 30)
    monkeypatch.setattr(module, "DRAWS_FOR_ONE", 0)
    with pytest.raises(ConfigError, match=words):
        beside(environment, {"kinds": [own]}).tasks()


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"kind": "rubiks_cube"}, re.escape(LEFT_OUT["rubiks_cube"])),
        ({"kind": "crossword"}, "there are ab, acre"),
        ({"kind": "gcd", "settings": {"seed": 3}}, "follow from the family's seed"),
        ({"kind": "gcd", "settings": {"size": 3}}, "follow from the family's seed"),
    ],
)
def test_settings_that_are_refused(own: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PuzzlesSettings.model_validate({"kinds": [own]})
