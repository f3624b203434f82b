"""From an agent, a persona and a seed to a draft: which variant, which goals, who tells what when.

Each try starts from its own seeded state, so a try that comes to nothing costs the next one no
randomness, and the result depends on the item alone.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.seeds import rng_of
from records.tables.splits import Split
from synth.tasks.forms.forms import ALL_PLAIN, FormShares, add_of_form
from synth.tasks.forms.traded import add_traded
from synth.tasks.goals.arguments import Drawer
from synth.tasks.goals.building import TRIES, Builder
from synth.tasks.goals.domain_tools import entities_near, tools_of
from synth.tasks.goals.goals import Draft, Proof, Variant
from synth.tasks.goals.lookup import Views
from synth.tasks.goals.rules_seen import followable
from synth.tasks.goals.states import seeded_state
from synth.tasks.goals.variants import VariantShares, question, variant_of
from synth.tasks.goals.waiting import waiting_tools
from synth.tasks.lengthening import in_band
from synth.tasks.lengths import (
    LEAST_TOOLS,
    Band,
    Complexity,
    band_of,
    check_length,
    complexity_of,
    complexity_with,
)
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.ordering import in_order
from synth.tasks.proof.proving import UnprovedError, prove
from synth.tasks.proof.reach import Reach
from synth.tasks.proof.search import MAX_NODES, shortest_plan
from synth.tasks.proof.shortening import shortened
from synth.tasks.proof.unsolvable import Others, alternatives, irrelevant_goal, unclear
from synth.tasks.proof.waiting import shortest_wait
from synth.tasks.telling import told
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.grown_seed import GrownSeed

ATTEMPTS = 12
"""Drafts tried for one task before it is dropped; the second half of them normal ones."""

VAGUE_TOOLS = 4
"""Tools for which a user goal is put vaguely, until one of them is as good as another."""

VAGUE_TRIES = 6
"""Draws of one tool's call until what it needs fits another tool, too."""

FORBIDDEN_CALLS = 4
"""Calls of one tool that break a rule and are looked at for a proof."""

FORBIDDEN_TRIES = 8 * TRIES
"""Draws for a call that breaks a rule: most states hold few of them."""


class GoalMix(Config):
    """How the goals of one task in a domain hang together."""

    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"waiting": 0.0})

    in_order: float = Field(default=0.35, ge=0.0, le=1.0)
    """How often two goals that can be reached in either order are to be reached in one."""
    follow_up: float = Field(default=0.6, ge=0.0, le=1.0)
    """How often the next goal is about what an earlier one made, where a tool takes it."""
    related: float = Field(default=0.8, ge=0.0, le=1.0)
    """How often the next goal is about rows that hang together with those of the earlier ones."""
    waiting: float = Field(default=0.3, ge=0.0, le=1.0)
    """How often one of the goals of a normal task has to be waited for, where the agent has a tool
    to wait with."""


class DomainTasks:
    """Makes drafts for agents of one domain. `names` are the agent's tools of it, `lacking` those
    that the domain has and users may wish for in vain, `others` gives domains of which the agent
    has no tool, `grown` is where the tasks start, in place of the domain's seed, `lengths` are
    shares of tasks by bands of calls."""

    def __init__(
        self,
        domain: Domain,
        names: Collection[str],
        *,
        lacking: Collection[str] = (),
        others: Others | None = None,
        own: Collection[str] = (),
        extensions: Extensions = NO_EXTENSIONS,
        variants: VariantShares = VariantShares(),
        mix: GoalMix = GoalMix(),
        forms: FormShares = ALL_PLAIN,
        grown: GrownSeed | None = None,
        lengths: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._domain = domain
        self._variants = variants
        self._mix = mix
        self._forms = forms
        self._grown = grown
        self._lengths = lengths
        self._extensions = extensions
        self._all = tools_of(domain)
        self.tools = {name: self._all[name] for name in sorted(names)}
        self._fair = followable(domain, self.tools)
        self._lacking = [self._all[name] for name in sorted(lacking)]
        self._own = [self._all[name] for name in sorted(own)]
        self._others = others
        self._vague = [t for t in self._fair.values() if t.writes and alternatives(t, self.tools)]
        self._ruled = [t for t in self._fair.values() if t.rules]
        self._waiting = waiting_tools(self.tools.values()) if domain.jobs else []

    def make(
        self,
        item_id: str,
        *,
        shares: Complexity,
        disclosure: str,
        dual_control: float = 0.0,
        fits: Callable[[Draft], bool] = lambda draft: True,
        split: Split | None = None,
        split_of: Callable[[Draft], Split] | None = None,
    ) -> tuple[str, Draft, Proof]:
        """(declared complexity, draft, proof). UnprovedError when no try leads to a proof.

        `dual_control`: share of tasks of which the user must do a step, where it has tools; `fits`:
        which drafts may become the task; `split`: to which new values belong, unless the draft is
        of another one by `split_of`.
        """
        rng = rng_of(item_id, "task")
        complexity, num_goals = complexity_of(shares, rng)
        variant = variant_of(
            rng,
            shares=self._variants,
            has_rules=bool(self._ruled),
            lacks_tools=any(not tool.read_only for tool in self._lacking),
            has_others=self._others is not None,
            has_alternatives=bool(self._vague),
        )
        dual = bool(self._own) and rng_of(item_id, "dual_control").random() < dual_control
        if dual:
            variant = "normal"
        returns = variant == "normal" and not dual
        returns = returns and rng_of(item_id, "sessions").random() < self._forms.sessions
        if returns:
            num_goals = max(2, num_goals)
        band = band_of(item_id, self._lengths)
        if band is not None and band.is_long and len(self.tools) < LEAST_TOOLS:
            raise UnprovedError("too_few_tools", f"{len(self.tools)} at hand")
        failure = UnprovedError("no_goal_found")
        for attempt in range(ATTEMPTS):
            dual, returns = (wanted and attempt < ATTEMPTS // 2 for wanted in (dual, returns))
            if attempt == ATTEMPTS // 2:
                variant = "normal"
            try:
                drafted = partial(self._draft, variant, num_goals, dual=dual, band=band)
                draft = drafted(rng_of(item_id, "draft", attempt), split=split)
                other = split_of(draft) if split_of else split
                if other != split:
                    draft = drafted(rng_of(item_id, "draft", attempt), split=other)
                if not fits(draft) or (split_of and split_of(draft) != other):
                    failure = UnprovedError("of_another_split")
                    continue
                draft = told(
                    self._domain,
                    draft,
                    disclosure,
                    item_id=item_id,
                    attempt=attempt,
                    forms=self._forms,
                    returns=returns,
                )
                if returns:
                    complexity = complexity_with(len(draft.goals))
                proof = prove(self._domain, draft, self.tools, self._extensions, own=self._own)
                if band is not None and draft.variant != "no_tool":
                    check_length(band, draft, proof)
                    complexity = complexity_with(len(draft.goals))
                return complexity, draft, proof
            except UnprovedError as error:
                failure = error
        raise failure

    def _searched(self, draft: Draft, before: DomainEnvironment, views: Views) -> Draft:
        """The draft with the shortest plan that there is, and how it was found."""
        found = shortest_plan(self._domain, self._fair, draft.goals, before, views)
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

    def _draft(
        self,
        variant: Variant,
        num_goals: int,
        rng: Random,
        *,
        dual: bool,
        band: Band | None,
        split: Split | None,
    ) -> Draft:
        users = {tool.name for tool in self._own}
        writers = {n: tool for n, tool in self._all.items() if n not in users}
        patch = seeded_state(self._domain, writers, rng, self._grown)
        before = DomainEnvironment.of(self._domain, patch)
        builder = Builder(self._domain, before.snapshot(), self._fair, rng=rng, split=split)
        proved: dict[str, Any] = {}
        match variant:
            case "against_policy":
                builder = self._filled(builder, min(num_goals - 1, 2), rng, band)
                proved = self._add_forbidden(builder, before, rng)
                proved = self._traded(builder, before, rng, forbidden=True) or proved
            case "missing_tool":
                builder = self._filled(builder, max(1, min(num_goals - 1, 2)), rng, band)
                proved = self._add_lacking(builder, before, rng)
                proved = self._traded(builder, before, rng, forbidden=False) or proved
            case "irrelevant_tool":
                builder = self._filled(builder, max(1, min(num_goals - 1, 2)), rng, band)
                proved = self._add_irrelevant(builder, rng)
            case "unclear_tool":
                builder, proved = self._unclear(builder, before, rng, split)
                builder = self._filled(builder, num_goals - 1, rng, band)
            case "no_tool":
                builder.goals.append(question(self._domain, rng))
            case _ if dual:
                if not any(builder.add_after(tool) for tool in rng.sample(self._own, len(users))):
                    raise UnprovedError("no_goal_found")
                builder = self._filled(builder, num_goals - 1, rng, band)
            case _ if self._waiting and rng.random() < self._mix.waiting:
                self._add_with_wait(builder, 2 if band else num_goals, rng)
                builder = self._filled(builder, 0, rng, band)
            case _:
                builder = self._filled(builder, num_goals, rng, band, self._forms)
        goals = tuple(builder.goals)
        draft = Draft(variant=variant, goals=goals, initial_state=patch, proved=proved)
        if any(goal.form != "plain" for goal in goals):
            how = {"plan": "built", "depth": len(draft.plan), "forms": [g.form for g in goals]}
            if twins := [goal.twin for goal in goals if goal.twin is not None]:
                how["twins"] = twins
            draft = draft.model_copy(update={"proved": draft.proved | how})
            return shortened(self._domain, draft, builder.views) if band else draft
        draft = self._searched(draft, before, builder.views)
        if band and draft.proved.get("plan") == "built":
            draft = shortened(self._domain, draft, builder.views)
        for goal in goals:
            if goal.awaited is not None:
                draft = shortest_wait(self._domain, draft, self.tools[goal.awaited.wait.tool])
        if variant == "normal" and not dual and rng.random() < self._mix.in_order:
            return in_order(self._domain, draft)
        return draft

    def _filled(
        self,
        builder: Builder,
        count: int,
        rng: Random,
        band: Band | None,
        forms: FormShares = ALL_PLAIN,
    ) -> Builder:
        """With so many normal goals more, or as many as the band takes."""
        if band is None:
            self._add_normal(builder, count, rng, forms)
            return builder

        def add(trial: Builder, unfit: Collection[str]) -> None:
            self._add_normal(trial, 1, rng, forms, unfit)

        return in_band(builder, band, add)

    def _add_normal(
        self,
        builder: Builder,
        count: int,
        rng: Random,
        forms: FormShares = ALL_PLAIN,
        unfit: Collection[str] | None = None,
    ) -> None:
        """Goals on different tools, mostly ones that write, at least one that does; of the forms
        that are drawn, as far as the state gives them. With a list of `unfit` tools all others may
        have several goals, those that have one already last."""
        used = {name for goal in builder.goals for name in (goal.tool, *goal.could_be)}
        left_out = used if unfit is None else unfit
        left = [t for t in self._fair.values() if t.name not in left_out and not t.waits]
        for number in range(count):
            if forms.shape_goals and add_of_form(builder, forms.draw(rng)):
                left = [tool for tool in left if tool.name != builder.goals[-1].tool]
                continue
            wants_write = number == 0 or rng.random() < 0.65
            if count == 1 and rng.random() < 0.3:
                wants_write = False
            rng.shuffle(left)
            left.sort(key=lambda tool: tool.read_only == wants_write)  # stable: the rest shuffled
            if builder.recent and rng.random() < self._mix.related:
                near = entities_near(self._domain, builder.recent)
                left.sort(key=lambda tool: near.isdisjoint(tool.about))
            if builder.made and rng.random() < self._mix.follow_up:
                made = {entity for entity, _ in builder.made}
                left.sort(key=lambda tool: not tool.takes_any(made))
            if unfit is not None:
                left.sort(key=lambda tool: (tool.name in used, not tool.about))
            for tool in left:
                if builder.add(tool):
                    left.remove(tool)
                    break
            else:
                raise UnprovedError("no_goal_found")

    def _add_with_wait(self, builder: Builder, count: int, rng: Random) -> None:
        """Goals as in other normal tasks, one of which has to be waited for, where there is one:
        any but the first, whose call may set going what is waited for, or the only one."""
        place = rng.randrange(1, count) if count > 1 else 0
        self._add_normal(builder, place, rng)
        ways = rng.sample(self._waiting, len(self._waiting))
        found = any(builder.add_awaited(waiting) for waiting in ways)
        self._add_normal(builder, count - place - found, rng)

    def _add_forbidden(
        self, builder: Builder, before: DomainEnvironment, rng: Random
    ) -> dict[str, Any]:
        """A user goal that its own tool would grant against a rule, and nothing else at hand
        can."""
        unproved = False
        for tool in rng.sample(self._ruled, len(self._ruled)):
            for _ in range(FORBIDDEN_CALLS):
                if not builder.add(tool, violating=True, possible=False, tries=FORBIDDEN_TRIES):
                    break
                obstacle = self._reach(builder, before).violation(_wanted_changes(builder))
                if obstacle is not None:
                    return {"out_of_reach": obstacle._asdict()}
                unproved = True
                builder.goals.pop()
        raise UnprovedError("breach_not_proved" if unproved else "no_goal_found")

    def _add_lacking(
        self, builder: Builder, before: DomainEnvironment, rng: Random
    ) -> dict[str, Any]:
        """A user goal whose tool the agent lacks, and that its other tools cannot bring about."""
        writes = [tool for tool in self._lacking if not tool.read_only]
        unproved = False
        for tool in rng.sample(writes, len(writes)):
            if not builder.add(tool, possible=False):
                continue
            obstacle = self._reach(builder, before).obstacle(_wanted_changes(builder))
            goal = builder.goals.pop()
            if obstacle is not None:
                builder.goals.append(goal.model_copy(update={"steps": ()}))
                return {"out_of_reach": obstacle._asdict()}
            unproved = True
        raise UnprovedError("other_tools_may_do_it" if unproved else "no_goal_found")

    def _traded(
        self, builder: Builder, before: DomainEnvironment, rng: Random, *, forbidden: bool
    ) -> dict[str, Any] | None:
        """The proof that the last goal is out of reach after what it is traded for, too; None
        without a trade."""
        share = self._forms.traded
        if not share or rng.random() >= share:
            return None
        wanted = builder.goals[-1]
        if not add_traded(builder, self._all[wanted.tool]):
            return None
        reach, changes = self._reach(builder, before), builder.changes_if_granted(wanted)
        obstacle = reach.violation(changes) if forbidden else reach.obstacle(changes)
        if obstacle is None:
            raise UnprovedError("trade_not_proved")
        return {"out_of_reach": obstacle._asdict()}

    def _add_irrelevant(self, builder: Builder, rng: Random) -> dict[str, Any]:
        names = [*self._domain.entities, *self._all]
        words = {word for name in names for word in name.split("_")}
        found = self._others and irrelevant_goal(self._others(), words, self._all, rng)
        if found is None:
            raise UnprovedError("no_other_world")
        builder.goals.append(found.goal)
        return {"out_of_reach": found.obstacle._asdict()}

    def _unclear(
        self, empty: Builder, before: DomainEnvironment, rng: Random, split: Split | None
    ) -> tuple[Builder, dict[str, Any]]:
        """A builder whose first user goal does not say what should be done."""
        for tool in rng.sample(self._vague, min(VAGUE_TOOLS, len(self._vague))):
            for _ in range(VAGUE_TRIES):
                environment = before.snapshot()
                builder = Builder(
                    self._domain, environment, self._fair, rng=rng, views=empty.views, split=split
                )
                if not builder.add(tool):
                    break
                drawer = Drawer(self._domain, rng, split=split)
                goal = unclear(builder.goals[0], tool, self.tools, before, drawer)
                if goal is not None:
                    builder.goals[0] = goal
                    return builder, {"unclear": {"meant": tool.name, "could_be": goal.could_be}}
        raise UnprovedError("nothing_unclear")

    def _reach(self, builder: Builder, before: DomainEnvironment) -> Reach:
        tools = self.tools.values()
        return Reach(self._domain, tools, before, builder.environment, builder.diffs)


def _wanted_changes(builder: Builder) -> list[dict[str, Any]]:
    """What the last user goal, which is not granted, would change."""
    return builder.changes_if_granted(builder.goals[-1])
