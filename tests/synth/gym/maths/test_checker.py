"""Whatever a request does, it is answered or has its name, and the next one is answered."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.errors import ConfigError, TransientError
from synth.gym.maths.checker import CHECK_CPU_S, Checker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    made = Checker()
    yield made
    made.close()


def same(
    checker: Checker, right: str, answer: str, cpu_s: float = CHECK_CPU_S
) -> tuple[object, ...]:
    return checker.compute("maths", {"right": right, "answer": answer}, cpu_s=cpu_s)[:2]


def test_a_comparison_is_a_yes_or_no(checker: Checker) -> None:
    assert same(checker, "1+x", "x+1") == (True, None)
    assert same(checker, "1+x", "x+2") == (False, None)


def test_cpu_time_ends_a_request_even_in_the_midst_of_one_long_operation(checker: Checker) -> None:
    start = time.process_time()
    assert same(checker, "2", "9^{9^{9^{9}}}", cpu_s=0.5) == (None, "cpu")
    assert time.process_time() - start < 0.5  # nothing of it is spent here
    assert same(checker, "2", "2") == (True, None)


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "\\",
            "}",
            "{",
            "\\frac",
            "\\frac{1}",
            "\\begin{pmatrix}",
            "$$",
            "\x00",
            "\ud83d",
            "x_{",
            "^",
        ),
        *(
            "\\boxed{1}",
            "1}\\boxed{2",
            "\\input{/etc/passwd}",
            "\\text{" + "a" * 300 + "}",
            "=" * 50,
        ),
        *(
            "(" * 100 + ")" * 100,
            "\\sqrt{" * 60 + "2" + "}" * 60,
            "-" * 200,
            "1" * 400,
            "\N{MULTIPLICATION SIGN}" * 99,
        ),
    ],
)
def test_any_text_is_answered(checker: Checker, answer: str) -> None:
    result, fault = same(checker, "7", answer)
    assert result is False or fault is not None


def test_a_fault_of_a_request_is_told(checker: Checker) -> None:
    missing = {"kind": "no_such_kind", "level": None, "settings": {}, "draw": [0]}
    found = checker.compute("puzzles", missing, cpu_s=CHECK_CPU_S)
    assert found.fault == "not_prepared"
    assert "no_such_kind" in found.detail


def test_a_library_that_is_missing_is_no_answer_s_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("math_verify", "reasoning_gym"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module {name}')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Checker()
    with pytest.raises(ConfigError, match="No module math_verify; install the extra `gym`"):
        made.judged("maths", {"right": "1", "answer": "2"})
    kind = {"kind": "gcd", "level": None, "settings": {}, "draw": [0]}
    assert "extra `gym`" in made.compute("puzzles", kind, cpu_s=CHECK_CPU_S).detail
    made.close()


def test_a_process_that_is_killed_is_no_answer_and_starts_again(checker: Checker) -> None:
    assert same(checker, "2", "2") == (True, None)
    assert checker._process._started is not None
    process = checker._process._started[1].peek()[2][0]  # type: ignore[index]
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(TransientError, match="starts again"):
        same(checker, "2", "2")
    assert same(checker, "2", "2") == (True, None)


def test_requests_of_many_episodes_are_answered_each_with_its_own(checker: Checker) -> None:
    async def all_of() -> list[object]:
        asked = [{"right": f"{n}", "answer": f"{n % 4}"} for n in range(8)]
        found = await asyncio.gather(
            *(asyncio.to_thread(checker.judged, "maths", arguments) for arguments in asked)
        )
        return [one.result for one in found]

    assert asyncio.run(all_of()) == [True] * 4 + [False] * 4


def test_closing_ends_the_process_and_may_be_done_twice(checker: Checker) -> None:
    assert same(checker, "2", "2") == (True, None)
    assert checker._process._started is not None
    process = checker._process._started[1].peek()[2][0]  # type: ignore[index]
    checker.close()
    checker.close()
    assert process.poll() is not None
