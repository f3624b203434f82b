"""A small writer that meets constraints by construction: it shows that what is drawn together can
be met together. It knows all kinds but languages and scripts, and writes nonsense of short words.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from itertools import count, cycle

import yaml

from synth.gym.instructions import data_forms, lengths, markdown, punctuation, shape, words
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint
from synth.gym.instructions.letters import LetterForbidden
from tests.synth.gym.instructions.plan import INITIALS, OPENERS, POOL, Plan, ask


def written(constraints: Sequence[Constraint]) -> str:
    """An answer that should meet them all."""
    plan = Plan()
    for constraint in sorted(constraints, key=lambda one: not isinstance(one, LetterForbidden)):
        ask(plan, constraint)
    if plan.passage:  # not followed by what could begin a sentence, nor at the end of one
        plan.pieces += [plan.passage, "the"]
    if plan.data is not None:
        return _cased(_data(plan, plan.data), plan.case)
    demands = [constraint.demand() for constraint in constraints]
    is_free = any("flowing" in demand.bars for demand in demands)
    text = _free(plan) if is_free else _flowing(plan)
    return plan.frame + _cased(text, plan.case) + plan.frame


def _filler(plan: Plan) -> Iterable[str]:
    allowed = [word for word in POOL if not plan.no_letters & set(word)]
    return cycle(allowed)


def _size(piece: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in piece.split())


def _with_marks(tokens: list[str], marks: dict[str, int]) -> list[str]:
    """Each mark behind so many of the words that may carry it, the last one apart."""
    free = [
        at
        for at, token in enumerate(tokens[:-1])
        if token.isalpha() and token.isascii() and len(token) < 5
    ]
    for mark, number in marks.items():
        for _ in range(number):
            tokens[free.pop()] += mark
    return tokens


# Prose in sentences and paragraphs


def _flowing(plan: Plan) -> str:
    counts = _sentence_counts(plan)
    filler = iter(_filler(plan))
    total = sum(counts)
    first_of = [sum(counts[:number]) for number in range(len(counts))]
    sentences = [[opener] for opener in _openers(plan, counts)]
    own: list[list[str]] = [[] for _ in counts]
    if plan.paragraph_rule is not None:
        number, rule = plan.paragraph_rule
        for at in range(len(counts)) if number == 0 else [number - 1]:
            inner = Plan()
            ask(inner, rule)
            own[at] = inner.pieces
    for at, pieces in enumerate(own):
        sentences[first_of[at]] += pieces
    ends = ["."] * total
    last = plan.last.split()
    middle = range(1, total - 1) if plan.same_end else range(total)
    room = [
        plan.a_sentence - _size(" ".join(sentences[at])) - (len(last) if at == total - 1 else 0)
        for at in range(total)
    ]
    if last and room[-1] < 0:
        sentences[-1], room[-1] = [], plan.a_sentence - len(last)
    at = middle[0]
    for piece in plan.pieces:
        while room[at] < _size(piece) and at < middle[-1]:
            at += 1
        sentences[at].append(piece)
        room[at] -= _size(piece)
    if _words_of(sentences) + len(last) > plan.words[1] and total == 1 and not plan.first:
        sentences[0].pop(0)
    _mark_sentences(plan, sentences, ends, counts, first_of)
    for at in range(total):
        least = 3 if at < total - 1 or not last else 0
        while _size(" ".join(sentences[at])) < min(least, plan.a_sentence):
            sentences[at].append(next(filler))
    grown = [at for at in middle if sentences[at] or not last] or list(middle)
    while _words_of(sentences) + len(last) < plan.words[0]:
        at = min(grown, key=lambda at: _size(" ".join(sentences[at])))
        sentences[at].append(next(filler))
    sentences[-1] += last
    if plan.same_end:
        sentences[-1] = list(sentences[0])
    ends[-1] = plan.end if plan.end != "." else ends[-1]
    if plan.same_end:
        ends[-1] = ends[0]
    said = [_sentence(tokens, end) for tokens, end in zip(sentences, ends, strict=True)]
    paragraphs = [said[start : start + n] for start, n in zip(first_of, counts, strict=True)]
    return _broken(["\n".join(own) for own in paragraphs], plan.lines)


def _words_of(sentences: Sequence[Sequence[str]]) -> int:
    return sum(_size(" ".join(tokens)) for tokens in sentences)


def _sentence(tokens: Sequence[str], end: str) -> str:
    text = " ".join(tokens)
    text = text[0].upper() + text[1:]
    return text if text.endswith(".") and end == "." else text.removesuffix(".") + end


def _broken(paragraphs: Sequence[str], lines: int) -> str:
    """Paragraphs with so many lines in all; a sentence a line at first."""
    if lines == 0:
        return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    parts = [paragraph.split("\n") for paragraph in paragraphs]
    while sum(map(len, parts)) > lines:
        longest = max(parts, key=len)
        longest[-2:] = [" ".join(longest[-2:])]
    while sum(map(len, parts)) < lines:
        part, at = max(
            ((part, at) for part in parts for at in range(len(part))),
            key=lambda where: where[0][where[1]].count(" "),
        )
        tokens = part[at].split(" ")
        half = len(tokens) // 2
        part[at : at + 1] = [" ".join(tokens[:half]), " ".join(tokens[half:])]
    return "\n\n".join("\n".join(part) for part in parts)


def _sentence_counts(plan: Plan) -> list[int]:
    """Sentences of each paragraph."""
    marked = sum(plan.marks.get(mark, 0) for mark in "!?")
    least = max(plan.sentences[0], marked + bool(plan.last or plan.end != ".") + 2 * plan.same_end)
    room = max(1, min(plan.a_sentence, 30) - 3)  # of pieces in a sentence: some stay together
    used = (_size(" ".join(plan.pieces)) + _size(plan.last)) * 2 + plan.words[0]
    wanted = max(least, min(-(-used // room) + 2 * plan.same_end, plan.sentences[1]))
    number = plan.paragraphs or plan.least_paragraphs
    if plan.a_paragraph:
        while not plan.paragraphs and number * plan.a_paragraph < wanted:
            number += 1
        return [plan.a_paragraph] * number
    counts = [1] * number
    rule = plan.paragraph_rule
    if rule is not None and isinstance(rule[1], lengths.SentencesExactly):
        counts[rule[0] - 1] = rule[1].number
        counts[0 if rule[0] != 1 else -1] += max(0, wanted - sum(counts))
        return counts
    if rule is not None and isinstance(rule[1], punctuation.MarkExactly):
        counts = [rule[1].number + 1] * number
        counts[0] += marked
    counts[-1 if plan.same_end else 0] += max(0, wanted - sum(counts))
    return counts


def _openers(plan: Plan, counts: Sequence[int]) -> list[str]:
    total = sum(counts)
    if plan.openings == "alphabet":
        return [INITIALS[letter] for letter in "abcdefghijklmnopqrstuvwxyz"[:total]]
    allowed = [word for word in OPENERS if not plan.no_letters & set(word.lower())]
    found = [word for word, _ in zip(cycle(allowed), range(total), strict=False)]
    if plan.first:
        found[0] = plan.first
    number, word = plan.paragraph_opening
    if number:
        found[sum(counts[: number - 1])] = word
        if plan.same_end and number == len(counts) and counts[-1] == 1:
            found[0] = word
    if plan.paragraph_rule is not None and isinstance(plan.paragraph_rule[1], words.FirstWord):
        for at in range(len(counts)):
            found[sum(counts[:at])] = plan.paragraph_rule[1].word
    return found


def _mark_sentences(
    plan: Plan,
    sentences: list[list[str]],
    ends: list[str],
    counts: Sequence[int],
    first_of: Sequence[int],
) -> None:
    """End marks behind sentences, commas and semicolons behind words."""
    marks = [(range(len(sentences)), plan.marks)]
    if plan.paragraph_rule is not None:
        rule = plan.paragraph_rule[1]
        if isinstance(rule, punctuation.MarkExactly):
            marks += [
                (range(start, start + n), {rule.mark: rule.number})
                for start, n in zip(first_of, counts, strict=True)
            ]
    for places, wanted in marks:
        for mark, number in wanted.items():
            if mark in "!?":
                free = [at for at in places if ends[at] == "." and not _keeps_end(plan, at, ends)]
                free = [at for at in free if not plan.same_end or at > 0]
                for at in free[:number]:
                    ends[at] = mark
            else:
                pool = [word for word in POOL if not plan.no_letters & set(word)]
                carriers = [f"{word}{mark}" for word in pool[:number]]
                own = sentences[places[1 if plan.same_end else 0]]
                own[1:1] = [*carriers, pool[number]]


def _keeps_end(plan: Plan, at: int, ends: Sequence[str]) -> bool:
    return at == len(ends) - 1 and (plan.end != "." or plan.same_end)


# Lines, lists and blocks


def _free(plan: Plan) -> str:
    filler = iter(_filler(plan))
    lines = [line for block in plan.blocks for line in _block(block, plan)]
    head = [line for line in lines if line.startswith("<<")]
    tail = [line for line in lines if line.startswith("P.S.")]
    blocks = [line for line in lines if line not in (*head, *tail)]
    more = _further_parts(plan)
    fixed = len(AnswerText("\n".join((*lines, "", *more))).words) + len(plan.acrostic)
    stream = [plan.first] if plan.first else []
    together = [piece for piece in plan.pieces if " " in piece]
    stream += [piece for piece in plan.pieces if " " not in piece]
    stream += [next(filler) for _ in range(sum(plan.marks.values()) + 1 if plan.marks else 0)]
    closing = plan.last.split() or (["so", "it"] if plan.end != "." else [])
    if more and closing:  # at the end of the last part
        more[-1] += " " + " ".join(closing) + plan.end
        fixed, closing = fixed + len(closing), []
    there = _size(" ".join((*stream, *together, *closing)))
    least, most = plan.words[0] - fixed, plan.words[1] - fixed
    others = sum(bool(line) for line in (*head, *more, *tail))
    sizes = _line_sizes(plan, there, others, least, most)
    missing = max(least, sum(sizes) - len(plan.acrostic)) - there
    if sizes:  # what stays together fills no line before the last, unless it fits
        fits = [piece for piece in together if _size(piece) <= max(sizes[:-1], default=0)]
        early = sum(sizes[:-1]) - max(0, len(plan.acrostic) - 1)
        loose = [*stream, *fits, *([] if plan.acrostic else closing)]
        missing = max(missing, early - _size(" ".join(loose)))
    if not any(map(str.isalnum, "".join((*stream, *together, *blocks)))) and (more or not closing):
        missing = max(missing, 3)
    stream += [next(filler) for _ in range(missing)]
    stream = _with_marks(stream, plan.marks) if plan.marks else stream
    if closing:
        closing[-1] += plan.end
    if sizes:
        body = _in_lines(plan, stream, together, closing, sizes)
        return "\n".join((*head, *body, *more, *tail))
    stream += together
    body = [" ".join(stream)] if stream else []
    out = [*head, *body, "", *blocks, *more, "", *([" ".join(closing)] if closing else []), *tail]
    return "\n".join(plan.prefix + line if line else line for line in out)


def _line_sizes(plan: Plan, there: int, others: int, least: int, most: int) -> list[int]:
    """Words of each line of the body, initials included, where lines count; the last may grow."""
    match plan.shape:
        case shape.LineWords() as one:
            return list(one.counts)
        case shape.LinesGrow() as one:
            sizes = list(range(1, max(one.least, plan.lines - others, len(plan.acrostic)) + 1))
        case _ if plan.acrostic:
            sizes = [2] * len(plan.acrostic)
        case _ if plan.lines:
            sizes = [1] * (plan.lines - others)
        case _:
            return []
    wanted = max(there, least, min(most, 2 * len(sizes)))
    sizes[-1] += max(0, wanted + len(plan.acrostic) - sum(sizes))
    return sizes


def _in_lines(
    plan: Plan,
    stream: Sequence[str],
    together: Sequence[str],
    closing: Sequence[str],
    sizes: Sequence[int],
) -> list[str]:
    lines: list[str] = []
    left, whole, end = list(stream), list(together), [] if plan.acrostic else list(closing)
    for number, size in enumerate(sizes):
        line = [INITIALS[plan.acrostic[number]]] if plan.acrostic else []
        is_last = number == len(sizes) - 1
        if plan.first and number == 0:
            line.append(left.pop(0))
        for piece in list(whole):
            if is_last or _size(" ".join((*line, piece))) <= size:
                line.append(piece)
                whole.remove(piece)
        while left or (end and not whole):
            queue = left or end
            if not is_last and _size(" ".join(line)) >= size and _size(queue[0]):
                break
            line.append(queue.pop(0))
        lines.append(plan.prefix + " ".join(line))
    if plan.acrostic and closing:
        lines[-1] += " " + " ".join(closing)
    return lines


def _further_parts(plan: Plan) -> list[str]:
    """Dividers and the second version, each with what follows it."""
    lines: list[str] = []
    for block in plan.blocks:
        if isinstance(block, markdown.Divided):
            lines += [line for at in range(block.parts - 1) for line in ("***", POOL[at])]
        elif isinstance(block, shape.TwoVersions):
            lines += ["======", "red sea"]
    return lines


def _block(one: Constraint, plan: Plan) -> list[str]:
    pool = [word for word in POOL if not plan.no_letters & set(word)]
    numbered = count()
    match one:
        case markdown.HeadingsExactly():
            return [line for _ in range(one.number) for line in ("", f"# {pool[0]}", "", pool[1])]
        case markdown.SectionHeadings():
            return [line for title in one.titles for line in ("", f"# {title}", "", pool[1])]
        case markdown.BulletsExactly():
            return ["", *(f"- {pool[next(numbered)]}" for _ in range(one.number)), ""]
        case markdown.NumberedExactly():
            return ["", *(f"{n}. {pool[n]}" for n in range(1, one.number + 1)), ""]
        case markdown.BulletsSorted():
            return ["", *(f"- {word}" for word in sorted(pool[: one.least])), ""]
        case markdown.ListedItems():
            return ["", *(f"- {item}" for item in one.items), ""]
        case markdown.TableShape():
            rows = [one.columns, ["---"] * len(one.columns)]
            cells = cycle(pool)
            rows += [[next(cells) for _ in one.columns] for _ in range(one.rows)]
            return ["", *(f"| {' | '.join(row)} |" for row in rows), ""]
        case markdown.CodeBlock():
            return ["", f"```{one.program}", pool[0], "```", ""]
        case markdown.QuoteBlock():
            return ["", f"> {pool[0]} {pool[1]}", ""]
        case shape.TitleLine():
            return [f"<<{pool[0]} {pool[1]}>>"]
        case shape.Postscript():
            return [f"P.S. {pool[0]} {pool[1]} {pool[2]}"]
        case _:
            return []


# Data


def _data(plan: Plan, one: Constraint) -> str:
    pool = [word for word in POOL if not plan.no_letters & set(word)]

    def texts(number: int) -> list[str]:
        found = [[pool[at]] for at in range(number)]
        for at, piece in enumerate(plan.pieces):
            found[at * number // len(plan.pieces)].append(piece)
        while sum(_size(" ".join(tokens)) for tokens in found) < plan.words[0]:
            found[-1].append(pool[len(found[-1]) % len(pool)])
        return [" ".join(tokens) for tokens in found]

    match one:
        case data_forms.JsonMapping():
            return _json(dict(zip(one.keys, texts(len(one.keys)), strict=True)))
        case data_forms.JsonList():
            return _json(texts(one.number))
        case data_forms.JsonRecords():
            left = iter(texts(one.number * len(one.keys)))
            return _json([{key: next(left) for key in one.keys} for _ in range(one.number)])
        case data_forms.YamlMapping():
            return yaml.safe_dump(
                dict(zip(one.keys, texts(len(one.keys)), strict=True)),
                allow_unicode=True,
                sort_keys=False,
            )
        case data_forms.CsvTable():
            out = io.StringIO()
            left = iter(texts(one.rows * len(one.columns)))
            csv.writer(out).writerow(one.columns)
            for _ in range(one.rows):
                csv.writer(out).writerow([next(left) for _ in one.columns])
            return out.getvalue()
        case data_forms.LabelledLines():
            pairs = zip(one.labels, texts(len(one.labels)), strict=True)
            return "\n".join(f"{label}: {text}" for label, text in pairs)
        case _:
            raise AssertionError(one)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cased(text: str, case: str) -> str:
    match case:
        case "AllLowercase":
            return text.lower()
        case "AllUppercase":
            return text.upper()
        case "CapitalisedWords":
            return re.sub(r"(?<![\w'])[^\W\d_]", lambda found: found[0].upper(), text)
        case _:
            return text
