"""Whether the judging decides rightly on endings that other minds wrote.

    python -m benchmarks.minds                                   development half, by code alone
    python -m benchmarks.minds --judge FILE --work FOLDER        with the judge that FILE describes
    python -m benchmarks.minds --half reporting --judge FILE --work FOLDER

FILE is TOML with the settings of a role (`base_url`, `models`, `api_key_env`, ...). FOLDER keeps
the judge's answers. Opening the reporting half appends commit and date to `openings.jsonl`. Prints
Markdown; `--only NAMES` plays some pieces (comma separated).
"""

import argparse
import tomllib
from pathlib import Path

from benchmarks.measured import machine
from benchmarks.minds.halves import note_opening, pieces_in
from benchmarks.minds.playing import play, play_by_code
from benchmarks.minds.tables import open_shares, report
from synth.llm.settings.config import RoleConfig


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=("development", "reporting"), default="development")
    parser.add_argument("--judge", type=Path, help="TOML file with the judge's role settings")
    parser.add_argument("--work", type=Path, help="folder that keeps the judge's answers")
    parser.add_argument("--only", default="", help="names of pieces, comma separated")
    args = parser.parse_args()
    if args.judge and not args.work:
        parser.error("--judge needs --work, a folder that keeps the judge's answers")
    judge = None
    if args.judge:
        judge = RoleConfig.model_validate(tomllib.loads(args.judge.read_text(encoding="utf-8")))
    pieces = pieces_in(args.half)
    if args.half == "reporting":
        names = ", ".join(m.name for m in judge.models) if judge else "code alone"
        note_opening(machine()["commit"], "endings", names)
    wanted = set(filter(None, args.only.split(",")))
    pieces = [piece for piece in pieces if not wanted or piece.name in wanted]
    by_code = play_by_code(pieces)
    print(f"{args.half} half, {len(pieces)} pieces, commit {machine()['commit']}\n")
    print(open_shares(by_code) + "\n")
    if judge:  # what code leaves open is neither accepted nor rejected without one
        print(report(play(pieces, judge, args.work)))


if __name__ == "__main__":
    main()
