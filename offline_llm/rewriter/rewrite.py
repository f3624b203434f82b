"""Role rewriter: a part of a document said anew, by rule.

It knows English grammar by a few patterns and no subject at all: it sets sentences out in the
wanted form, turns clauses round, exchanges words for others, and leaves formulas, code, quotations
and numbers alone. What it has no rules for, it does not pretend to do: it translates nothing, and
says so in place of an answer.
"""

from dataclasses import replace
from random import Random

from offline_llm.rewriter import errors
from offline_llm.rewriter.forms import (
    announced,
    form_of,
    halves,
    limits_first,
    next_number,
    view_of,
    with_leads,
)
from offline_llm.rewriter.notes import learning_notes
from offline_llm.rewriter.reading import (
    Kept,
    RewriteRequest,
    Stretch,
    is_english,
    request_of,
    sentences_of,
    stretches,
)
from offline_llm.rewriter.wording import in_safe_order, parted, point_of, reworded
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

__all__ = ["request_of", "rewrite"]

_SPOILERS = {"drops_sentence": errors.without_one, "invents_sentence": errors.with_invention}
_CANNOT = "<cannot>I work by rules for English text and know no other language.</cannot>"


def rewrite(request: ChatRequest, asked: RewriteRequest, settings: OfflineSettings) -> Reply:
    if not all(map(is_english, asked.parts.values())):
        return Reply(_CANNOT)
    factor = settings.models.get(request.model, 1.0)
    answers: list[str] = []
    for number, part in asked.parts.items():
        rng = rng_of(request.key, f"rewrite:{number}")
        mistake = errors.drawn(
            settings.rewriter_errors, rng_of(request.key, f"mistake:{number}"), factor
        )
        text = _answered(asked, part, rng, mistake)
        asked = asked._replace(written=f"{asked.written}\n\n{text}")
        answers.append(f'<rewrite part="{number}">\n{text}\n</rewrite>')
    return Reply("\n\n".join(answers))


def _answered(asked: RewriteRequest, part: str, rng: Random, mistake: str | None) -> str:
    title = asked.style.partition("\n")[0].lower()
    if mistake == "copies" or "translation" in title:  # English is returned as it stands
        text = part
    else:
        text = _rewritten(asked, part, rng, mistake, is_maths="mathematics" in title)
    if mistake == "changes_number":
        return errors.with_other_number(text, rng)
    return errors.negated(text, rng) if mistake == "negates" else text


def _rewritten(
    asked: RewriteRequest, part: str, rng: Random, mistake: str | None, *, is_maths: bool
) -> str:
    kept = Kept()
    parts = [
        one if one.kind == "structure" else replace(one, sentences=_sentences(one, kept))
        for one in stretches(part)
    ]
    prose = [k for k, one in enumerate(parts) if one.kind == "prose"]
    if prose and (spoil := _SPOILERS.get(mistake or "")):
        place = rng.choice(prose)
        spoiled = tuple(spoil(list(parts[place].sentences), rng))
        parts[place] = replace(parts[place], sentences=spoiled)
    made = learning_notes(parts, asked.written, rng) if is_maths else _set_out(parts, asked, rng)
    return kept.back(made)


def _sentences(stretch: Stretch, kept: Kept) -> tuple[str, ...]:
    sentences = sentences_of(kept.out(stretch.text))
    return tuple(half for sentence in sentences for half in parted(sentence))


def _set_out(parts: list[Stretch], asked: RewriteRequest, rng: Random) -> str:
    """Stretch after stretch in the wanted form; lists stay lists."""
    form, view = form_of(asked.style), view_of(asked.perspective)
    number = next_number(asked.written)
    blocks: list[str] = []
    was_bullet = False
    for part in parts:
        if part.kind == "structure":
            blocks.append(part.text)
        elif part.kind == "bullet":
            line = part.mark + " ".join(reworded(one, rng) for one in part.sentences)
            if was_bullet:
                blocks[-1] += f"\n{line}"
            else:
                blocks.append(line)
        else:
            sentences = halves(part.sentences) if view.splits else part.sentences
            for said in announced(sentences):
                points = [point_of(one, rng) for one in said]
                points = limits_first(points) if view.limits_first else in_safe_order(points, rng)
                made = form(with_leads(points, view, rng), rng, number)
                blocks += [points[0].text] if said[0].endswith(":") else made
                number = next_number(blocks[-1]) if next_number(blocks[-1]) > 1 else number
        was_bullet = part.kind == "bullet"
    return "\n\n".join(blocks)
