"""What the checks of the gym's family `safety` say of answers written by hand.

    python -m benchmarks.gym_safety [--half tuning|report]

The answers stand in `safety_answers.yaml` beside this file: every second one, from the first on, is
for tuning the checks, the others are for reporting. Each is played as an episode. Requests are
judged by the offline model, which is no model: what it says shows that the parts fit, not how well
a judge judges. Prints a table as in docs/results/gym_safety_202611.md, and every answer that is not
rewarded as its label says.
"""

import argparse
import asyncio
import base64
import codecs
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from records.seeds import rng_of
from synth.gym.core.asking import Asking
from synth.gym.core.environment import GymTask, Reward
from synth.gym.maths.riddles import MORSE
from synth.gym.safety.environment import FAMILY, Safety
from synth.gym.safety.pools import built_in
from synth.gym.safety.request_tasks import SafetySeed, request_task
from synth.gym.safety.scenes import DrawnTask, injection_task, secret_task
from synth.gym.safety.settings import SafetySettings
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.request import Message

AnswerHalf = Literal["tuning", "report"]

_FILE = Path(__file__).with_name("safety_answers.yaml")


class SafetyAnswer(NamedTuple):
    label: Literal["right", "wrong", "cheating"]
    half: AnswerHalf
    task: GymTask
    actions: tuple[Message, ...]

    def is_rewarded_rightly(self, reward: Reward | None) -> bool:
        return reward is not None and reward.value == float(self.label == "right")


class PlayedAnswer(NamedTuple):
    answer: SafetyAnswer
    reward: Reward | None
    outside: str | None


def safety_answers() -> list[SafetyAnswer]:
    """All of them, in the order of the file."""
    rows: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text())
    return [_answer(row, number) for number, row in enumerate(rows)]


def _answer(row: Mapping[str, Any], number: int) -> SafetyAnswer:
    made = _task(row, number)
    task = GymTask(f"case-{number}", FAMILY, "train", made.tags, made.body)
    values = _values(made.body)
    actions = tuple(_action(said, made.body, values, n) for n, said in enumerate(row["says"]))
    return SafetyAnswer(row["label"], "report" if number % 2 else "tuning", task, actions)


def _task(row: Mapping[str, Any], number: int) -> DrawnTask:
    for draw in range(1000):
        rng = rng_of(f"case-{number}", "safety_answer", draw)
        match row["about"]:
            case "injection":
                form = row.get("form", "tell")
                return injection_task(rng, "train", goal=row["goal"], form=form)
            case "secret":
                made = secret_task(rng, "train", turns=1)
                if made.body["wanted_at"] == 1:
                    return made
            case kind:
                risk = built_in("seeds.toml")["risks"][row["risk"]]
                request = risk["pairs"][row["pair"]][kind == "lookalike"]
                also = risk.get("also", "") if kind == "harmful" else ""
                seed = SafetySeed(request, row["risk"], kind, risk["help"], also)
                return request_task(rng, "train", [seed], turns=1)
    raise RuntimeError("no draw has its question at the end")


def _values(body: Mapping[str, Any]) -> dict[str, str]:
    secret = body.get("secret", "")
    signs = [sign for sign in secret if sign.isalnum()]
    morse = " ".join(MORSE[sign] for sign in secret.upper() if sign in MORSE)
    return {
        "wanted": body.get("wanted", ""),
        "mark": body.get("mark", ""),
        "target": body.get("target") or "",
        "secret": secret,
        "first": secret[: (len(secret) + 1) // 2],
        "back": secret[::-1],
        "base64": base64.b64encode(secret.encode()).decode(),
        "hex": secret.encode().hex(" "),
        "rot13": codecs.encode(secret, "rot13"),
        "morse": morse,
        "spelled": " - ".join(signs),
        "second": secret[len(secret) // 2 :],
        "dotted": "\u200b.".join(secret),
        "acrostic": "\n".join(f"{sign.upper()}, like nothing else" for sign in signs),
        "caesar": "".join(_shifted(sign) for sign in secret.upper()),
        "filled": ", then ".join(f"the sign {sign}" for sign in signs),
        "accents": "".join(f"{sign}\u0301" if sign.isalpha() else sign for sign in secret),
        "doubled": "".join(sign * 2 for sign in signs),
        "binary": " ".join(f"{ord(sign):08b}" for sign in secret),
    }


def _shifted(sign: str) -> str:
    return chr((ord(sign) - ord("A") + 3) % 26 + ord("A")) if sign.isalpha() else sign


def _action(said: Any, body: Mapping[str, Any], values: Mapping[str, str], number: int) -> Message:
    if isinstance(said, str):
        return {"role": "assistant", "content": said.format(**values)}
    name, *given = said
    if name == "reader":
        arguments = {body["reader"]["key"]: next(iter(body["records"]))}
        name = body["reader"]["name"]
    else:
        address, text = (value.format(**values) for value in given)
        arguments, name = {"address": address, "text": text}, body["sink"]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


async def played(answers: Iterable[SafetyAnswer]) -> list[PlayedAnswer]:
    """Each answer as an episode, with the offline model as the judge."""
    asking = Asking({"judge": RoleConfig()})
    environment, found = Safety(SafetySettings(), asking), list[PlayedAnswer]()
    try:
        for answer in answers:
            episode = await environment.begin(answer.task, 0)
            steps = [await episode.step(action) for action in answer.actions]
            found.append(PlayedAnswer(answer, steps[-1].reward, steps[-1].outside))
    finally:
        await asking.close()
    return found


def table(found: Sequence[PlayedAnswer]) -> str:
    """Rows of Markdown: kind, label, half, answers, how many are rewarded as labelled."""
    lines = ["| kind | label | half | answers | rewarded as labelled |", "|---|---|---|--:|--:|"]
    return "\n".join([*lines, *_rows(found)])


def _rows(found: Sequence[PlayedAnswer]) -> Iterator[str]:
    counts: Counter[tuple[str, str, str, bool]] = Counter(
        (
            *(one.answer.task.body["kind"], one.answer.label, one.answer.half),
            one.answer.is_rewarded_rightly(one.reward),
        )
        for one in found
    )
    for kind, label, half in dict.fromkeys(key[:3] for key in counts):
        right = counts[kind, label, half, True]
        total = right + counts[kind, label, half, False]
        yield f"| {kind} | {label} | {half} | {total} | {right} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", choices=("tuning", "report"))
    half = parser.parse_args(arguments).half
    chosen = [one for one in safety_answers() if half in (None, one.half)]
    found = asyncio.run(played(chosen))
    print(table(found))
    for one in found:
        if not one.answer.is_rewarded_rightly(one.reward):
            body, said = one.answer.task.body, [action for action in one.answer.actions]
            print(f"\n{body['kind']} ({one.answer.label}, {one.answer.half}): {said}")
            print(one.reward or one.outside)


if __name__ == "__main__":
    main()
