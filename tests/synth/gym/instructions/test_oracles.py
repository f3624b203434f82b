"""What is read of an answer against what was written, against markdown-it, and against plain
definitions: none of these shares code with the reading."""

import json
import random
import re
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.data_forms import JsonMapping
from synth.gym.instructions.lengths import WordsBetween
from synth.gym.instructions.letters import (
    AllLowercase,
    AllUppercase,
    AsciiOnly,
    CapitalisedWords,
    CapitalWords,
    LetterAtLeast,
    LetterForbidden,
)
from synth.gym.instructions.punctuation import MarkExactly, MarkForbidden, NoDigits
from synth.gym.instructions.shape import LinesGrow, LineWords
from synth.gym.instructions.values import DatesWritten
from synth.gym.instructions.words import (
    DistinctOpenings,
    FirstWord,
    NoWordTwice,
    WordCount,
    WordLength,
    WordsForbidden,
    WordsInOrder,
    WordsRequired,
)

WORDS = ("river", "stone", "old", "Bridge", "sees", "walks", "quietly", "NASA", "up", "dog's", "42")


class Prose(NamedTuple):
    text: str
    paragraphs: list[list[list[str]]]
    """Words of sentences of paragraphs."""

    @property
    def sentences(self) -> list[list[str]]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph]

    @property
    def words(self) -> list[str]:
        return [word for sentence in self.sentences for word in sentence]


def prose(rng: random.Random) -> Prose:
    """Sentences that begin with a capital and end on a mark, with others between their words."""
    end = rng.choice(("\n", "\r\n"))
    paragraphs: list[list[list[str]]] = []
    texts: list[str] = []
    for _ in range(rng.randint(1, 4)):
        sentences: list[list[str]] = []
        said: list[str] = []
        for _ in range(rng.randint(1, 4)):
            words = [rng.choice(("We", "They", "All"))]
            words += [rng.choice(WORDS) for _ in range(rng.randint(1, 7))]
            sentences.append(words)
            written = [word + rng.choice(("", "", "", ",", ";", " -")) for word in words[:-1]]
            said.append(" ".join([*written, words[-1] + rng.choice((".", ".", "!", "?"))]))
        paragraphs.append(sentences)
        texts.append(rng.choice((" ", end)).join(said))
    return Prose((end + end).join(texts), paragraphs)


def some_prose(number: int = 150) -> list[Prose]:
    return [prose(random.Random(seed)) for seed in range(number)]


def test_units_are_those_that_were_written() -> None:
    for written in some_prose():
        answer = AnswerText(written.text)
        assert answer.words == written.words
        assert len(answer.sentences) == len(written.sentences)
        assert len(answer.paragraphs) == len(written.paragraphs)
        assert len(answer.raw_lines) == len([x for x in written.text.splitlines() if x.strip()])


def test_words_are_looked_up_as_their_definition_says() -> None:
    rng = random.Random(1)
    for written in some_prose():
        answer, text = AnswerText(written.text), written.text
        some = tuple(rng.sample(["river", "stone", "old", "bridge", "nasa", "hill"], 2))
        found = {word: len(re.findall(rf"\b{word}\b", text, re.IGNORECASE)) for word in some}
        assert WordsRequired(required=some).met(answer) == all(found.values())
        assert WordsForbidden(forbidden=some).met(answer) == (not any(found.values()))
        for number in (0, 1, 2, 3):
            assert WordCount(word=some[0], number=number).met(answer) == (found[some[0]] == number)
        assert WordsInOrder(ordered=some).met(answer) == (
            all(found.values()) and text.lower().index(some[0]) < text.lower().index(some[1])
        )
        lower = [part for word in written.words for part in word.lower().split("'")]
        assert WordLength(most=6).met(answer) == (max(map(len, lower)) <= 6)
        longer = [word for word in lower if len(word) > 4]
        assert NoWordTwice(letters=4).met(answer) == (len(longer) == len(set(longer)))
        firsts = [sentence[0] for sentence in written.sentences]
        assert FirstWord(word="We").met(answer) == (firsts[0] == "We")
        assert DistinctOpenings().met(answer) == (1 < len(firsts) == len(set(firsts)))


def test_letters_and_marks_are_counted_as_their_definition_says() -> None:
    for number, written in enumerate(some_prose()):
        text = (written.text, written.text.lower(), written.text.upper(), written.text.title())
        for one in text:
            answer = AnswerText(one)
            assert AllLowercase().met(answer) == (one == one.lower())
            assert AllUppercase().met(answer) == (one == one.upper())
            words = [word for word in one.split() if word != "-"]
            starts = all(word[0] == word[0].upper() for word in words)
            assert CapitalisedWords().met(answer) == starts
            capital = [w for w in words if w == w.upper() and sum(map(str.isalpha, w)) > 1]
            assert CapitalWords(least=2).met(answer) == (len(capital) >= 2)
            assert LetterForbidden(letter="v").met(answer) == ("v" not in one.lower())
            count = one.lower().count("s")
            assert LetterAtLeast(letter="s", least=5).met(answer) == (count >= 5)
            assert NoDigits().met(answer) == ("4" not in one)
            assert AsciiOnly().met(answer)
            for mark in ",;!?":
                assert MarkForbidden(mark=mark).met(answer) == (mark not in one)
                wanted = number % 5
                is_met = MarkExactly(mark=mark, number=wanted).met(answer)
                assert is_met == (one.count(mark) == wanted)


def test_lengths_hold_between_their_bounds_alone() -> None:
    for written in some_prose(40):
        number = len(written.words)
        answer = AnswerText(written.text)
        for least in range(number - 2, number + 3):
            for most in range(least, number + 3):
                is_met = WordsBetween(least=least, most=most).met(answer)
                assert is_met == (least <= number <= most)


def test_lines_are_measured_in_words() -> None:
    rng = random.Random(4)
    for _ in range(200):
        counts = [rng.randint(1, 5) for _ in range(rng.randint(1, 4))]
        answer = AnswerText("\n".join(" ".join(["sea"] * count) for count in counts))
        assert LineWords(counts=tuple(counts)).met(answer)
        assert not LineWords(counts=(*counts, 1)).met(answer)
        rising = all(one < other for one, other in pairwise(counts))
        assert LinesGrow(least=2).met(answer) == (len(counts) >= 2 and rising)


# Markdown


def markdown_text(rng: random.Random) -> str:
    """Blocks with blank lines between them, so that no reading of lazy lines matters."""
    makers = {
        "heading": lambda: f"{'#' * rng.randint(1, 6)} Old **stone** bridge",
        "underlined": lambda: f"Old bridge\n{rng.choice('=-') * rng.randint(3, 9)}",
        "no heading": lambda: "#Old bridge",
        "bullets": lambda: "\n".join(
            f"{rng.choice('*')} item {n}" for n in range(rng.randint(1, 4))
        ),
        "nested": lambda: "- one\n  - two\n  - three\n- four",
        "numbered": lambda: "\n".join(f"{n}. item" for n in range(1, rng.randint(2, 5))),
        "table": lambda: "| Name | Price |\n|:--|---|\n" + "| a | 1 |\n" * rng.randint(1, 3),
        "no table": lambda: "| Name | Price |\n| a | 1 |",
        "code": lambda: f"```{rng.choice(('python', ''))}\n# no heading\n- no item\n```",
        "open code": lambda: "~~~\n```\n- no item\n~~~",
        "quote": lambda: "> The river sees.",
        "rule": lambda: rng.choice(("***", "---", "* * *", "___")),
        "text": lambda: "The river **sees** an old ** stone ** and **walks**.",
        "stars": lambda: "3 * 4 = 12 and 2 ** 3 = 8",
    }
    names = rng.sample(sorted(makers), rng.randint(1, 6))
    return "\n\n".join(makers[name]().rstrip("\n") for name in names)


def test_markdown_is_read_as_by_markdown_it() -> None:
    parser = MarkdownIt("commonmark").enable("table")
    for seed in range(400):
        text = markdown_text(random.Random(seed))
        tokens = parser.parse(text)
        answer = AnswerText(text.replace("\n", "\r\n") if seed % 2 else text)
        assert len(answer.of_kind("heading")) == _number(tokens, "heading_open"), text
        assert len(answer.of_kind("bullet")) == _items(tokens, "bullet"), text
        assert len(answer.of_kind("numbered")) == _items(tokens, "ordered"), text
        assert bool(answer.of_kind("quote")) == bool(_number(tokens, "blockquote_open")), text
        fences = [token.info for token in tokens if token.type == "fence"]
        assert [line.mark for line in answer.of_kind("fence")][::2] == fences, text
        assert len(answer.tables) == _number(tokens, "table_open"), text
        cells = sum(len(table.header) + sum(map(len, table.rows)) for table in answer.tables)
        assert cells == _number(tokens, "th_open") + _number(tokens, "td_open"), text
        inner = [child for token in tokens for child in token.children or []]
        assert len(answer.bold) == _number(inner, "strong_open"), text


def _number(tokens: Iterable[Token], kind: str) -> int:
    return sum(token.type == kind for token in tokens)


def _items(tokens: Iterable[Token], kind: str) -> int:
    """Items of the lists of a kind; those of a list within another are its own."""
    lists: list[str] = []
    count = 0
    for token in tokens:
        if token.type.endswith("_list_open"):
            lists.append(token.type.removesuffix("_list_open"))
        elif token.type.endswith("_list_close"):
            lists.pop()
        count += token.type == "list_item_open" and lists[-1] == kind
    return count


# Data and values


def test_json_is_what_json_reads() -> None:
    rng = random.Random(5)
    whole = json.dumps({"title": 'An "old" bridge', "price": [1, {"a": None}]}, indent=1)
    constraint = JsonMapping(keys=("title", "price"))
    assert constraint.met(AnswerText(whole))
    for _ in range(600):
        at = rng.randrange(len(whole))
        text = whole[:at] + rng.choice(("", "x", '"', "}", " ", ",")) + whole[at + 1 :]
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        expected = (
            isinstance(value, dict)
            and sorted(value) == ["price", "title"]
            and str(value["title"]).strip(' "\n,}') != ""
        )
        assert constraint.met(AnswerText(text)) == expected, text


def test_dates_exist_as_the_calendar_says() -> None:
    rng = random.Random(6)
    forms = {"iso": "%Y-%m-%d", "dotted": "%d.%m.%Y"}
    for _ in range(600):
        year, month, day = rng.randint(1999, 2030), rng.randint(0, 13), rng.randint(0, 32)
        written = {
            "iso": f"{year}-{month:02}-{day:02}",
            "dotted": f"{day:02}.{month:02}.{year}",
        }
        for form, pattern in forms.items():
            try:
                datetime.strptime(written[form], pattern)
                exists = True
            except ValueError:
                exists = False
            constraint = DatesWritten.model_validate({"form": form, "least": 1})
            assert constraint.met(AnswerText(f"It was on {written[form]}.")) == exists
            other = written["dotted" if form == "iso" else "iso"]
            assert not constraint.met(AnswerText(f"{written[form]}, {other}"))
