"""Gates: personal data by form and words, and hooks of the user's own."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.bench_personal_data import lines_of
from records.errors import ConfigError
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.gates import gate_versions, gates_of
from synth.rephrasing.writing.personal_data import personal_data


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to jane.miller@mailhost.org today.", "email"),
        ("Write to someone@example.com today.", None),
        ("Write to root@localhost.", None),
        ("Call +49 30 901820 now.", "phone"),
        ("Phone: (030) 9018-2047.", "phone"),
        ("Call +1 202 555-0143 now.", None),
        ("It has 20240501 rows and 1234567890 bytes.", None),
        ("Card 4539 1488 0343 6467.", "card"),
        ("Card 4539 1488 0343 6468.", None),
        ("Card 4242 4242 4242 4242.", None),
        ("Zeros 4000 0000 0000 0000.", None),
        ("Pay to DE89 3704 0044 0532 0130 00.", "iban"),
        ("Pay to DE89 3704 0044 0532 0130 01.", None),
        ("The client 84.17.52.101 answered.", "ip_address"),
        ("Version 84.17.52.101 answered.", None),
        ("The hosts 127.0.0.1, 10.1.2.3 and 192.0.2.7 answered; version 3.11.4.1.", None),
        ("SSN 157-36-8193", "identity_number"),
        ("SSN 157368193", "identity_number"),
        ("Of 157368193 rows none was lost.", None),
        ("SSN 000-36-8193", None),
        ("PESEL 50041812894", "identity_number"),
        ("PESEL 50041812895", None),
        ("There were 50041812894 atoms.", None),
        ("Call the method object.__new__(cls[, ...]) with @property.", None),
    ],
)
def test_personal_data_is_told_by_form_check_digits_and_words(text: str, kind: str | None) -> None:
    assert personal_data(text) == kind


def test_lines_that_rules_were_chosen_on_are_told_apart() -> None:
    assert [line for line in lines_of("personal", 0) if personal_data(line) is None] == []
    assert [line for line in lines_of("honest", 0) if personal_data(line) is not None] == []


def test_a_hundred_thousand_characters_of_numbers_are_looked_through_within_bounds() -> None:
    hostile = [
        "1" * 100_000,
        "1 " * 50_000,
        "1.1." * 25_000,
        "a1@" * 30_000,
        "call 12345678 " * 7_000,
    ]
    assert [personal_data(text) for text in hostile] == [None] * len(hostile)


HOOK = (
    "def toxicity(text):\n    return text.count('x') / 10\n\ndef wanted(text):\n    return 'why'\n"
)


def gates_file(folder: Path, code: str = HOOK) -> Path:
    path = folder / "my_gates.py"
    path.write_text(code)
    return path


def test_hooks_give_scores_or_reasons(tmp_path: Path) -> None:
    path = gates_file(tmp_path)
    config = RephraseConfig.model_validate(
        {"gates": ["personal_data", f"{path}:toxicity", f"{path}:wanted"]}
    )
    found = dict(gates_of(config.gates))
    assert list(found) == ["personal_data", "toxicity", "wanted"]
    assert [found["toxicity"](text) for text in ("", "xxxx", "xxxxx")] == [
        None,
        None,
        "score 0.500",
    ]
    assert found["wanted"]("any") == "why"
    assert len(set(gate_versions(config.gates).values())) == 3
    assert RephraseConfig.model_validate_json(config.model_dump_json()) == config


def test_a_score_counts_from_the_threshold_on(tmp_path: Path) -> None:
    hook = {"hook": f"{gates_file(tmp_path)}:toxicity", "at": 0.2}
    [(_, gate)] = gates_of(RephraseConfig.model_validate({"gates": [hook]}).gates)
    assert (gate("x"), gate("xx")) == (None, "score 0.200")


def test_content_and_threshold_of_a_hook_decide_and_its_place_does_not(tmp_path: Path) -> None:
    def identity(path: Path, at: float = 0.5) -> object:
        hook = {"hook": f"{path}:toxicity", "at": at}
        return RephraseConfig.model_validate({"gates": [hook]}).identity()

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    here, there = gates_file(tmp_path / "a"), gates_file(tmp_path / "b")
    first = identity(here)
    assert first == identity(there)
    assert first != identity(here, at=0.6)
    assert first != identity(gates_file(tmp_path / "b", HOOK + "# edited\n"))


def test_a_module_is_named_without_being_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_filters").mkdir()
    (tmp_path / "own_filters" / "__init__.py").write_text("raise RuntimeError('loaded')")
    (tmp_path / "own_filters" / "gates.py").write_text(HOOK)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = RephraseConfig.model_validate({"gates": ["own_filters.gates:toxicity"]})
    with pytest.raises(ConfigError, match="cannot be loaded: RuntimeError: loaded"):
        gates_of(config.gates)
    (tmp_path / "own_filters" / "__init__.py").write_text("")
    [(name, gate)] = gates_of(config.gates)
    assert (name, gate("x" * 10)) == ("toxicity", "score 1.000")


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("toxicity", "is no gate: it is 'personal_data', or FILE:FUNCTION"),
        ("nowhere.py:toxicity", r"nowhere\.py cannot be read: No such file"),
        ("no_such_package.gates:f", "there is no module 'no_such_package.gates'"),
    ],
)
def test_a_gate_that_is_none_is_refused_with_the_settings(gate: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RephraseConfig.model_validate({"gates": [gate]})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def toxicity(text):\n    return 1 / 0\n", "failed: line 2: ZeroDivisionError"),
        ("def toxicity(text):\n    return 2.0\n", r"gave 2\.0; it gives None"),
        ("def toxicity(text):\n    return ['x']\n", r"gave \['x'\]"),
        ("def other(text):\n    return None\n", "has no function 'toxicity'"),
        ("def toxicity(text:\n", "cannot be loaded: line 1: SyntaxError"),
    ],
)
def test_a_fault_of_a_hook_is_told_with_its_place(tmp_path: Path, code: str, message: str) -> None:
    hook = f"{gates_file(tmp_path, code)}:toxicity"
    config = RephraseConfig.model_validate({"gates": [hook]})
    with pytest.raises(ConfigError, match=message):
        [gate(" text") for _, gate in gates_of(config.gates)]


def test_an_edited_hook_is_refused(tmp_path: Path) -> None:
    path = gates_file(tmp_path)
    config = RephraseConfig.model_validate({"gates": [f"{path}:toxicity"]})
    path.write_text(HOOK + "# edited\n")
    with pytest.raises(ConfigError, match="was edited after the run was configured"):
        gates_of(config.gates)
    with pytest.raises(ValidationError, match="was edited since"):
        RephraseConfig.model_validate_json(config.model_dump_json())


def test_two_gates_of_one_name_are_refused(tmp_path: Path) -> None:
    path = gates_file(tmp_path)
    other = path.with_name("other.py")
    other.write_text(HOOK + "#\n")
    gates = [f"{path}:toxicity", f"{other}:toxicity"]
    with pytest.raises(ConfigError, match="two gates are called 'toxicity'"):
        gates_of(RephraseConfig.model_validate({"gates": gates}).gates)
