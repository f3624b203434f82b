"""Near-duplicates among agents: every pair is found, the first stays, later ones change nothing."""

from dataclasses import replace
from random import Random

from records.tables.schemas import Row
from synth.tasks.agents.agents import AgentPlan, AgentSource
from synth.tasks.agents.forms import draw_form
from synth.tasks.agents.screening import near_repeats, undecided
from synth.tasks.agents.skeletons import skeleton_of, words_of
from tool_specs.coverage.duplicates import THRESHOLD, jaccard

SHOP = AgentSource(
    domain_id="shop",
    server=None,
    title="Shop",
    description="A shop that sells things to people who come in and ask for them.",
    policy=("Never sell anything to anybody who is rude to the people at the till.",),
    split="train",
    tools=(),
)
TEXT = (
    "you are calm quick exact warm and serve people who ask for shoes hats bags coats with care "
    "patience humour a smile figures dates names at once in plain short long words every day"
)
WORDS = TEXT.split()
OWN = words_of([SHOP.title, SHOP.description, *SHOP.policy])
FORM = draw_form(Random(0), {"English": 1.0}, num_tools=8)


def rows_of(prompts: list[str], tools: list[list[str]] | None = None) -> list[Row]:
    return [
        {
            "agent_id": f"agent-{i:03d}",
            "system_prompt": prompt,
            "tool_ids": (tools or [["a", "b"]] * len(prompts))[i],
            "domain_id": SHOP.domain_id,
            "server": None,
        }
        for i, prompt in enumerate(prompts)
    ]


def some_prompts(rng: Random, count: int) -> list[str]:
    """Of a few originals, with none to three words changed in each."""
    originals = [[rng.choice(WORDS) for _ in range(40)] for _ in range(6)]
    prompts = []
    for _ in range(count):
        words = list(rng.choice(originals))
        for _ in range(rng.randint(0, 3)):
            words[rng.randrange(40)] = rng.choice(WORDS)
        prompts.append(" ".join(words))
    return prompts


def test_exactly_those_near_a_kept_one_before_them_are_dropped() -> None:
    dropped = 0
    for seed in range(20):
        prompts = some_prompts(Random(seed), 40)
        found = near_repeats(rows_of(prompts), [SHOP])
        kept: list[int] = []
        for i, prompt in enumerate(prompts):
            own = skeleton_of(prompt, OWN)
            others = ((j, skeleton_of(prompts[j], OWN)) for j in kept)
            near = [j for j, other in others if jaccard(own, other) >= THRESHOLD]
            assert (f"agent-{i:03d}" in found) == bool(near)
            if near:
                assert found[f"agent-{i:03d}"] in {f"agent-{j:03d}" for j in near}
                dropped += 1
            else:
                kept.append(i)
    assert 20 * 5 < dropped < 20 * 35


def test_a_larger_run_changes_nothing_of_those_before() -> None:
    prompts = some_prompts(Random(1), 40)
    few = near_repeats(rows_of(prompts[:20]), [SHOP])
    many = near_repeats(rows_of(prompts), [SHOP])
    assert few == {agent: of for agent, of in many.items() if agent < "agent-020"}


def test_another_name_and_other_tools_make_no_other_prompt() -> None:
    prompt = "You answer as {}, and you serve all {} people of the town with patience every day."
    made = [prompt.format(name, number) for name, number in (("Ada", 9), ("Bo", 12), ("Cy", 3))]
    made.append("Bring them in, hear them out, and let nobody leave without knowing what is next.")
    tools = [["a"], ["b"], ["c"], ["a"]]
    found = near_repeats(rows_of(made, tools), [SHOP])
    assert found == {"agent-001": "agent-000", "agent-002": "agent-000"}


def test_prompts_of_other_domains_are_other_prompts() -> None:
    other = replace(SHOP, domain_id="mill", title="Mill")
    rows = rows_of(["You are patient and exact and you serve people every day of the week."] * 2)
    rows[1] |= {"domain_id": "mill"}
    assert near_repeats(rows, [SHOP, other]) == {}


def test_what_the_domain_says_of_itself_makes_no_two_agents_alike() -> None:
    shared = f"{SHOP.description} {SHOP.policy[0]}"
    prompts = [f"You are quick and to the point. {shared}", f"Yours is the warm word. {shared}"]
    assert near_repeats(rows_of(prompts), [SHOP]) == {}


def test_who_may_repeat_an_agent_that_is_not_made_yet_is_undecided() -> None:
    """Whatever the pending ones turn out to be, what is said of the decided agents stays."""
    sources = [replace(SHOP, domain_id=f"shop-{i}") for i in range(8)]
    settled = 0
    for seed in range(40):
        rng = Random(seed)
        rows = rows_of(some_prompts(rng, 40))
        for row in rows:
            row["domain_id"] = rng.choice(sources).domain_id
        plans = [planned(row, sources) for row in rows]
        pending = {row["agent_id"] for row in rng.sample(rows, 2)}
        made = [row for row in rows if row["agent_id"] not in pending]
        now = near_repeats(made, sources)
        later = near_repeats(rows, sources)
        waiting = undecided(plans, pending, now)
        assert pending <= waiting
        for row in made:
            agent = row["agent_id"]
            assert agent in waiting or now.get(agent) == later.get(agent), (seed, agent)
            settled += agent not in waiting
    assert settled > 40 * 8


def planned(row: Row, sources: list[AgentSource]) -> AgentPlan:
    source = next(s for s in sources if s.domain_id == row["domain_id"])
    return AgentPlan(row["agent_id"], source, (), "one", "some", "calm", FORM)
