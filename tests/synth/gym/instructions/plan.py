"""What constraints ask for together, in the terms of the writer of tests."""

from dataclasses import dataclass, field

from synth.gym.instructions import (
    data_forms,
    lengths,
    letters,
    markdown,
    nested,
    punctuation,
    shape,
    values,
    words,
)
from synth.gym.instructions.constraint import Constraint

NOT_WRITTEN = frozenset({"written_in", "in_script"})

_POOL = """the sea road hill sun tree dog cat old red ran sat saw had was on in at to by and but so
then time day we he she it they rain wind snow lane barn boat pond lamp door bell hat mud ice oak
ash elm hen pig cow ant bee note song tale turn line mile"""
POOL = _POOL.split()
"""No word of the vocabulary, none of more than four letters."""

WITH_LETTER = {
    **{"b": "bat", "f": "fan", "k": "kit", "p": "pan", "v": "van", "w": "wet", "x": "box"},
    "z": "zoo",
}
_OPENERS = """We He She It They Then But Now So Here Our My All In On At By To Old Red Each No One
Two Ten Sun Rain Snow Cats Dogs Hens Ants Bees Oaks Men"""
OPENERS = _OPENERS.split()
INITIALS = {
    **{"a": "All", "b": "But", "c": "Cats", "d": "Days", "e": "Each", "f": "Fans", "g": "Go"},
    **{"h": "He", "i": "In", "j": "Jam", "k": "Kits", "l": "Let", "m": "Men", "n": "No"},
    **{"o": "Our", "p": "Pans", "q": "Quit", "r": "Red", "s": "So", "t": "Then", "u": "Up"},
    **{"v": "Vans", "w": "We", "x": "Xis", "y": "You", "z": "Zoos"},
}
EMOJI = ("\U0001f389", "\U0001f680", "\u2615", "\U0001f98a", "\U0001f33b")
DATES = {
    "iso": ("2027-05-01", "2027-05-02", "2027-05-03"),
    "dotted": ("01.05.2027", "02.05.2027", "03.05.2027"),
    "written": ("1 May 2027", "2 May 2027", "3 May 2027"),
}


@dataclass
class Plan:
    """What all constraints ask for, in the terms of the writer."""

    pieces: list[str] = field(default_factory=list[str])
    """What must stand somewhere, in this order; each is one word or some that stay together."""
    passage: str = ""
    acrostic: str = ""
    no_letters: set[str] = field(default_factory=set[str])
    case: str = ""
    first: str = ""
    last: str = ""
    end: str = "."
    words: tuple[int, int] = (0, 10**6)
    sentences: tuple[int, int] = (1, 10**6)
    a_sentence: int = 10**6
    """Words of a sentence at most."""
    paragraphs: int = 0
    least_paragraphs: int = 1
    a_paragraph: int = 0
    """Sentences of each paragraph."""
    lines: int = 0
    marks: dict[str, int] = field(default_factory=dict[str, int])
    frame: str = ""
    """A quotation mark that stands around the whole."""
    openings: str = ""
    """`alphabet`, or a word with which every paragraph begins."""
    paragraph_opening: tuple[int, str] = (0, "")
    paragraph_rule: tuple[int, Constraint] | None = None
    """Paragraph from 1, or 0 for every one."""
    same_end: bool = False
    data: Constraint | None = None
    shape: Constraint | None = None
    prefix: str = ""
    blocks: list[Constraint] = field(default_factory=list[Constraint])


def ask(plan: Plan, one: Constraint) -> None:
    match one:
        case lengths.WordsAtLeast():
            plan.words = (max(plan.words[0], one.least), plan.words[1])
        case lengths.WordsAtMost():
            plan.words = (plan.words[0], min(plan.words[1], one.most))
        case lengths.WordsBetween():
            plan.words = (one.least, one.most)
        case lengths.WordsExactly():
            plan.words = (one.number, one.number)
        case lengths.SentencesExactly():
            plan.sentences = (max(one.number, plan.sentences[0]), one.number)
        case lengths.SentencesBetween():
            plan.sentences = (max(one.least, plan.sentences[0]), one.most)
        case lengths.SentenceLength():
            plan.a_sentence = one.most
        case lengths.ParagraphsExactly():
            plan.paragraphs = one.number
        case lengths.ParagraphSentences():
            plan.a_paragraph = one.number
        case lengths.LinesExactly():
            plan.lines = one.number
            plan.words = (max(plan.words[0], 3 * one.number), plan.words[1])
        case words.WordsRequired():
            plan.pieces += one.required
        case words.WordCount():
            plan.pieces += [one.word] * one.number
        case words.WordAtLeast():
            plan.pieces += [one.word] * one.least
        case words.FirstWord():
            plan.first = one.word
        case words.LastWords():
            plan.last = one.phrase
        case words.WordsInOrder():
            plan.pieces += one.ordered
        case words.DistinctOpenings():
            plan.sentences = (max(2, plan.sentences[0]), plan.sentences[1])
        case words.ParagraphOpening():
            plan.paragraph_opening = (one.paragraph, one.word)
            plan.least_paragraphs = max(plan.least_paragraphs, one.paragraph)
        case letters.AllLowercase() | letters.AllUppercase() | letters.CapitalisedWords():
            plan.case = type(one).__name__
        case letters.CapitalWords():
            plan.pieces += [
                word.upper() for word in _some("sea red dog oak elm sun hen ash", plan, one.least)
            ]
        case letters.LetterForbidden():
            plan.no_letters.add(one.letter)
        case letters.LetterAtLeast():
            plan.pieces += [WITH_LETTER[one.letter]] * one.least
        case punctuation.MarkExactly():
            plan.marks[one.mark] = one.number
        case punctuation.EndsWithMark():
            plan.end = one.mark
        case punctuation.QuotedWhole():
            plan.frame = '"'
        case punctuation.QuotationsExactly():
            plan.pieces += [f'"{word}"' for word in _some("sea red oak dog", plan, one.number)]
        case punctuation.EmojiExactly():
            plan.pieces += EMOJI[: one.number]
        case markdown.BoldAtLeast():
            plan.pieces += [f"**{word}**" for word in _some("sea red oak elm sun", plan, one.least)]
        case values.DatesWritten():
            plan.pieces += DATES[one.form][: one.least]
        case values.ClockTimes():
            plan.pieces += ("07:05", "12:30", "23:59")[: one.least]
        case values.NumbersAtLeast() | values.NumbersRising():
            plan.pieces += [str(number) for number in range(3, 3 + one.least)]
        case values.Amounts():
            plan.pieces += [f"{one.sign}{number}.50" for number in range(1, 1 + one.least)]
        case values.Placeholders():
            plan.pieces += [f"[{word}]" for word in _some("name date note", plan, one.least)]
        case shape.AlphabeticalSentences():
            plan.openings = "alphabet"
            plan.sentences = (one.least, 26)
        case shape.CopiedPassage():
            plan.passage = one.passage
        case shape.NoSentenceTwice():
            plan.sentences = (max(one.least, plan.sentences[0]), plan.sentences[1])
        case shape.Framed():
            plan.same_end = True
            plan.sentences = (max(3, plan.sentences[0]), plan.sentences[1])
        case shape.LinePrefix():
            plan.prefix = one.prefix + " "
        case shape.Acrostic():
            plan.acrostic = one.word
        case shape.LineWords() | shape.LinesGrow():
            plan.shape = one
        case nested.IfWordThen() | nested.IfLongThen() | nested.IfQuestionThen():
            ask(plan, one.then)
        case nested.EitherOr():
            ask(plan, one.one)
        case nested.NthParagraph():
            plan.paragraph_rule = (one.paragraph, one.rule)
            plan.least_paragraphs = max(plan.least_paragraphs, one.paragraph)
        case nested.EveryParagraph():
            plan.paragraph_rule = (0, one.rule)
            plan.least_paragraphs = max(plan.least_paragraphs, one.least)
        case _ if type(one) in data_forms.KINDS:
            plan.data = one
        case _ if type(one) in (*markdown.KINDS, *shape.KINDS) and not isinstance(
            one, markdown.PlainText
        ):
            if not isinstance(one, shape.Framed):
                plan.blocks.append(one)
        case _:
            pass  # what short words meet by themselves


def _some(listed: str, plan: Plan, number: int) -> list[str]:
    return [word for word in listed.split() if not plan.no_letters & set(word)][:number]
