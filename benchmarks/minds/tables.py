"""The figures of a playing as Markdown: honest work rejected, faulty work accepted, by whom."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from benchmarks.minds.playing import LOW_SCORE, NO_ANSWER, Played, deciding_words
from synth.render.intervals import wilson

WORDS_SHOWN = 160
"""Characters of what a rejection rests on."""


def report(played: Sequence[Played]) -> str:
    """All tables, shortfalls first."""
    decided = [p for p in played if p.by != NO_ANSWER]
    honest = [p for p in decided if p.piece.is_honest]
    faulty = [p for p in decided if not p.piece.is_honest]
    parts = [
        "| | pieces | share | 95% (Wilson) |\n|---|---|---|---|",
        _line("honest work rejected", sum(not p.accepted for p in honest), len(honest)),
        _line("faulty work accepted", sum(p.accepted for p in faulty), len(faulty)),
        _line("no answer, in neither share", len(played) - len(decided), len(played)),
        "",
        _by("kind of the fault", faulty, lambda p: p.piece.kind, accepted=True),
        _by("language", faulty, lambda p: p.piece.language, accepted=True),
        _by("style", faulty, lambda p: p.piece.ending["style"], accepted=True),
        _by("language", honest, lambda p: p.piece.language, accepted=False),
        _by("style", honest, lambda p: p.piece.ending["style"], accepted=False),
        _criteria(decided),
        _errors(played),
    ]
    return "\n".join(parts)


def open_shares(played: Sequence[Played]) -> str:
    """What code alone does: rejects, leaves open, passes whole."""
    lines = [
        "| by code alone | pieces | rejected | left open | passed whole |",
        "|---|---|---|---|---|",
    ]
    for what, chosen in (
        ("honest", [p for p in played if p.piece.is_honest]),
        ("faulty", [p for p in played if not p.piece.is_honest]),
    ):
        rejected = sum(not p.accepted for p in chosen)
        left = sum(p.accepted and p.left_open for p in chosen)
        whole = len(chosen) - rejected - left
        lines.append(f"| {what} | {len(chosen)} | {rejected} | {left} | {whole} |")
    return "\n".join(lines)


def _line(what: str, count: int, n: int) -> str:
    low, high = wilson(count, n)
    share = f"{count / n:.1%}" if n else "-"
    return f"| {what} | {count} of {n} | {share} | {low:.1%} to {high:.1%} |"


def _by(
    what: str, played: Iterable[Played], key: Callable[[Played], str], *, accepted: bool
) -> str:
    """Counts of the wrong decisions by a property of the pieces."""
    totals: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for one in played:
        totals[key(one)] += 1
        wrong[key(one)] += one.accepted is accepted
    sort = "faulty work accepted" if accepted else "honest work rejected"
    head = f"| {what} | {sort} | of | 95% |\n|---|---|---|---|\n"
    lines = []
    for name in sorted(totals, key=lambda name: (-wrong[name] / totals[name], name)):
        low, high = wilson(wrong[name], totals[name])
        lines.append(f"| {name} | {wrong[name]} | {totals[name]} | {low:.0%} to {high:.0%} |\n")
    return head + "".join(lines)


def _criteria(played: Sequence[Played]) -> str:
    """Which criterion rejected, decided by whom."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for one in played:
        if not one.accepted:
            name = one.failed["criterion_id"] if one.failed else LOW_SCORE
            counts[name.rstrip("_0123456789"), one.by, one.piece.is_honest] += 1
    rows = sorted({(name, by) for name, by, _ in counts})
    lines = ["| criterion | decided by | faulty rejected | honest rejected |", "|---|---|---|---|"]
    for name, by in rows:
        lines.append(f"| {name} | {by} | {counts[name, by, False]} | {counts[name, by, True]} |")
    return "\n".join(lines) + "\n"


def _errors(played: Sequence[Played]) -> str:
    """Every wrong decision and every piece without one, a line each."""
    lines = ["| piece | kind | decided | words |", "|---|---|---|---|"]
    for one in played:
        if one.by != NO_ANSWER and one.accepted == one.piece.is_honest:
            continue
        name = one.failed["criterion_id"] if one.failed else "-"
        words = deciding_words(one) if not one.accepted else str(one.piece.ending["where"])
        shown = " ".join(words.split())[:WORDS_SHOWN].replace("|", "/")
        lines.append(f"| {one.piece.name} | {one.piece.kind} | {one.by}: {name} | {shown} |")
    return "\n".join(lines) + "\n"
