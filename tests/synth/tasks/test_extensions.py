"""Extensions: what a file may define, what its faults are called, and what goes into ids."""

import json
from pathlib import Path

import pytest

from records.errors import ConfigError
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import validate
from synth.rubrics.built_in import BUILT_IN, Episode, EpisodeCall, episode_of
from synth.rubrics.criteria import Criterion, Rubric
from synth.tasks.composing import DomainTasks
from synth.tasks.proof.extensions import Extensions, load_extensions
from synth.tasks.proof.proving import UnprovedError
from tests.synth.task_cases import SHARES, case, domains

FEW_CALLS = """
from synth.rubrics.built_in import Episode, Kind, Verdict
from synth.tasks.proof.extensions import Extension
from synth.rubrics.criteria import Strict

class FewCalls(Strict):
    limit: int

def verdict(check: FewCalls, episode: Episode) -> Verdict:
    made = len(episode.calls)
    passed = made <= check.limit
    return Verdict(passed, 1.0 if passed else check.limit / made, f"Expected few; seen {made}.")

FEW = Kind("few_calls", "at most so many calls", FewCalls, verdict)

def criteria(draft):
    check = FewCalls(limit=len(draft.plan) + SPARE)
    yield FEW.criterion("few_calls", "Few calls.", check=check, weight=1, mandatory=False)

SPARE = 2
EXTENSION = Extension(kinds=[FEW], criteria=criteria)
"""
FEW = Criterion(id="few", words="w", weight=1, mandatory=True, kind="few_calls", check={"limit": 1})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "few.py"
    path.write_text(FEW_CALLS)
    return path


def config_of(*files: Path) -> RunConfig:
    return validate({"extensions": [str(file) for file in files]}, where="test")


def loaded(*files: Path) -> Extensions:
    return load_extensions(config_of(*files).extensions)


def episode(calls: int) -> Episode:
    made = [EpisodeCall(tool="t", arguments={}) for _ in range(calls)]
    return episode_of([{"role": "assistant", "content": "Done."}], made)


def use(file: Path) -> None:
    """All that a run does with a file."""
    extensions = loaded(file)
    extensions.criteria(case(domains()[0], 1).draft)
    extensions.kinds.check(FEW, episode(2))


def test_a_kind_of_a_file_checks_beside_the_built_in_ones(file: Path) -> None:
    kinds = loaded(file).kinds
    closing = Criterion(id="closing", words="w", weight=1, mandatory=True, kind="format")
    verdicts = kinds.check_all(Rubric(criteria=(FEW, closing)), episode(2))
    assert [(i, v.score) for i, v in verdicts.items()] == [("few", 0.5), ("closing", 1.0)]
    assert kinds.by_name.keys() == BUILT_IN.by_name.keys() | {"few_calls"}
    with pytest.raises(ConfigError, match="no kind 'few_calls'; kinds: state, call"):
        BUILT_IN.check(FEW, episode(2))


def test_its_criteria_stand_in_the_rubric_and_the_reference_passes_them(file: Path) -> None:
    domain = domains()[0]
    names = domain.programs
    more = DomainTasks(domain, names, extensions=loaded(file))
    same = DomainTasks(domain, names)
    for number in range(5):
        _, draft, proof = more.make(str(number), shares=SHARES, disclosure="mixed")
        *built_in, own = proof.rubric.criteria
        assert own.kind == "few_calls"
        assert own.check == {"limit": len(draft.plan) + 2}
        _, _, without = same.make(str(number), shares=SHARES, disclosure="mixed")
        assert tuple(built_in) == without.rubric.criteria


def test_a_task_whose_reference_fails_an_added_criterion_is_no_task(file: Path) -> None:
    file.write_text(FEW_CALLS.replace("SPARE = 2", "SPARE = -1"))
    domain = domains()[0]
    tasks = DomainTasks(domain, domain.programs, extensions=loaded(file))
    with pytest.raises(UnprovedError, match="fails_own_rubric: few_calls"):
        tasks.make("1", shares=SHARES, disclosure="mixed")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("made = len", "made = size", r"kind 'few_calls' failed: line 10: NameError"),
        ("check.limit / made", "2.0", r"gave Verdict\(passed=False, score=2.0.* from 0 to 1"),
        ("EXTENSION =", "EXTENSIONS =", r"must define EXTENSION = .*is None"),
        ("import Strict", "import Loose", r"cannot be loaded: line 4: ImportError"),
        ("def criteria(draft):", "def criteria(draft)", r"line 16: SyntaxError: expected ':'"),
        ('Kind("few_calls"', 'Kind("state"', "kind 'state' is defined twice"),
        ('Kind("few_calls"', 'Kind("nl"', "kind 'nl' is defined twice"),
        ('Kind("few_calls"', 'Kind("Few"', "kind 'Few' is no snake_case word"),
        ("kinds=[FEW]", "kinds=[]", "no kind 'few_calls'"),
        ("yield FEW.criterion", "yield str", r"criteria\(draft\) failed: line 18: TypeError"),
        ("yield FEW", "yield check; yield FEW", "no Criterion; make one with KIND.crit"),
        ("kinds=[FEW]", "kinds=['few']", "kinds holds 'few'"),
    ],
)
def test_a_fault_is_told_with_its_file_and_line(file: Path, old: str, new: str, fault: str) -> None:
    assert old in FEW_CALLS
    file.write_text(FEW_CALLS.replace(old, new))
    with pytest.raises(ConfigError, match=fault) as raised:
        use(file)
    assert str(raised.value).startswith(str(file))


def test_a_check_that_does_not_fit_its_kind_is_refused_by_name(file: Path) -> None:
    wrong = FEW.model_copy(update={"check": {"limit": "many"}})
    why = loaded(file).kinds.problem_with(wrong)
    assert why is not None
    assert "check.limit = 'many'" in why
    assert "at most so many calls" in why


@pytest.mark.parametrize(
    ("given", "words"),
    [("missing.py", "cannot be read: No such file"), ("kinds.txt", "path of a Python file")],
)
def test_a_file_that_cannot_be_is_refused_with_the_setting(given: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"extensions\.0 = '{given}'.*{words}"):
        validate({"extensions": [given]}, where="test")


def test_the_content_of_a_file_is_part_of_the_run_and_its_path_is_not(file: Path) -> None:
    config = config_of(file)
    copy = file.with_name("copy.py")
    copy.write_text(FEW_CALLS)
    assert config_of(copy).run_id == config.run_id != RunConfig().run_id
    recorded = json.loads(config.model_dump_json())
    assert validate(recorded, where="test") == config
    file.write_text(FEW_CALLS + "# edited\n")
    assert config_of(file).run_id != config.run_id
    with pytest.raises(ConfigError, match=r"few\.py was edited since"):
        validate(recorded, where="test")
    assert loaded(file).kinds.version != loaded(copy).kinds.version != BUILT_IN.version
