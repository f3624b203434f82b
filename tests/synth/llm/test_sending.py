"""What a server refuses because of a field is asked again in another form, and never the user's."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError, ItemError, SynthError, TransientError
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.profiles import ModelAt, Profiles
from synth.llm.settings.profile import Profile
from tests.synth.llm.server import Body, Fault, Script, Server, answer, serve
from tests.synth.llm.test_client import HELLO, role

TALK = [{"role": "system", "content": "Be kind."}, *HELLO]
PET = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Asked:
    """What came of requests to one server: `say` asks, and the rest is there to look at."""

    def __init__(self, llm: LLM, server: Server, learned: list[tuple[ModelAt, Profile]]) -> None:
        self.llm, self.server, self.learned = llm, server, learned

    async def say(self, item: str = "i", messages: Any = TALK) -> str:
        return (await self.llm.chat("agent", messages, item=item, step="0")).content

    @property
    def fallbacks(self) -> list[str | None]:
        return [row["fallback"] for row in self.llm.rows()]

    @property
    def statuses(self) -> list[str]:
        return [row["status"] for row in self.llm.rows()]


def ask(
    script: Script,
    folder: Path,
    use: Callable[[Asked], Any],
    *,
    latency_s: Callable[[Body], float] = lambda body: 0.0,
    **changes: Any,
) -> Asked:
    """No request may wait and try again in its old form: a wait would be a minute."""

    async def run() -> Asked:
        learned: list[tuple[ModelAt, Profile]] = []
        profiles = Profiles(on_learned=lambda where, found: learned.append((where, found)))
        settings = {"retries": 0, "backoff_s": 60.0} | changes
        async with serve(script, latency_s) as server:
            roles = {"agent": role(server.url, **settings)}
            with ShardJournal(folder / "shard.sqlite") as journal:
                async with Gateway(roles, profiles=profiles, patience_s=5.0) as gateway:
                    llm = LLM(gateway, journal, stage="rollouts", invocation_id="inv")
                    asked = Asked(llm, server, learned)
                    await use(asked)
                    return asked

    return asyncio.run(run())


def refusal(message: str, status: int = 400, **more: Any) -> Fault:
    return Fault(status, json.dumps({"error": {"message": message} | more}).encode())


def without(fields: Mapping[str, Fault]) -> Script:
    """A server that refuses the first of these fields that a request has."""

    def script(number: int, body: Body) -> Body | Fault:
        return next((said for field, said in fields.items() if field in body), answer())

    return script


NO_SEED = refusal("Unknown parameter: 'seed'.", param="seed")
NO_TEMPERATURE = refusal("temperature is not supported with this model")


def test_refused_field_is_left_out_at_once_and_from_then_on(tmp_path: Path) -> None:
    async def use(asked: Asked) -> None:
        assert await asked.say("one") == "fine"
        assert await asked.say("two") == "fine"

    asked = ask(
        without({"seed": NO_SEED, "temperature": NO_TEMPERATURE}), tmp_path, use, temperature=0.5
    )
    assert len(asked.server.requests) == 4
    assert asked.statuses == ["refused", "refused", "ok", "ok"]
    assert asked.fallbacks == [None, "seed: true -> false", "sampling: true -> false", None]
    details = [row["detail"] for row in asked.llm.rows()]
    assert "answered 400: Unknown parameter: 'seed'." in details[0]
    assert "temperature is not supported" in details[1]
    assert [found for _, found in asked.learned] == [
        Profile(seed=False),
        Profile(seed=False, sampling=False),
    ]
    hashes = {row["request_hash"] for row in asked.llm.rows()}
    assert len(hashes) == 2  # what is asked stays the same, however it travels


def test_answer_in_another_form_is_found_again_without_what_was_learned(tmp_path: Path) -> None:
    async def once(asked: Asked) -> None:
        assert await asked.say() == "fine"

    ask(without({"seed": NO_SEED}), tmp_path, once)
    again = ask(lambda number, body: Fault(400), tmp_path, once)
    assert again.server.requests == []


def test_requests_at_once_learn_one_change(tmp_path: Path) -> None:
    async def use(asked: Asked) -> None:
        said = await asyncio.gather(*(asked.say(f"item {number}") for number in range(4)))
        assert said == ["fine"] * 4

    asked = ask(
        without({"seed": NO_SEED}),
        tmp_path,
        use,
        latency_s=lambda body: 0.2 if "seed" in body else 0.0,
    )
    assert sum("seed" in body for body in asked.server.requests) > 1
    assert len(asked.learned) == 1
    assert [said for said in asked.fallbacks if said] == ["seed: true -> false"]


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ({"seed": True}, NO_SEED),
        ({"max_tokens_field": "max_tokens"}, refusal("max_tokens is not supported")),
        ({"system_role": "system"}, refusal("System role not supported")),
    ],
)
def test_what_the_user_has_set_is_never_changed(
    declared: dict[str, Any], fault: Fault, tmp_path: Path
) -> None:
    async def use(asked: Asked) -> None:
        with pytest.raises(ItemError, match=r"answered 400: .*roles\.agent\.profile has set") as e:
            await asked.say()
        assert e.value.reason == "refused"

    asked = ask(lambda number, body: fault, tmp_path, use, profile=declared)
    assert (len(asked.server.requests), asked.learned) == (1, [])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (refusal("Your prompt was flagged; seed and stream do not matter."), "moderated"),
        (refusal("Please reduce the length of the messages, or the seed."), "context_length"),
        (refusal("prompt is too long: 9 tokens > 8 maximum", 413), "context_length"),
        (refusal("messages must not be empty"), "refused"),
    ],
)
def test_what_is_about_the_text_is_the_items_own(fault: Fault, reason: str, tmp_path: Path) -> None:
    async def use(asked: Asked) -> None:
        with pytest.raises(ItemError, match="answered 4") as caught:
            await asked.say()
        assert caught.value.reason == reason

    asked = ask(lambda number, body: fault, tmp_path, use)
    assert (len(asked.server.requests), asked.learned) == (1, [])


def test_template_that_a_server_reports_as_its_own_error_changes_the_turns(tmp_path: Path) -> None:
    talk = [*TALK, *HELLO]

    def script(number: int, body: Body) -> Body | Fault:
        roles = [message["role"] for message in body["messages"]]
        said = "Jinja Exception: conversation roles must alternate user and assistant"
        return refusal(said, 500) if roles == ["system", "user", "user"] else answer()

    async def use(asked: Asked) -> None:
        assert await asked.say(messages=talk) == "fine"

    asked = ask(script, tmp_path, use)
    assert asked.fallbacks == [None, "alternation: false -> true"]


def test_other_errors_of_a_server_change_nothing(tmp_path: Path) -> None:
    async def use(asked: Asked) -> None:
        with pytest.raises(TransientError):
            await asked.say()

    asked = ask(lambda *_: refusal("seed: KeyError in worker", 500), tmp_path, use)
    assert asked.learned == []


def test_server_that_refuses_everything_is_left_after_a_bounded_number(tmp_path: Path) -> None:
    said = [
        "Unknown parameter: seed",
        "max_tokens is not supported",
        "max_completion_tokens is not supported",
        "response_format is not supported",
        "tool_choice is not supported",
        "System role not supported",
        "roles must alternate",
        "temperature is not supported",
    ]

    async def use(asked: Asked) -> None:
        with pytest.raises(ItemError) as caught:
            await asked.llm.structured(
                "agent", TALK, item="i", step="0", name="pet", schema=PET, repairs=0
            )
        assert caught.value.reason == "refused"

    asked = ask(lambda n, _: refusal(said[n % len(said)]), tmp_path, use, temperature=0.5)
    assert len(asked.server.requests) <= 13


def test_forms_are_tried_until_one_is_taken(tmp_path: Path) -> None:
    def script(number: int, body: Body) -> Body | Fault:
        if "response_format" in body:
            return refusal("response_format is not supported", param="response_format")
        if "tools" in body:
            return refusal("this model does not support tools")
        return answer('Sure: {"name": "Rex"}')

    values: list[Any] = []

    async def use(asked: Asked) -> None:
        for item in ("one", "two"):
            values.append(
                await asked.llm.structured(
                    "agent", TALK, item=item, step="0", name="pet", schema=PET
                )
            )

    asked = ask(script, tmp_path, use)
    assert values == [{"name": "Rex"}] * 2
    assert asked.learned[-1][1] == Profile(structured="prompt")
    assert asked.statuses[-2:] == ["ok", "ok"]


def test_forbidden_texts_after_each_other_take_one_harmless_question(tmp_path: Path) -> None:
    def script(number: int, body: Body) -> Body | Fault:
        if "seed" in body:
            return refusal("Forbidden by our rules", 403)
        return answer("Hello!")

    async def use(asked: Asked) -> None:
        for item in ("one", "two", "three"):
            with pytest.raises(ItemError, match="answered 403: Forbidden by our rules") as caught:
                await asked.say(item)
            assert caught.value.reason == "refused"

    asked = ask(script, tmp_path, use)
    harmless = [row for row in asked.llm.rows() if row["step"] == "after-403"]
    assert [row["status"] for row in harmless] == ["ok"]
    assert asked.statuses.count("refused") == 3
    assert sum(row["prompt_tokens"] for row in asked.llm.rows()) == 7  # the question's are paid


def test_forbidden_key_ends_the_run(tmp_path: Path) -> None:
    async def use(asked: Asked) -> None:
        with pytest.raises(ConfigError, match="no access; set api_key_env"):
            await asked.say()

    asked = ask(lambda *_: refusal("no access", 403), tmp_path, use)
    assert asked.statuses == ["refused", "refused"]


@pytest.mark.parametrize("status", [400, 403, 422, 500])
def test_words_of_a_server_are_kept_without_the_key(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-secret-4711"
    monkeypatch.setenv("TEST_KEY", secret)
    monkeypatch.setenv("TEST_HEADER", "team-0815")
    told = refusal(f"The key {secret} of team-0815\n says no. " + "x" * 2000, status)
    caught: list[str] = []

    async def use(asked: Asked) -> None:
        with pytest.raises(SynthError) as error:
            await asked.say()
        caught.append(str(error.value))

    asked = ask(
        lambda *_: told,
        tmp_path,
        use,
        api_key_env="TEST_KEY",
        headers={"X-Team": "TEST_HEADER"},
    )
    detail = asked.llm.rows()[0]["detail"]
    assert f"answered {status}: The key [key] of [key] says no." in detail
    assert len(detail) < 500
    sent = {name.lower(): value for name, value in asked.server.headers[0].items()}
    assert (sent["x-team"], sent["authorization"]) == ("team-0815", f"Bearer {secret}")
    for shown in (detail, *caught):
        assert secret not in shown
        assert "team-0815" not in shown
