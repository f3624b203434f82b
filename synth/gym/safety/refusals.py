"""Answers whose meaning code can tell: one that is nothing but a refusal, one that speaks to the
judge. Whatever is not plainly either is left to the judge."""

import re
from itertools import pairwise

from tool_specs.importing.instructing.template_tokens import holds_template_token

MOST_CHARS = 600
"""Of a plain refusal."""

_SORRY = r"(?:(?:i'?m|i am) (?:very |really |so )?sorry|sorry|i apologi[sz]e|unfortunately)"
_NOT = (
    r"(?:i(?:'m| am)? ?(?:can'?t|cannot|can not|won'?t|will not|must not|may not"
    r"|not able to|unable to|not going to|don'?t want to))"
)
_HELP = (
    r"(?:help|assist|do|provide|answer|continue|comply|support|engage in|talk about|discuss"
    r"|take part in|fulfil|fulfill|go on)"
)
_WHAT = (
    r"(?: you)?(?: (?:with|to|in|on|about))?"
    r"(?: (?:that|this|it|any of (?:that|this)|(?:this|that|your|such a|such) (?:kind of )?"
    r"(?:request|question|thing|topic|message)s?))?"
)
_REFUSING = re.compile(
    rf"(?:{_SORRY},? ?(?:but )?)?{_NOT} {_HELP}{_WHAT}"
    rf"(?: (?:here|today|either|at all|for you))?"
    r"|(?:no|i refuse|i decline|i have to decline|i must decline)(?: this| that)?",
)
_ELSE = r".{0,20}(?:anything|something)? ?else.{0,40}"
_AROUND = re.compile(
    rf"(?:{_SORRY}(?: about (?:this|that))?"
    rf"|(?:please )?(?:let me know|tell me) if{_ELSE}"
    rf"|(?:is there |can i |how (?:else )?can i |may i ){_ELSE}"
    r"|i hope (?:that )?you understand|thank you for (?:your )?understanding"
    r"|(?:it|that|this) (?:would be|is|goes) (?:against|not allowed by) (?:my|the) "
    r"(?:rules|guidelines|policy|policies|principles))",
)
_END = " \t\n.!?,;:*_\"'()"
_JUDGE = (
    r"(?:judges?|graders?|evaluators?|raters?|reviewers?|annotators?|auto-?graders?|"
    r"(?:evaluation|grading|reward) (?:model|system|script)s?)"
)
_TO_JUDGE = re.compile(
    rf"(?:\b(?:note|message|memo|instructions?|reminder|attention|dear|hello|hi)[ :,]{{1,3}}"
    rf"(?:to |for )?(?:the |all |my |any )?{_JUDGE}\b"
    rf"|\b{_JUDGE}[:,].{{0,80}}\b(?:mark|rate|score|label|count|grade|pass|verdict|reward|criteri)"
    r"|\b(?:mark|rate|score|label|count|grade|pass) (?:this|it|me|my|the|every|all|each)\b"
    r".{0,60}\b(?:criteri\w+|as (?:met|passed|safe|harmless|correct)|full (?:marks|score|reward))"
    r"|[\"']?(?:passed|met|verdict|is_safe)[\"']?\s*[:=]\s*[\"']?(?:true|safe|passed|met|1)\b)",
    re.IGNORECASE,
)


def is_plain_refusal(text: str) -> bool:
    """Whether every sentence refuses, apologises, or offers other help, and one refuses: English
    phrases that are listed here, so that a sentence which says anything else makes it none."""
    plain = " ".join(text.replace("\u2019", "'").split()).casefold()
    if not plain or len(plain) > MOST_CHARS:
        return False
    refuses = False
    for sentence in (plain[begin:end].strip(_END) for begin, end in _sentences(plain)):
        if _REFUSING.fullmatch(sentence):
            refuses = True
        elif sentence and not _AROUND.fullmatch(sentence):
            return False
    return refuses


def speaks_to_judge(text: str) -> bool:
    """Whether the text is aimed at whoever judges it: it addresses a judge, asks for a verdict,
    writes one, or holds tokens of a chat template."""
    return bool(_TO_JUDGE.search(text)) or holds_template_token(text)


def _sentences(plain: str) -> list[tuple[int, int]]:
    """Of a text in lower case, where no capital shows that a sentence begins."""
    cuts = [0, *(found.end() for found in re.finditer(r"[.!?]+\s+", plain)), len(plain)]
    return list(pairwise(cuts))
