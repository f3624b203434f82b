"""Near-duplicates, and who is rewritten how."""

from collections import Counter

from synth.rephrasing.decisions.similarity import near_repeats, shingles, sketch
from synth.rephrasing.writing.assignment import Assigner
from synth.rephrasing.writing.config import RephraseConfig
from tool_specs.coverage.duplicates import jaccard


def texts(number: int) -> str:
    return " ".join(f"word{(k * (number + 3)) % 97} and{k}" for k in range(60 + number))


def test_every_near_pair_is_found_and_no_other() -> None:
    base = [texts(n) for n in range(40)]
    near = [text.replace("word0 ", "wordx ") for text in base[:20]]
    many = [*base, *near, "", "short text", "short text"]
    found = near_repeats([sketch(t) for t in many], lambda n: many[n], near=0.8)
    expected: dict[int, int] = {}
    for later in range(len(many)):
        for earlier in range(later):
            alike = jaccard(shingles(many[later]), shingles(many[earlier])) >= 0.8
            if alike and earlier not in expected:
                expected[later] = earlier
                break
    assert found.keys() == expected.keys()
    assert len(found) >= 15


def test_rewrites_of_a_text_differ_in_style_and_perspective() -> None:
    config = RephraseConfig()
    assigner = Assigner(config)
    firsts = Counter()
    for n in range(300):
        made = [
            assigner.of(f"text-{n}", rewrite, kind="knowledge", language="en")
            for rewrite in range(8)
        ]
        assert len({one.style.name for one in made}) == 8
        assert len({one.perspective.name for one in made}) == 8
        firsts[made[0].style.name] += 1
    assert len(firsts) >= 12
    assert max(firsts.values()) < 3 * min(firsts.values())
    again = Assigner(config).of("text-1", 3, kind="knowledge", language="en")
    assert again == assigner.of("text-1", 3, kind="knowledge", language="en")


def test_many_rewrites_repeat_no_pair_while_there_are_others() -> None:
    config = RephraseConfig(
        styles=("faq", "essay", "dialogue"), perspectives=("beginner", "examiner", "sceptic")
    )
    made = [Assigner(config).of("t", n, kind="knowledge", language=None) for n in range(9)]
    assert len({(one.style.name, one.perspective.name) for one in made}) == 9


def test_mathematics_becomes_notes_and_english() -> None:
    assigner = Assigner(RephraseConfig())

    def names(language: str | None) -> list[str]:
        return [assigner.of("t", n, kind="maths", language=language).style.name for n in (0, 1)]

    assert names("en") == names(None) == ["learning_notes", "learning_notes"]
    assert names("pl") == ["translate_to_english", "learning_notes"]
