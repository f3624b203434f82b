"""How the critic is asked about two answers, and what it says to that.

Every pair is asked about in both orders. Where the two verdicts do not name the same answer, the
pair is a tie, so a critic that goes by the place alone moves nothing.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

from records.chat.k2 import ChatMessage, text_of
from records.digest import canonical_json
from records.seeds import seed_of
from synth.gym.core.ranked import RubricRule
from synth.llm.wire.request import Message
from synth.prompts.templates import render_from
from trainer.data.chat import AssistantAnswer
from trainer.inference.drawing import Sampling
from trainer.inference.policies import PolicyRequest
from trainer.rl.rollouts.samples import RolloutSample

FOLDER = Path(__file__).parent
"""Of the prompt `ranking.md`."""

VerdictWord = Literal["first", "second", "equal"]

VERDICT_WORDS: Sequence[VerdictWord] = get_args(VerdictWord)


class CriticPolicy(Protocol):
    """What the critic needs of whoever draws: `ModelPolicy` has it."""

    sampling: Sampling
    """Of the answers drawn from now on."""

    def forget(self) -> None:
        """Drop what is kept of earlier prompts."""
        ...

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        """One to each request."""
        ...


class ComparedPair(NamedTuple):
    """Two answers to one task, and what they are compared by."""

    one: RolloutSample
    other: RolloutSample
    rubric: Sequence[RubricRule] = ()

    def question(self, *, turned: bool) -> list[Message]:
        """The prompt; `turned`: with the other answer first."""
        first, second = (self.other, self.one) if turned else (self.one, self.other)
        asked, answers = _parted(first, second)
        return _question(self.rubric, asked, *answers)


class PairVerdict(NamedTuple):
    """What the critic says of a pair."""

    worth: float
    """Of the one: 1 where it is better, 0 where the other is, 0.5 for a tie."""
    unreadable: int = 0
    """Verdicts of the two that are none."""
    inconsistent: bool = False
    """Whether both can be read and do not say the same."""


def asked_about(
    policy: CriticPolicy, pairs: Sequence[ComparedPair], *, seed: int, answer_tokens: int
) -> list[PairVerdict]:
    """The verdict on each pair, at temperature 0: a function of the policy's weights and of what is
    given."""
    requests = [
        PolicyRequest(
            pair.question(turned=turned),
            (),
            seed_of(f"{seed} {pair.one.seed} {pair.other.seed}", "rl-critic", int(turned)),
        )
        for pair in pairs
        for turned in (False, True)  # beside each other: they share what they begin with
    ]
    if not requests:
        return []
    with _drawing(policy, Sampling(temperature=0.0, max_tokens=answer_tokens)):
        answers = policy.answers(requests)
    said: list[VerdictWord | None] = [verdict_in(answer.content) for answer in answers]
    return [
        _together(straight, turned) for straight, turned in zip(said[::2], said[1::2], strict=True)
    ]


def empty_question() -> list[Message]:
    """The prompt without request, answers and rubric: less is never asked."""
    return _question((), (), (), ())


def verdict_in(text: str) -> VerdictWord | None:
    """The one word that was asked for, be it in capitals, quoted or with a full stop; None of
    anything else."""
    word = text.strip(" \t\r\n\"'`*.").casefold()
    return next((verdict for verdict in VERDICT_WORDS if verdict == word), None)


def answer_of(sample: RolloutSample) -> Sequence[ChatMessage]:
    """What stands in the conversation from the policy's first message on."""
    messages = sample.messages
    begins = [n for n, message in enumerate(messages) if message.get("role") == "assistant"]
    return messages[begins[0] :] if begins else ()


def _question(rubric: Sequence[RubricRule], *parts: Sequence[ChatMessage]) -> list[Message]:
    """`parts`: what was asked, the first answer, the second."""
    asked, first, second = ([_shown(message) for message in part] for part in parts)
    rules = [rule._asdict() for rule in rubric]
    values = {"rubric": rules, "asked": asked, "first": first, "second": second}
    return render_from(FOLDER, "ranking", **values).messages


def _parted(
    first: RolloutSample, second: RolloutSample
) -> tuple[Sequence[ChatMessage], tuple[Sequence[ChatMessage], Sequence[ChatMessage]]]:
    """What both were asked, and the rest of each: from the policy's first message on, or from where
    the conversations part before."""
    shared = 0
    for one, other in zip(first.messages, second.messages, strict=False):
        if one.get("role") == "assistant" or canonical_json(one) != canonical_json(other):
            break
        shared += 1
    return first.messages[:shared], (first.messages[shared:], second.messages[shared:])


def _shown(message: ChatMessage) -> dict[str, Any]:
    """Who said what and called what. What a model thought is not shown: nobody was told it."""
    shown: dict[str, Any] = {str(message.get("role")): text_of(message)}
    if calls := message.get("tool_calls"):
        functions = [call["function"] for call in calls]
        shown["calls"] = [[one["name"], _read(one["arguments"])] for one in functions]
    return shown


def _read(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


@contextmanager
def _drawing(policy: CriticPolicy, sampling: Sampling) -> Iterator[None]:
    """The policy draws so inside, from empty slots: what it says hangs on nothing that was drawn
    before."""
    before, policy.sampling = policy.sampling, sampling
    policy.forget()
    try:
        yield
    finally:
        policy.sampling = before


def _together(straight: VerdictWord | None, turned: VerdictWord | None) -> PairVerdict:
    """Of the verdicts in both orders; in the second one `first` is the other answer."""
    unreadable = (straight is None) + (turned is None)
    if unreadable:
        return PairVerdict(0.5, unreadable)
    worths = {"first": 1.0, "second": 0.0, "equal": 0.5}
    one, again = worths[straight or "equal"], 1.0 - worths[turned or "equal"]
    return PairVerdict(one) if one == again else PairVerdict(0.5, inconsistent=True)
