"""From an agent, a persona and a seed to a draft: which variant, which goals, who tells what when.

Each try starts from its own seeded state, so a try that comes to nothing costs the next one no
randomness, and the result depends on the item alone.
"""

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from synth.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.building import TRIES, Builder
from synth.tasks.domain_tools import Tool, tools_of
from synth.tasks.goals import Asked, Draft, Fact, Goal, Proof, Variant
from synth.tasks.proving import UnprovedError, prove
from synth.tasks.reach import Reach
from synth.tasks.revealing import Twins, revealed
from synth.tasks.search import MAX_NODES, shortest_plan
from synth.tasks.states import seeded_state
from tool_specs.domain import Domain
from tool_specs.interpreter import World

ATTEMPTS = 12
"""Drafts tried for one task before it is dropped; the second half of them normal ones."""

FORBIDDEN_CALLS = 4
"""Calls of one tool that break a rule and are looked at for a proof."""

FORBIDDEN_TRIES = 8 * TRIES
"""Draws for a call that breaks a rule: most states hold few of them."""


class Complexity(NamedTuple):
    """Shares of tasks with one wish, with two, and with three or four."""

    simple: float
    moderate: float
    complex: float


WISHES: Mapping[str, tuple[int, ...]] = {"simple": (1,), "moderate": (2,), "complex": (3, 3, 4)}

WEIGHTS: Mapping[Variant, float] = {
    "normal": 0.72,
    "missing_parameter": 0.1,
    "against_policy": 0.1,
    "missing_tool": 0.05,
    "no_tool": 0.03,
}
"""Shares of the variants where all are possible. What an agent cannot have goes to the normal."""

GO_ON = 0.6
"""How often the next wish is about what an earlier one made, where a tool takes it."""

MISSING_TOOL_WEIGHT = 0.3
"""For agents that lack a tool, about a quarter of them, and not always one that proves to be out
of reach: so the variant comes to its 5%."""


def complexity_of(shares: Complexity, rng: Random) -> tuple[str, int]:
    """(name, number of wishes)."""
    chosen = rng.choices(Complexity._fields, shares)[0]
    return chosen, rng.choice(WISHES[chosen])


def variant_of(rng: Random, *, has_rules: bool, lacks_tools: bool) -> Variant:
    weights = dict(WEIGHTS)
    weights["missing_tool"] = MISSING_TOOL_WEIGHT if lacks_tools else 0.0
    if not has_rules:
        weights["against_policy"] = 0.0
    weights["normal"] = max(0.0, 1.0 - sum(w for v, w in weights.items() if v != "normal"))
    return rng.choices(list(weights), list(weights.values()))[0]


class DomainTasks:
    """Makes drafts for agents of one domain. `names` are the agent's tools, `lacking` those that
    the domain has and users may wish for in vain."""

    def __init__(
        self,
        domain: Domain,
        names: Collection[str],
        *,
        lacking: Collection[str] = (),
        own: Collection[str] = (),
        extensions: Extensions = NO_EXTENSIONS,
    ) -> None:
        self._domain = domain
        self._extensions = extensions
        self._all = tools_of(domain)
        self.tools = {name: self._all[name] for name in sorted(names)}
        self._lacking = [self._all[name] for name in sorted(lacking)]
        self._own = [self._all[name] for name in sorted(own)]
        self._ruled = [t for t in self.tools.values() if t.rules]

    def make(
        self, item_id: str, *, shares: Complexity, reveals: str, dual_control: float = 0.0
    ) -> tuple[str, Draft, Proof]:
        """(declared complexity, draft, proof). UnprovedError when no try leads to a proof.

        `dual_control`: share of tasks of which the user must do a step, where it has tools.
        """
        rng = rng_of(item_id, "task")
        complexity, wishes = complexity_of(shares, rng)
        variant = variant_of(
            rng,
            has_rules=bool(self._ruled),
            lacks_tools=any(not tool.read_only for tool in self._lacking),
        )
        dual = bool(self._own) and rng_of(item_id, "dual_control").random() < dual_control
        if dual:
            variant = "normal"
        failure = UnprovedError("no_goal_found")
        for attempt in range(ATTEMPTS):
            own = rng_of(item_id, "draft", attempt)
            dual = dual and attempt < ATTEMPTS // 2
            if attempt == ATTEMPTS // 2:
                variant = "normal"
            try:
                draft = self._searched(self._draft(variant, wishes, own, dual=dual))
                draft = self._revealed(draft, reveals, rng_of(item_id, "reveals"))
                proof = prove(self._domain, draft, self.tools, self._extensions, own=self._own)
                return complexity, draft, proof
            except UnprovedError as error:
                failure = error
        raise failure

    def _searched(self, draft: Draft) -> Draft:
        """The draft with the shortest plan that there is, and how it was found."""
        world = World.of(self._domain, draft.initial_state)
        found = shortest_plan(self._domain, self.tools, draft.goals, world)
        built = len(draft.plan)
        if found is None or found.depth > built:
            how = {"plan": "built", "nodes": MAX_NODES, "depth": built}
            return draft.model_copy(update={"proved": draft.proved | how})
        how = {"plan": "search", "nodes": found.nodes, "depth": found.depth}
        goals = draft.goals
        if found.depth < built:
            how["shorter_by"] = built - found.depth
            pairs = zip(goals, found.steps, strict=True)
            goals = tuple(goal.model_copy(update={"steps": steps}) for goal, steps in pairs)
        return draft.model_copy(update={"goals": goals, "proved": draft.proved | how})

    def _revealed(self, draft: Draft, reveals: str, rng: Random) -> Draft:
        if draft.variant != "missing_parameter":
            return revealed(draft, reveals, rng)
        twins = Twins(self._domain, draft)
        found: dict[str, Any] = {}

        def is_missing(goal: Goal, fact: Fact) -> bool:
            other = twins.of(goal, fact)
            found["missing"] = {"fact": fact.label, "twin": other}
            return other is not None

        draft = revealed(draft, reveals, rng, is_missing)
        return draft.model_copy(update={"proved": draft.proved | found})

    def _draft(self, variant: Variant, wishes: int, rng: Random, *, dual: bool) -> Draft:
        users = {tool.name for tool in self._own}
        patch = seeded_state(
            self._domain, {n: tool for n, tool in self._all.items() if n not in users}, rng
        )
        before = World.of(self._domain, patch)
        builder = Builder(self._domain, before.snapshot(), self.tools, rng=rng)
        proved: dict[str, Any] = {}
        match variant:
            case "against_policy":
                self._add_normal(builder, min(wishes - 1, 2), rng)
                proved = self._add_forbidden(builder, before, rng)
            case "missing_tool":
                self._add_normal(builder, max(1, min(wishes - 1, 2)), rng)
                proved = self._add_lacking(builder, before, rng)
            case "no_tool":
                builder.goals.append(_question(self._domain, rng))
            case _ if dual:
                if not any(builder.add_after(tool) for tool in rng.sample(self._own, len(users))):
                    raise UnprovedError("no_goal_found")
                self._add_normal(builder, wishes - 1, rng)
            case _:
                self._add_normal(builder, wishes, rng)
        goals = tuple(builder.goals)
        return Draft(variant=variant, goals=goals, initial_state=patch, proved=proved)

    def _add_normal(self, builder: Builder, count: int, rng: Random) -> None:
        """Goals on different tools, mostly ones that write, at least one that does."""
        used = {goal.tool for goal in builder.goals}
        left = [tool for tool in self.tools.values() if tool.name not in used]
        for number in range(count):
            wants_write = number == 0 or rng.random() < 0.65
            if count == 1 and rng.random() < 0.3:
                wants_write = False
            rng.shuffle(left)
            left.sort(key=lambda tool: tool.read_only == wants_write)  # stable: the rest shuffled
            if builder.made and rng.random() < GO_ON:
                left.sort(key=lambda tool: not _takes_one_of(tool, builder.made))
            for tool in left:
                if builder.add(tool):
                    left.remove(tool)
                    break
            else:
                raise UnprovedError("no_goal_found")

    def _add_forbidden(self, builder: Builder, before: World, rng: Random) -> dict[str, Any]:
        """A wish that its own tool would grant against a rule, and nothing else at hand can."""
        unproved = False
        for tool in rng.sample(self._ruled, len(self._ruled)):
            for _ in range(FORBIDDEN_CALLS):
                if not builder.add(tool, breaching=True, possible=False, tries=FORBIDDEN_TRIES):
                    break
                obstacle = self._reach(builder, before).breach(_wished(builder))
                if obstacle is not None:
                    return {"out_of_reach": obstacle._asdict()}
                unproved = True
                builder.goals.pop()
        raise UnprovedError("breach_not_proved" if unproved else "no_goal_found")

    def _add_lacking(self, builder: Builder, before: World, rng: Random) -> dict[str, Any]:
        """A wish whose tool the agent lacks, and that its other tools cannot bring about."""
        writes = [tool for tool in self._lacking if not tool.read_only]
        unproved = False
        for tool in rng.sample(writes, len(writes)):
            if not builder.add(tool, possible=False):
                continue
            obstacle = self._reach(builder, before).obstacle(_wished(builder))
            goal = builder.goals.pop()
            if obstacle is not None:
                builder.goals.append(goal.model_copy(update={"steps": ()}))
                return {"out_of_reach": obstacle._asdict()}
            unproved = True
        raise UnprovedError("other_tools_may_do_it" if unproved else "no_goal_found")

    def _reach(self, builder: Builder, before: World) -> Reach:
        tools = self.tools.values()
        return Reach(self._domain, tools, before, builder.world, builder.diffs)


def _wished(builder: Builder) -> list[dict[str, Any]]:
    """What the last wish, which is not granted, would change."""
    return builder.changes_if_granted(builder.goals[-1])


def _takes_one_of(tool: Tool, rows: Collection[tuple[str, str]]) -> bool:
    entities = {entity for entity, _ in rows}
    return any(p.ref in entities for p in tool.spec.params.values() if not p.optional)


def _question(domain: Domain, rng: Random) -> Goal:
    """A question that takes no tool: the agent knows the date, the rest is reckoning."""
    today = date.fromisoformat(domain.now[:10])
    days = rng.choice((7, 10, 14, 21, 30, 45, 60, 90))
    amount, times = rng.choice((12.5, 18, 24.75, 35, 49.9, 120)), rng.randint(2, 12)
    questions = (
        ("Say what date it is today.", (), "today's date", today.isoformat()),
        (
            "Work out the date that lies a number of days after today.",
            (_figure("number of days", days, "days"),),
            "the date",
            (today + timedelta(days=days)).isoformat(),
        ),
        (
            "Work out what an amount a month comes to over a number of months.",
            (
                _figure("amount a month", amount, "amount"),
                _figure("number of months", times, "months"),
            ),
            "the total",
            round(amount * times, 2),
        ),
    )
    words, known, label, answer = rng.choice(questions)
    return Goal(
        tool="",
        description=words,
        arguments={fact.param: fact.value for fact in known},
        labels={fact.param: fact.label for fact in known},
        known=known,
        asks=(Asked(label=label, values=(answer,)),),
        steps=(),
        writes=False,
    )


def _figure(label: str, value: float, param: str) -> Fact:
    return Fact(label=label, value=value, param=param, needed=True)
