"""The puzzles of reasoning-gym that are used, and how an answer to each is judged.

The library's scorers give part of a point for wrong answers, and some take what is no solution: a
game of 24 with other numbers, any words at all for "does it halt". So what is right is decided here
(`puzzle_checks.py`), and the library's score is kept beside it. It decides in one case: a puzzle
with many solutions, whose scorer gives a whole point for solutions alone (marked `library`).
"""

from typing import Literal, NamedTuple

PuzzleCheck = Literal[
    "exact",
    "words",
    "number",
    "list",
    "json",
    "hexadecimal",
    "fraction",
    "factors",
    "digits",
    "roles",
    "queens",
    "make_24",
    "make_target",
    "library",
]
"""How an answer is judged: a name of `puzzle_checks.CHECKS`, or `library`."""


class PuzzleKind(NamedTuple):
    check: PuzzleCheck
    facts: tuple[str, ...] = ()
    """What the check knows of a puzzle, of the library's metadata."""
    scored: bool = True
    """False: the library's scorer runs the answer as Python or hands it to sympy's parser, which
    does. It is never asked."""
    form: str | None = None
    """Regular expression for the whole answer, where the library's scorer passes over whatever
    else stands in it, a `not` before the answer too."""


_EXACT = PuzzleKind("exact")
_WORDS = PuzzleKind("words")
_NUMBER = PuzzleKind("number")
_LIBRARY = PuzzleKind("library")

KINDS: dict[str, PuzzleKind] = {
    # One text is right, in its letters; spaces between words and at the ends do not matter.
    "ab": _EXACT,
    "binary_matrix": PuzzleKind("exact", scored=False),
    "caesar_cipher": _EXACT,
    "manipulate_matrix": _EXACT,
    "path_star": _EXACT,
    "rotate_matrix": _EXACT,
    "spiral_matrix": PuzzleKind("exact", scored=False),
    "string_insertion": PuzzleKind("exact", scored=False),
    "string_manipulation": _EXACT,
    "string_splitting": _EXACT,
    "string_synthesis": _EXACT,
    "word_sequence_reversal": _EXACT,
    "word_sorting": _EXACT,
    # One text is right, in capitals or not.
    "acre": _WORDS,
    "base_conversion": _WORDS,
    "calendar_arithmetic": _WORDS,
    "color_cube_rotation": _WORDS,
    "course_schedule": _WORDS,
    "family_relationships": _WORDS,
    "game_of_life_halting": _WORDS,
    "isomorphic_strings": _WORDS,
    "mahjong_puzzle": _WORDS,
    "needle_haystack": _WORDS,
    "ransom_note": _WORDS,
    "spell_backward": _WORDS,
    "syllogism": _WORDS,
    "zebra_puzzles": _WORDS,
    # One number is right, however it is written.
    "aiw": _NUMBER,
    "basic_arithmetic": _NUMBER,
    "binary_alternation": _NUMBER,
    "chain_sum": _NUMBER,
    "circuit_logic": _NUMBER,
    "count_bits": _NUMBER,
    "count_primes": _NUMBER,
    "decimal_chain_sum": _NUMBER,
    "gcd": _NUMBER,
    "gsm_symbolic": _NUMBER,
    "largest_island": _NUMBER,
    "lcm": _NUMBER,
    "leg_counting": _NUMBER,
    "letter_counting": _NUMBER,
    "maze": _NUMBER,
    "products": _NUMBER,
    "rectangle_count": _NUMBER,
    "rotten_oranges": _NUMBER,
    "self_reference": _NUMBER,
    "simple_equations": _NUMBER,
    "simple_geometry": _NUMBER,
    # One value is right, in a form of its own.
    "bitwise_arithmetic": PuzzleKind("hexadecimal"),
    "dice": PuzzleKind("fraction"),
    "fraction_simplification": PuzzleKind("fraction"),
    "game_of_life": PuzzleKind("json"),
    "number_filtering": PuzzleKind("list"),
    "number_sorting": PuzzleKind("list"),
    "prime_factorization": PuzzleKind("factors", ("factors",)),
    "futoshiki": PuzzleKind("digits", ("solution",)),
    "mini_sudoku": PuzzleKind("digits", ("solution",)),
    "sudoku": PuzzleKind("digits", ("solution",)),
    "knights_knaves": PuzzleKind("roles"),
    # Many answers are right, and are tried out.
    "countdown": PuzzleKind("make_target", ("numbers", "target"), scored=False),
    "n_queens": PuzzleKind("queens", ("puzzle",), scored=False),
    "puzzle24": PuzzleKind("make_24", ("numbers",), scored=False),
    "cryptarithm": _LIBRARY,
    "graph_color": _LIBRARY,
    "group_anagrams": _LIBRARY,
    "jugs": _LIBRARY,
    "kakurasu": PuzzleKind("library", form=r"[01\s]+"),
    "palindrome_generation": _LIBRARY,
    "palindrome_partitioning": _LIBRARY,
    "quantum_lock": PuzzleKind("library", form=r"[A-Ca-c](?:\s*(?:→|->|,|\s)\s*[A-Ca-c])*"),
    "shortest_path": _LIBRARY,
    "sokoban": PuzzleKind("library", form=r"[LRUDlrud\s]+"),
    "tower_of_hanoi": _LIBRARY,
    "word_ladder": _LIBRARY,
}
"""Name in the library -> how it is used."""

LEFT_OUT: dict[str, str] = {
    "advanced_geometry": "takes what is wrong in the third digit",
    "arc_1d": "several rules fit the examples",
    "arc_agi": "is an evaluation",
    "bf": "prints whatever the program prints, blanks included",
    "boxnet": "its scorer fails on answers that are no plan",
    "codeio": "runs programs",
    "coin_flip": "takes any answer within 0.0001, so 0 for what is rare",
    "complex_arithmetic": "its scorer takes `nan` for any number",
    "composite": "is a mixture of the others",
    "decimal_arithmetic": "takes what is wrong in the last digit",
    "emoji_mystery": "its characters have no place in most tokenizers",
    "figlet_font": "its characters have no place in most tokenizers",
    "intermediate_integration": "its scorer runs the answer as Python",
    "knight_swap": "takes a second to draw, and its scorer changes the puzzle",
    "letter_jumble": "some words have several anagrams",
    "list_functions": "several rules fit the examples",
    "modulo_grid": "several rules fit the grid",
    "number_format": "takes what is 0.009 beside the number",
    "number_sequence": "several rules fit the numbers",
    "polynomial_equations": "takes what is beside the root",
    "polynomial_multiplication": "its scorer runs the answer as Python",
    "pool_matrix": "takes what is 1% beside, and seeds NumPy for the whole process",
    "power_function": "rounds what it compares",
    "propositional_logic": "takes a premise for a conclusion",
    "rearc": "is an evaluation",
    "rubiks_cube": "its scorer turns the cube as often as the answer says",
    "rush_hour": "comes without a solution, so that its scorer cannot be tried out",
    "sentence_reordering": "several orders make a sentence",
    "simple_integration": "its scorer runs the answer as Python",
    "survo": "takes one of several solutions",
    "time_intervals": "is drawn by today's date",
    "tsumego": "takes one of several moves",
}
"""Kinds of the library that are not used, each with the reason."""
