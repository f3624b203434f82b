"""What is copied is what was said, and nothing is made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.proof.slots import CopySlots
from benchmarks.proof.slots_text import Fact, read
from trainer.data.chat import AssistantAnswer
from trainer.data.sources import CorpusConfig
from trainer.inference.policies import PolicyRequest

TEXT = {"type": "string"}


def tool(name: str, description: str, required: int | None = None, /, **parameters: Any) -> Any:
    needed = list(parameters)[:required]
    schema = {"type": "object", "properties": parameters, "required": needed}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


FIND_HIVE = tool(
    "find_hives",
    "Find hives by their name. Returns hives (each with hive_id and name).",
    name={**TEXT, "description": "Name of the hive, such as Lime hill."},
)
FEED_HIVE = tool(
    "feed_hive",
    "Feed a hive with syrup. Returns feeding_id and stores in kg.",
    2,
    hive_id={**TEXT, "description": "Id of the hive, such as HV-1001."},
    litres={"type": "number", "description": "How much syrup, such as 2.5. Unit: l."},
    strength={**TEXT, "enum": ["thin", "thick"], "description": "Of the syrup."},
    fed_on={**TEXT, "format": "date", "description": "Day, such as 2026-03-04."},
)
HIVES = [FIND_HIVE, FEED_HIVE]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calling(at: int, name: str, result: Any, /, **arguments: Any) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{at}", "type": "function", "function": function}
    answer = {"role": "tool", "tool_call_id": f"call_{at}", "content": json.dumps(result)}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}, answer]


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


SWAN = {"hives": [{"hive_id": "HV-1002", "name": "Swan lane"}]}
FED = {"feeding_id": "FD-7", "stores": 11.5, "late": False}
OAK = {"hives": [{"hive_id": "HV-1009", "name": "Old oak"}, {"hive_id": "HV-1003", "name": "Oak"}]}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> CopySlots:
    """Of two conversations: one wish is done, one cannot be."""
    rows = [
        {
            "messages": [
                user('Please nourish the hive. The hive name is "Swan lane", the litres is 3.'),
                *calling(0, "find_hives", SWAN, name="Swan lane"),
                *calling(1, "feed_hive", FED, hive_id="HV-1002", litres=3),
                says("Consider it done. The feeding id is FD-7."),
            ],
            "tools": HIVES,
        },
        {
            "messages": [
                user("Please paint the fence. The fence colour is green."),
                says("Sorry, no tool of mine does that. What else is there?"),
            ],
            "tools": HIVES,
        },
    ]
    path = tmp_path_factory.mktemp("corpus") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return CopySlots(CorpusConfig(path=str(path)))


def answer(policy: CopySlots, messages: list[Any], tools: list[Any]) -> AssistantAnswer:
    [made] = policy.answers([PolicyRequest(messages, tools, 0)])
    return made


def made(policy: CopySlots, messages: list[Any], tools: list[Any]) -> list[tuple[str, Any]]:
    calls = answer(policy, messages, tools).tool_calls
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]


def test_an_examples_calls_are_made_with_the_present_values(policy: CopySlots) -> None:
    talk = [user('Please nourish the hive. The hive name is "Old oak", the litres is 1.5.')]
    assert made(policy, talk, HIVES) == [("find_hives", {"name": "Old oak"})]
    talk += calling(0, "find_hives", OAK, name="Old oak")
    assert made(policy, talk, HIVES) == [("feed_hive", {"hive_id": "HV-1009", "litres": 1.5})]
    talk += calling(1, "feed_hive", FED, hive_id="HV-1009", litres=1.5)
    told = answer(policy, talk, HIVES)
    assert not told.tool_calls
    assert told.content.startswith("Consider it done.")
    assert all(value in told.content for value in ("FD-7", "11.5", "late is no"))


def test_a_tool_of_no_example_is_called_by_its_description(policy: CopySlots) -> None:
    rent = tool(
        "rent_kayak",
        "Rent a kayak to a guest for some hours.",
        kayak_id={**TEXT, "description": "Id of the kayak, such as KY-1."},
        guest={**TEXT, "description": "Who rents it, such as Ann Lee."},
        hours={"type": "integer", "description": "For how long. Unit: hours."},
        starts_on={**TEXT, "format": "date"},
        helmet={"type": "boolean", "description": "Whether a helmet is lent, too."},
    )
    paint = tool("paint_kayak", "Paint a kayak anew.", colour=TEXT)
    talk = [
        user(
            "Hello, I want to rent a kayak: kayak id KY-44, hours 3 h, starts on 5 May 2026, guest "
            "Zoe Marsh, helmet: yes. Then tell me the price."
        )
    ]
    for tools in ([paint, rent], [rent, paint, *HIVES]):
        [(name, arguments)] = made(policy, talk, tools)
        assert name == "rent_kayak"
        assert arguments == {
            "kayak_id": "KY-44",
            "guest": "Zoe Marsh",
            "hours": 3,
            "starts_on": "2026-05-05",
            "helmet": True,
        }


def test_what_stands_nowhere_is_asked_for_and_given_up_when_unknown(policy: CopySlots) -> None:
    talk = [user("Please feed the hive with thick syrup. The hive id is HV-1007.")]
    asked = answer(policy, talk, HIVES)
    assert not asked.tool_calls
    assert "litres" in asked.content
    assert asked.content.endswith("?")
    talk += [says(asked.content)]
    told = [*talk, user("The litres is 4.")]
    assert made(policy, told, HIVES) == [("feed_hive", {"hive_id": "HV-1007", "litres": 4})]
    given_up = answer(policy, [*talk, user("I don't know that, sorry.")], HIVES)
    assert not given_up.tool_calls
    assert not given_up.content.endswith("?")


@pytest.mark.parametrize(
    "text",
    [
        'Please nourish the hive. The hive name is "Old oak", the litres is 1.5.',
        "Please feed the hive with syrup. The hive id is HV-1007, strength thick, litres 2 l.",
        "Please feed the hive with syrup: hive id XX-12, litres many, fed on 1 June 2026.",
        "Find the hives by their name for Lime row.",
        "Please sing a song about spring for Ada.",
    ],
)
def test_every_argument_stands_in_the_conversation_or_the_schema(
    policy: CopySlots, text: str
) -> None:
    talk: list[Any] = [user(text)]
    for at in range(6):
        calls = made(policy, talk, HIVES)
        if not calls:
            break
        [(name, arguments)] = calls
        heard = json.dumps(talk)
        for value in arguments.values():
            assert str(value) in heard
        result = OAK if name == "find_hives" else FED
        talk += calling(at, name, result, **arguments)
    else:
        pytest.fail(f"still calling after 6 calls: {talk}")


def test_what_no_tool_does_is_refused_in_an_examples_words(policy: CopySlots) -> None:
    told = answer(policy, [user("Please paint the fence. The fence colour is red.")], HIVES)
    assert told == AssistantAnswer("Sorry, no tool of mine does that.", [], None)
    assert not answer(policy, [user("Please book a flight to Oslo.")], HIVES).tool_calls


def test_the_same_request_has_the_same_answer_in_any_company(policy: CopySlots) -> None:
    asked = [
        PolicyRequest([user(text)], HIVES, seed)
        for seed, text in enumerate(
            ["Feed hive HV-1 with syrup.", "Find hives for Oak.", "Paint the fence.", ""]
        )
    ]
    together = policy.answers(asked)
    assert together == [policy.answers([one])[0] for one in asked]
    assert policy.answers(asked[::-1]) == together[::-1]


def test_a_policy_without_examples_answers(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    policy = CopySlots(CorpusConfig(path=str(tmp_path / "none.jsonl")))
    talk = [user("Feed the hive with syrup. The hive id is HV-1007, the litres is 2.")]
    assert made(policy, talk, HIVES) == [("feed_hive", {"hive_id": "HV-1007", "litres": 2})]
    assert answer(policy, talk, []).content
    assert answer(policy, [], HIVES).content


def test_values_are_read_with_the_words_before_them() -> None:
    wished, facts = read(
        'Good day, could you please, please, move my van. The van plate is "AB, 12", the first '
        "stop is Elm Road, it starts at May 4, 2026 at 09:30 and the load in kg is 40. Then tell "
        "me the fee."
    )
    assert "move my van" in wished
    assert facts == [
        Fact(frozenset({"van", "plat"}), "AB, 12"),
        Fact(frozenset({"stop"}), "Elm Road", 1),
        Fact(frozenset({"start"}), "2026-05-04T09:30:00"),
        Fact(frozenset({"load"}), "40"),
    ]
