"""What a task is made of before it is put into words."""

from typing import Any, Literal

from pydantic import Field

from synth.rubrics.criteria import CheckedScalar, Rubric, Strict

Variant = Literal[
    "normal",
    "missing_parameter",
    "missing_tool",
    "irrelevant_tool",
    "unclear_tool",
    "against_policy",
    "no_tool",
]


GoalForm = Literal[
    "plain",
    "chosen",
    "described",
    "within",
    "for_each",
    "conditional",
    "fallback",
    "corrected",
    "traded",
]


class Fact(Strict):
    """Something the user knows and the agent needs."""

    label: str
    value: CheckedScalar | bool
    param: str
    """The parameter that it goes into, or that it helps to find the value of."""

    needed: bool
    """Whether the agent can tell that it lacks the fact: what only narrows a search, or what a
    tool can do without, nobody would ask for."""

    when: Literal["opening", "asked", "earlier"] = "opening"
    """Told with the user goal it belongs to, or only when asked, or in the first of several
    conversations, to be kept for a later one."""


class Asked(Strict):
    """Something the user wants to be told."""

    label: str
    values: tuple[CheckedScalar, ...]


class Step(Strict):
    """One call of the reference plan."""

    tool: str
    arguments: dict[str, Any]
    actor: Literal["agent", "user"] = "agent"
    """`user`: a step that only the user's own tool can do, when the agent asks for it."""


class Awaited(Strict):
    """What has to come about by itself before the call of a user goal can be made."""

    job: str
    happens: str
    """What the job does, as the domain says it."""

    wait: Step
    minutes: str
    """The parameter that says how long to wait. Nobody has to know it: who waits too short sees
    that from the answer, and waits again."""

    error: str
    """Code of the error that the call fails with until then."""


class Goal(Strict):
    """One user goal: a call that grants it, what the user knows for it and wants to hear of it."""

    tool: str
    """Empty for a question that no tool is needed for."""

    description: str
    """What is wanted for, in the imperative: most often the description of the tool."""

    wish: str = ""
    """What this person wants, in a sentence, where somebody has written it down."""

    form: GoalForm = "plain"
    """How the wish has to be read to know what it is for."""

    misreadings: tuple[str, ...] = ()
    """Sentences of the same kind for what a hasty reader could take the wish for."""

    twin: dict[str, Any] | None = None
    """Of a goal on a condition or with a first choice: where the same words ask for the other
    branch. JSON values."""

    arguments: dict[str, Any]
    labels: dict[str, str]
    """Parameter -> what people call it."""

    known: tuple[Fact, ...]
    asks: tuple[Asked, ...] = ()
    steps: tuple[Step, ...]
    """Look-ups, then the call itself; without those that earlier goals have made."""

    writes: bool
    possible: bool = True
    """False for a user goal that must not or cannot be granted: its steps end before the call."""

    could_be: tuple[str, ...] = ()
    """Tools that the user goal, as it is said at first, could as well be for."""

    after: bool = False
    """Said in one breath with the goal before it, and to be done only after that one."""

    session: int = 0
    """The conversation in which it is brought up."""

    awaited: Awaited | None = None
    """What has to be waited for; the wait is the step before the call."""

    @property
    def sentence(self) -> str:
        """The user goal in one sentence, for a reader of the rubric; in two where it is one that
        has to be waited for."""
        if self.could_be:
            meant = ", ".join(str(fact.value) for fact in self.known if not fact.param)
            return f"{self.description.rstrip('.')} ({meant})."
        wanted = self.wish or self.description.split(". ")[0].strip().rstrip(".") + "."
        if self.awaited is None:
            return wanted
        return f"{wanted} This has to come about by itself before: {self.awaited.happens}"


class Draft(Strict):
    """A task that has been thought of, before its proof."""

    variant: Variant
    goals: tuple[Goal, ...]
    initial_state: dict[str, Any]
    opening_goals: int = 1
    """How many of the wishes stand in the first message; the others come one after another."""

    proved: dict[str, Any] = Field(default_factory=dict)
    """What was shown of it besides that its plan works: how the plan was found, why a user goal
    cannot be granted, that a fact cannot be found out. JSON values."""

    @property
    def plan(self) -> tuple[Step, ...]:
        return tuple(step for goal in self.goals for step in goal.steps)

    @property
    def num_sessions(self) -> int:
        """Conversations over which the goals are brought."""
        return self.goals[-1].session + 1

    @property
    def user_steps(self) -> tuple[Step, ...]:
        """What the user has to do with tools of its own."""
        return tuple(step for step in self.plan if step.actor == "user")

    @property
    def solvable(self) -> bool:
        return all(goal.possible for goal in self.goals)


class Proof(Strict):
    """What the execution of a draft's reference plan showed."""

    rubric: Rubric
    observed_chars: int
    """Length of all observations together."""

    num_dependencies: int = 0
    """Pairs of calls of which the later one takes a value that nobody said, and that the earlier
    one is the first to show."""

    num_rules: int = 0
    """Policy rules about tools that the user goals need."""

    num_distinct_tools: int = 0
    """Of the agent, in the plan."""

    longest_chain: int = 0
    """Calls of the plan's longest chain in which each takes a value that nobody said and that the
    one before it is the first to show; 0 where that is not known."""

    @property
    def measured(self) -> dict[str, int]:
        """Columns of the task's row."""
        return self.model_dump(exclude={"rubric", "observed_chars"})
