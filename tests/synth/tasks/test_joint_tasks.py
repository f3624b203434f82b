"""Tasks over two domains with the same people: proved as all are, and each part counts."""

from functools import cache

from records.digest import digest
from synth.tasks.composing import Complexity, DomainTasks
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.proof.proving import UnprovedError
from tests.synth.task_cases import Case
from tool_specs.domains.domain import Domain
from tool_specs.domains.joining import JoinedPart, joined
from tool_specs.domains.taxonomy import load_taxonomy

SHARES = Complexity(0.0, 1.0, 0.0)


@cache
def cases() -> list[tuple[Case, frozenset[str]]]:
    """Tasks with goals in both parts, and the names of the first part's tools."""
    [clinic], [coop] = load_taxonomy(["clinic_desk"]), load_taxonomy(["orchard_coop"])
    content = joined("joint", [JoinedPart(clinic, "patient"), JoinedPart(coop, "grower")])
    domain = Domain.of(content, origin="joint")
    tools = dict(tools_of(domain))
    tasks = DomainTasks(domain, list(tools))
    found = []
    for i in range(24):
        try:
            complexity, draft, proof = tasks.make(
                digest("joint", i), shares=SHARES, disclosure="mixed"
            )
        except UnprovedError:
            continue
        goals = {goal.tool for goal in draft.goals}
        if goals & clinic.programs.keys() and goals & coop.programs.keys():
            case = Case(domain, tools, complexity, draft, proof.rubric)
            found.append((case, frozenset(clinic.programs)))
    assert len(found) >= 6
    return found


def test_the_reference_passes_and_what_a_part_changes_cannot_be_left_out() -> None:
    left_out = 0
    for case, first in cases():
        plan = case.draft.plan
        assert case.failed(case.play()) == set()
        for own in (True, False):
            rest = [step for step in plan if (step.tool in first) is own]
            if all(case.tools[step.tool].read_only for step in plan if step not in rest):
                continue
            left_out += 1
            assert "state" in case.failed(case.play(rest))
    assert left_out >= 6


def test_a_change_in_the_part_that_is_done_with_breaks_the_frame() -> None:
    broken = 0
    for case, _ in cases():
        plan = list(case.draft.plan)
        done = {(step.tool, str(step.arguments)) for step in plan}
        environment = case.environment(plan)
        for row in environment.rows("patient"):
            arguments = {"patient_id": row["patient_id"], "allergy": "iodine"}
            if ("add_allergy", str(arguments)) in done or "iodine" in row["allergies"]:
                continue
            extra = plan[-1].model_copy(update={"tool": "add_allergy", "arguments": arguments})
            failed = case.failed(case.play([*plan, extra]))
            assert "state" in failed
            broken += 1
            break
    assert broken >= 6
