"""Of an answer one block is the program, however much stands around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.code.problems import RUN
from synth.gym.programs.answers import MAX_ANSWER, TAGS, program_in

PROGRAM = "print(int(input()) ** 2)\n"
OTHER = "print(1)\n"


def block(text: str, mark: str = "python", fence: str = "```") -> str:
    return f"{fence}{mark}\n{text}{fence}\n"


@pytest.mark.parametrize(
    "answer",
    [
        block(PROGRAM),
        block(PROGRAM, "py"),
        block(PROGRAM, "Python title=solution.py"),
        block(PROGRAM, "{.python}"),
        block(PROGRAM, "python", "~~~"),
        block(PROGRAM, ""),
        f"Squares, then.\n\n{block(PROGRAM)}\nIt reads a number and prints its square.",
        f"{block(OTHER)}\nNo, that is wrong:\n\n{block(PROGRAM)}",
        f"{block(PROGRAM)}\nFor the input 2 it prints\n\n{block('4', '')}",
        f"{block(PROGRAM)}\nTry it:\n\n{block('echo 2 | python x.py', 'sh')}",
        f"{block(OTHER, '')}\nBetter:\n\n{block(PROGRAM, '')}",
        "```python\n" + PROGRAM,
        "1. The program:\n\n   " + block(PROGRAM).replace("\n", "\n   "),
        "> " + block(PROGRAM).replace("\n", "\n> "),
        block(PROGRAM).replace("\n", "\r\n"),
        block(OTHER, "c") + block(PROGRAM),
    ],
)
def test_forms_of_one_program(answer: str) -> None:
    assert program_in(answer, "python") == PROGRAM


@pytest.mark.parametrize(
    "answer",
    [
        "",
        PROGRAM,
        "Use `print(int(input()) ** 2)`.",
        "    " + PROGRAM,
        block(PROGRAM, "c"),
        block("print('\ud800')\n"),
        block(PROGRAM) + "x" * MAX_ANSWER,
    ],
    ids=["nothing", "no fence", "in a line", "indented", "c", "half a character", "too long"],
)
def test_what_is_no_program(answer: str) -> None:
    assert program_in(answer, "python") is None


def test_a_longer_fence_holds_a_shorter_one() -> None:
    program = 'print("""\n```python\n""")\n'
    assert program_in(block(program, fence="````"), "python") == program


def test_every_language_has_a_mark() -> None:
    assert TAGS.keys() == RUN.keys()
    for language, tags in TAGS.items():
        assert program_in(block(PROGRAM, tags[0]), language) == PROGRAM


@given(st.text(max_size=200), st.sampled_from(sorted(RUN)))
def test_any_text_is_an_answer(answer: str, language: str) -> None:
    program = program_in(answer, language)  # type: ignore[arg-type]
    assert program is None or program.encode()
