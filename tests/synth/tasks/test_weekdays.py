"""What is drawn for a call: its dates are on the weekday that it names."""

from datetime import date
from random import Random

from synth.tasks.goals.arguments import WEEKDAYS, Drawer, with_fitting_days
from synth.tasks.goals.domain_tools import tools_of
from tests.synth.task_cases import domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.language.domain_file import ParamSpec

DAY = ParamSpec(type="enum", values=("monday", "friday"))


def test_a_drawn_date_is_on_the_drawn_weekday() -> None:
    seen = 0
    for domain in domains():
        environment = DomainEnvironment.of(domain, {})
        for tool in tools_of(domain).values():
            params = tool.spec.params
            days = [n for n, p in params.items() if set(p.values) & set(WEEKDAYS)]
            dates = [n for n, p in params.items() if p.type in ("date", "datetime")]
            if len(days) != 1 or not dates:
                continue
            for seed in range(30):
                drawn = Drawer(domain, Random(seed)).draw(environment, tool)
                for name in (name for name in dates if name in drawn and days[0] in drawn):
                    seen += 1
                    weekday = date.fromisoformat(drawn[name][:10]).weekday()
                    assert WEEKDAYS[weekday] == drawn[days[0]]
    assert seen >= 30


def test_a_date_moves_on_by_less_than_a_week_and_keeps_its_time() -> None:
    params = {"day": DAY, "at": ParamSpec(type="datetime"), "from": ParamSpec(type="date")}
    given = {"day": "friday", "at": "2026-03-07T10:30:00", "from": "2026-03-06"}
    moved = with_fitting_days(params, given)
    assert moved == {"day": "friday", "at": "2026-03-13T10:30:00", "from": "2026-03-06"}


def test_without_one_weekday_nothing_moves() -> None:
    params = {"day": DAY, "other": DAY, "from": ParamSpec(type="date")}
    for given in (
        {"from": "2026-03-07"},
        {"day": "monday", "other": "friday", "from": "2026-03-07"},
    ):
        assert with_fitting_days(params, given) == given
