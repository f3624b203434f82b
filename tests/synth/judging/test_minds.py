"""What the benchmark of other writers' endings counts."""

from benchmarks.minds.pieces import Piece
from benchmarks.minds.playing import Played
from benchmarks.minds.tables import report


def played(slot: str, kind: str, *, accepted: bool, problem: str | None = None) -> Played:
    ending = {"slot": slot, "kind": kind, "style": "plain", "where": "the last line"}
    failed = None
    if not accepted and problem is None:
        failed = {"criterion_id": "truth", "checked_by": "judge", "quote": "x", "evidence": "y"}
    piece = Piece({"language": "en"}, ending, "w")
    return Played(piece, accepted, failed, verdicts=(), problem=problem)


def test_a_piece_without_an_answer_is_neither_accepted_nor_rejected() -> None:
    text = report(
        [
            played("a", "honest", accepted=True),
            played("b", "honest", accepted=False, problem="no JSON came back"),
            played("c", "wrong_id", accepted=False),
            played("d", "wrong_id", accepted=False, problem="no JSON came back"),
        ]
    )
    assert "| honest work rejected | 0 of 1 |" in text
    assert "| faulty work accepted | 0 of 1 |" in text
    assert "| no answer, in neither share | 2 of 4 |" in text
    assert "| truth | judge | 1 | 0 |" in text
    assert "| b | honest | no answer: - | no JSON came back |" in text
