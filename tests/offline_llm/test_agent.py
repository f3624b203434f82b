"""The agent on tools it was not written for: look-ups, questions, refusals, recovery."""

import json
from typing import Any

import pytest

from offline_llm.jobs import answer_of
from offline_llm.reading.results import error_of, garbled
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings
from tests.offline_llm.simulator import HIVES, OBSERVATORY, Simulated, function, text

SYSTEM = "You serve the observatory. The current date and time is 2027-05-01T09:00:00."


class Talk:
    """One conversation with an agent that makes no mistakes."""

    def __init__(
        self, tools: list[dict[str, Any]], *, system: str = SYSTEM, faults: list[str] | None = None
    ) -> None:
        self.tools, self.environment = tools, Simulated(faults=faults or [])
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def say(self, words: str) -> str:
        """What the agent answers, after the calls that it makes."""
        self.messages.append({"role": "user", "content": words})
        for _ in range(20):
            body = {
                "model": "offline-model-exact",
                "messages": self.messages,
                "tools": self.tools,
            }
            request = parse_chat(json.loads(json.dumps(body)))
            message = completion(request, answer_of(request, OfflineSettings()))
            message = message["choices"][0]["message"]
            self.messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                function = call["function"]
                self.calls.append((function["name"], json.loads(function["arguments"])))
                result = self.environment.call(*self.calls[-1])
                self.messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": result}
                )
        raise AssertionError("the agent does not come to an end")


GRANT = (
    "Good evening! I'd like to grant an astronomer a night at a telescope. The astronomer's surname"
    " is Payne, the telescope's nickname is Snow Owl, the night is 14 May 2027 and the filter is"
    " narrow band."
)
GRANTED = {
    "grantId": "GR-501",
    "observerId": "OBS-12",
    "telescopeId": "TEL-4",
    "night": "2027-05-14",
    "filter": "narrow_band",
}


def test_looks_up_what_the_user_describes_then_writes_then_reports() -> None:
    talk = Talk(OBSERVATORY)
    said = talk.say(GRANT)
    assert talk.environment.grants == [GRANTED]
    assert talk.calls[-1][0] == "grantNight"
    assert {name for name, _ in talk.calls[:-1]} == {"searchObservers", "listTelescopes"}
    assert "GR-501" in said


def test_a_second_wish_uses_its_own_values() -> None:
    talk = Talk(OBSERVATORY)
    talk.say(GRANT)
    talk.say("Now I want to withdraw a granted night. The grant is GR-377.")
    assert talk.environment.withdrawn == ["GR-377"]
    assert len(talk.environment.grants) == 1


def test_asks_for_what_is_missing_and_goes_on_with_the_answer() -> None:
    talk = Talk(HIVES)
    question = talk.say("Please feed a hive. The queen is Matilda.")
    assert question.endswith("?")
    assert "kilograms" in question
    assert talk.environment.fed == []
    said = talk.say("The kilograms is 2.5.")
    assert talk.environment.fed == [("HV-09", 2.5)]
    assert "37.5" in said


def test_gives_up_on_what_the_user_does_not_know() -> None:
    talk = Talk(HIVES)
    talk.say("Please feed a hive. The queen is Matilda.")
    said = talk.say("Sorry, I don't know that.")
    assert talk.environment.fed == []
    assert "can't do this without the kilograms" in said


@pytest.mark.parametrize(
    "user_goal",
    ["Please sell a hive to my neighbour.", "Could you paint the telescope green?", "Order pizza."],
)
def test_says_so_when_no_tool_fits_and_calls_none(user_goal: str) -> None:
    talk = Talk([*HIVES, *OBSERVATORY])
    assert "no way to do that" in talk.say(user_goal)
    assert talk.calls == []


@pytest.mark.parametrize(
    "fault", ["Rate limit exceeded, try again later.", "503 Service unavailable", "Timed out"]
)
def test_tries_again_after_a_passing_error(fault: str) -> None:
    talk = Talk(OBSERVATORY, faults=[fault, fault])
    talk.say(GRANT)
    assert talk.environment.grants == [GRANTED]


def test_stops_when_an_error_does_not_pass() -> None:
    talk = Talk(HIVES, faults=["Service unavailable"] * 50)
    said = talk.say("Please feed a hive. The hive code is HV-07 and the kilograms is 2.")
    assert "could not feed the hive" in said
    assert 2 <= len(talk.calls) <= 5


def test_puts_an_argument_right_by_the_error_message() -> None:
    loose = json.loads(json.dumps(OBSERVATORY))
    del loose[2]["function"]["parameters"]["properties"]["filter"]["enum"]
    talk = Talk(loose)
    talk.say(GRANT)
    assert talk.environment.grants == [GRANTED]
    assert [name for name, _ in talk.calls].count("grantNight") == 2


def test_refuses_what_a_rule_forbids_and_only_that() -> None:
    system = f"{SYSTEM}\n- Never feed a hive with more than 3 kg; the keeper does that."
    talk = Talk(HIVES, system=system)
    refused = talk.say("Please feed a hive. The hive code is HV-07 and the kilograms is 4.")
    assert "not allowed" in refused
    assert talk.environment.fed == []
    talk.say("Then please feed a hive. The hive code is HV-07 and the kilograms is 2.")
    assert talk.environment.fed == [("HV-07", 2)]


def test_asks_which_when_the_words_decide_not() -> None:
    talk = Talk(HIVES)
    question = talk.say("Please feed a hive. The kilograms is 2.")
    assert "which hive" in question
    assert talk.environment.fed == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Could you say what date it is today?", "2027-05-01"),
        ("Please say which date is 10 days after today.", "2027-05-11"),
    ],
)
def test_reckons_what_needs_no_tool(question: str, answer: str) -> None:
    talk = Talk(HIVES)
    assert answer in talk.say(question)
    assert talk.calls == []


def test_strange_tools_and_words_never_break_it() -> None:
    odd: list[Any] = [
        {"type": "function", "function": {"name": "x"}},
        {"type": "function", "function": {"name": "y", "parameters": {"properties": {"a": True}}}},
        {
            "type": "function",
            "function": {
                "name": "z-9",
                "description": "",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "p": {"anyOf": [{"type": "null"}, {"type": ["string", "null"]}]}
                    },
                    "required": ["p", "q"],
                },
            },
        },
    ]
    for words in (
        "x",
        "",
        "?",
        "please z",
        "use y with a 1",
        "\u00e9\u4e2d \U0001f600",
        "a" * 5000,
    ):
        assert Talk(odd).say(words), words


FEED = "please feed a hive. The hive code is HV-07 and the kilograms is 2.5."


def test_thanks_before_a_further_wish_are_no_wish() -> None:
    talk = Talk(HIVES)
    said = talk.say(f"All right. Also, {FEED}")
    assert [name for name, _ in talk.calls] == ["apiary_feed"]
    assert "I have fed" in said
    assert "no way" not in said


def test_of_several_wishes_it_tells_what_came_of_each() -> None:
    talk = Talk(HIVES)
    said = talk.say(f"Could you {FEED.removeprefix('please ')} Also, please paint the fence.")
    assert [name for name, _ in talk.calls] == ["apiary_feed"]
    assert "I have fed" in said
    assert 'this is not done: "Also, please paint the fence."' in said
    assert "nothing was changed" not in said
    assert said.count("?") + said.count("Let me know") == 1


def first_call(words: str, name: str, properties: dict[str, Any]) -> Any:
    """The arguments of the call that the words alone lead to, or what is asked instead."""
    message = next_message(
        words, [function(name, f"{name.replace('_', ' ')}.", properties, [*properties])]
    )
    calls = message.get("tool_calls")
    return json.loads(calls[0]["function"]["arguments"]) if calls else message["content"]


def next_message(
    words: str, tools: list[dict[str, Any]], *further: dict[str, Any]
) -> dict[str, Any]:
    """The next message of an agent without mistakes."""
    first = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": words}]
    body = {"model": "offline-model-exact", "messages": [*first, *further], "tools": tools}
    request = parse_chat(body)
    return completion(request, answer_of(request, OfflineSettings()))["choices"][0]["message"]


def test_the_label_next_to_a_value_is_its_own() -> None:
    path = {"type": "string"}
    arguments = first_call(
        "Please move a file. The file to rename (source) is /a/old.txt and the new name"
        " (destination) is /a/new.txt.",
        "move_file",
        {"destination": path, "source": path},
    )
    assert arguments == {"source": "/a/old.txt", "destination": "/a/new.txt"}


def test_one_object_takes_all_that_is_said_of_it() -> None:
    row = {"name": text("Its name"), "observations": {"type": "array", "items": text("One")}}
    item = {"type": "object", "properties": row | {"entityType": text("Its type")}}
    entities = {"entities": {"type": "array", "items": item | {"required": [*row, "entityType"]}}}
    wish = "Please create entities. The whom to remember (entities), entity type is person"
    seen = ' and the whom to remember (entities), observations is "was promoted".'
    whole = first_call(f"{wish}, name is Grace Achieng{seen}", "create_entities", entities)
    [made] = whole["entities"]
    assert made == {
        "name": "Grace Achieng",
        "entityType": "person",
        "observations": ["was promoted"],
    }
    asked = first_call(wish + seen, "create_entities", entities)
    assert "name" in asked
    assert asked.endswith("?")


def test_a_name_that_is_refused_as_an_identifier_is_looked_up() -> None:
    label = {"label": {"type": "string", "description": "What stands on the box."}}
    box_id = {"box_id": {"type": "string", "description": "Id of the box, such as BX-12."}}
    tools = [
        function("find_boxes", "Find boxes. Returns box_id and label of each.", label, []),
        function("open_box", "Open a box.", box_id, ["box_id"]),
    ]
    guess = {"name": "open_box", "arguments": '{"box_id": "Winter Coats"}'}
    refusal = '{"error": {"code": "not_found", "message": "No box has the id \'Winter Coats\'."}}'
    message = next_message(
        'Please open a box. The box label is "Winter Coats".',
        tools,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": guess}]},
        {"role": "tool", "tool_call_id": "c", "content": refusal},
    )
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["find_boxes"]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ('{"hives": [{"hive', True),
        ("[1, 2", True),
        ("[FILE] queens.txt\n[DIR] swarms", False),
        ("{hive} is a placeholder", False),
        ('{"hives": []}', False),
    ],
)
def test_json_that_was_cut_is_told_from_a_text_in_brackets(text: str, cut: bool) -> None:
    assert garbled(text) == cut


@pytest.mark.parametrize("text", ["Destination already exists: /a", "Access denied - not yours"])
def test_an_error_in_plain_words_is_one(text: str) -> None:
    assert error_of(text) == text
    assert error_of(f"Notes: {text}") == ""
