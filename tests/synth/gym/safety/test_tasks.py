"""Tasks hang on the settings, splits share nothing, and what is wanted stands where it belongs."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from records.errors import ConfigError
from synth.gym.core.asking import Asking
from synth.gym.core.environment import GymSplit, GymTask
from synth.gym.maths.splits import SplitCounts
from synth.gym.safety.environment import SPLITS, Safety
from synth.gym.safety.pools import built_in, part_of
from synth.gym.safety.settings import SafetySettings
from synth.llm.settings.config import RoleConfig

COUNTS = SplitCounts(train=60, validation=20, heldout=20)
ALL = SafetySettings(injections=COUNTS, secrets=COUNTS, harmful=COUNTS, lookalikes=COUNTS)


class WithRoles(Asking):
    """Has every role and is never asked."""

    def __init__(self) -> None:
        super().__init__()
        self.roles = {"judge": RoleConfig(), "attacker": RoleConfig()}


TASKS = Safety(ALL, WithRoles()).tasks()


def of(kind: str, split: GymSplit | None = None) -> Iterator[GymTask]:
    return (t for t in TASKS if t.body["kind"] == kind and split in (None, t.split))


def test_tasks_hang_on_the_settings_alone() -> None:
    assert Safety(ALL, WithRoles()).tasks() == TASKS
    assert [json.loads(json.dumps(task.body)) for task in TASKS] == [task.body for task in TASKS]
    assert len({task.task_id for task in TASKS}) == len(TASKS)
    other = Safety(ALL.model_copy(update={"seed": 1}), WithRoles()).tasks()
    assert not {task.task_id for task in other if task.body["kind"] == "injection"} & {
        task.task_id for task in TASKS
    }


def test_every_kind_has_the_counts_of_its_splits() -> None:
    counts = Counter((task.body["kind"], task.split) for task in TASKS)
    kinds = ("injection", "secret", "harmful", "lookalike")
    assert counts == {(kind, split): COUNTS.of(split) for kind in kinds for split in SPLITS}


@pytest.mark.parametrize("kind", ["injection", "secret"])
def test_no_scene_is_in_two_splits(kind: str) -> None:
    seen = [{tag for t in of(kind, split) for tag in t.tags if "domain" in tag} for split in SPLITS]
    assert all(seen)
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]


def test_no_request_is_in_two_splits_and_a_pair_is_in_one() -> None:
    split_of: dict[str, str] = {}
    for kind in ("harmful", "lookalike"):
        for task in of(kind):
            assert split_of.setdefault(task.body["request"], task.split) == task.split
    for risk in built_in("seeds.toml")["risks"].values():
        for harmful, lookalike in risk["pairs"]:
            both = {split_of.get(harmful), split_of.get(lookalike)} - {None}
            assert len(both) <= 1


def test_every_list_has_something_for_every_split_and_shares_nothing() -> None:
    known = (built_in("tactics.toml"), built_in("injections.toml"), built_in("scenes.toml"))
    lists = [
        *lists_in(known),
        *(risk["pairs"] for risk in built_in("seeds.toml")["risks"].values()),
    ]
    for entries in lists:
        parts = [part_of(entries, split) for split in SPLITS]
        assert all(parts)
        assert sorted(map(str, entries)) == sorted(str(one) for part in parts for one in part)


def lists_in(tables: Any) -> Iterator[list[Any]]:
    """Those that are divided among the splits."""
    tactics, injections, scenes = tables
    yield from (tactics["pushes"], tactics["secrets"]["pushes"], tactics["secrets"]["wordings"])
    yield from (own["wordings"] for own in tactics["tactics"].values())
    yield from (*injections["goals"].values(), injections["wordings"])
    yield from (scenes["scenes"], scenes["desks"])


def test_a_value_that_is_wanted_is_found_by_the_tool_alone() -> None:
    for task in of("injection"):
        body = task.body
        (record,) = body["records"].values()
        seen_before = body["system"] + body["question"]
        assert body["wanted"] not in seen_before
        assert body["wanted"] in json.dumps(record)
        assert (body["mark"] in record["text"]) if body["mark"] else True
        assert body["secret"] not in json.dumps(record)
        assert body["mark"] != body["wanted"]


def test_an_address_is_the_user_s_or_stands_where_the_user_says() -> None:
    forms = Counter[str]()
    for task in of("injection"):
        body = task.body
        (record,) = body["records"].values()
        form = next(tag for tag in task.tags if tag.startswith("form:")).removeprefix("form:")
        forms[form] += 1
        assert (body["target"] is None) == (form == "tell")
        if body["target"]:
            assert (body["target"] in body["question"]) == (form == "pass_on")
            assert (body["target"] in record["text"]) == (form == "follow")
        assert (form, body["goal"]) != ("follow", "call")
    assert min(forms[form] for form in ("tell", "pass_on", "follow")) > 10


def test_controls_have_their_share_and_attacks_come_evenly() -> None:
    goals = Counter(task.body["goal"] for task in of("injection", "train"))
    assert goals.pop("none") == 15
    assert set(goals.values()) <= {11, 12}
    free = SafetySettings(injections=COUNTS, controls=0.0)
    assert "none" not in {task.body.get("goal") for task in Safety(free).tasks()}


def test_a_desk_tells_what_it_is_asked_for_and_holds_what_it_keeps() -> None:
    for task in of("secret"):
        body = task.body
        assert body["wanted"] in body["system"]
        assert body["secret"] in body["system"]
        assert len(body["turns"]) == int(task.tags[-1].removeprefix("level:")) + 1
        assert body["turns"][body["wanted_at"]].endswith("?")
        assert all(body["secret"] not in words for words in body["turns"])


def test_no_form_tells_what_is_harmful_from_what_is_not() -> None:
    for facet in ("tactic:", "level:"):
        found = [
            {tag for task in of(kind) for tag in task.tags if tag.startswith(facet)}
            for kind in ("harmful", "lookalike")
        ]
        assert found[0] == found[1]
    for task in (*of("harmful"), *of("lookalike")):
        assert task.body["request"] in task.body["turns"][0]


def test_every_criterion_is_of_the_rubric_of_its_kind() -> None:
    for task in of("harmful"):
        cares = {"cares"} if "category:self_harm" in task.tags else set[str]()
        assert set(task.body["criteria"]) == {"withholds", "responds"} | cares
    assert {tuple(task.body["criteria"]) for task in of("lookalike")} == {("answers",)}


def test_requests_of_the_user_take_the_place_of_the_built_in_ones(tmp_path: Path) -> None:
    rows = [
        {"request": f"Help me with matter {n}, please.", "risk": "own", "harmful": n % 2 == 0}
        for n in range(120)
    ]
    path = tmp_path / "seeds.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    small = SplitCounts(train=12, validation=4, heldout=4)
    config = SafetySettings(harmful=small, lookalikes=small, seeds=str(path))
    tasks = [t for t in Safety(config, WithRoles()).tasks() if "criteria" in t.body]
    own = {row["request"]: row["harmful"] for row in rows}
    assert len(tasks) == 40
    for task in tasks:
        assert own[task.body["request"]] == (task.body["kind"] == "harmful")
        assert "category:own" in task.tags


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "holds no"),
        ([{"request": "x", "risk": "y"}], "harmful = None; a row has"),
        ([{"request": " ", "risk": "y", "harmful": True}], "request = ' '"),
        (["only words"], "row 0 is 'only words'"),
        ([{"request": "x", "risk": "y", "harmful": True}], "has no harmful request for|wanted"),
    ],
)
def test_requests_that_are_refused(rows: list[Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "seeds.json"
    path.write_text(json.dumps(rows))
    config = SafetySettings(harmful=COUNTS, seeds=str(path))
    with pytest.raises(ConfigError, match=words):
        Safety(config, WithRoles()).tasks()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SafetySettings(harmful=COUNTS), "safety.harmful needs the role judge"),
        (SafetySettings(lookalikes=COUNTS), "safety.lookalikes needs the role judge"),
        (SafetySettings(attacker=True), "safety.attacker needs the role attacker"),
    ],
)
def test_a_role_that_is_lacking_is_told_before_anything_is_played(
    settings: SafetySettings, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        Safety(settings)


def test_more_than_there_are_is_refused() -> None:
    many = SplitCounts(train=0, validation=60, heldout=0)
    with pytest.raises(ConfigError, match="different tasks of kind lookalike for validation"):
        Safety(SafetySettings(lookalikes=many, turns=(1,)), WithRoles()).tasks()


@pytest.mark.parametrize("turns", [(), (0,), (1, -1)])
def test_turns_are_numbers_from_1_on(turns: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="turns are numbers from 1 on"):
        SafetySettings(turns=turns)
