"""Languages of texts and stems of words: told rightly or not at all, whoever asks."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.bench_languages import sentences_by_language
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.fidelity.language import UNTOLD, language_of

BY_LANGUAGE = {code: own for code, own in sentences_by_language().items() if code != UNTOLD}
NO_LANGUAGE = sentences_by_language()[UNTOLD]
FORMULA = "$$\\int_0^1 \\frac{a^2 + b^2}{\\sqrt{c}} \\, dx = \\sum_{k=1}^{n} \\sin(k \\theta)$$"
CODE = "```python\nfor item in sorted(items): print(item.name, file=sys.stderr)\n```"


@pytest.mark.parametrize("code", BY_LANGUAGE)
def test_no_paragraph_is_taken_for_another_language(code: str) -> None:
    sentences = BY_LANGUAGE[code]
    told = [language_of(" ".join(sentences[start : start + 2])) for start in (0, 2)]
    assert set(told) <= {code, UNTOLD}
    assert language_of("\n\n".join(sentences * 3)) == code


@pytest.mark.parametrize("text", [*NO_LANGUAGE, "", "   ", FORMULA, CODE, FORMULA * 20, CODE * 20])
def test_mathematics_and_code_are_in_no_language(text: str) -> None:
    assert language_of(text) == UNTOLD


@pytest.mark.parametrize("code", ["en", "de", "ro", "uk", "ja"])
def test_code_and_formulas_in_a_text_do_not_change_its_language(code: str) -> None:
    paragraph = " ".join(BY_LANGUAGE[code])
    assert language_of(f"{FORMULA}\n\n{CODE}\n\n{paragraph}\n\n{CODE}\n\n{FORMULA}") == code


@pytest.mark.parametrize(("one", "other"), [("en", "de"), ("fr", "ru"), ("nl", "da"), ("es", "ar")])
def test_a_mixed_text_is_in_no_one_language(one: str, other: str) -> None:
    assert language_of(" ".join((*BY_LANGUAGE[one], *BY_LANGUAGE[other]))) == UNTOLD


def test_threads_get_the_answers_that_one_thread_gets() -> None:
    texts = [sentence for own in BY_LANGUAGE.values() for sentence in own]
    words = [(w.lower(), code) for code, own in BY_LANGUAGE.items() for s in own for w in s.split()]

    def answers() -> tuple[list[str], list[str]]:
        return [language_of(text) for text in texts], [stem(*word) for word in words]

    alone = answers()
    language_of.cache_clear()
    stem.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert [one.result() for one in [pool.submit(answers) for _ in range(4)]] == [alone] * 4


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("en", "measure measures measured measuring"),
        ("de", "haus hauses hause"),
        ("fr", "continuer continue continuait"),
        ("es", "cortado cortada cortados"),
        ("sv", "kulle kullar kullarna"),
        ("pl", "miasta miasto miastem"),
    ],
)
def test_forms_of_a_word_have_one_stem_in_its_language(language: str, forms: str) -> None:
    assert len({stem(form, language) for form in forms.split()}) == 1


def test_a_word_of_a_language_without_a_stemmer_stays_as_it_is() -> None:
    assert stem("walking", "zh") == "walking"
    assert stem("a" * 5_000) == "a" * 5_000
