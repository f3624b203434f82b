"""Faults of Python files that the user has named, told as theirs and not as this project's."""

import traceback


def fault_in(path: str, error: Exception) -> str:
    """`line 12: NameError: ...`, the innermost line of the file itself."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    words = str(error)
    if isinstance(error, SyntaxError):
        lines, words = [error.lineno], error.msg
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {words}"
