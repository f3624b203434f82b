"""Whether a rewritten text says what its source says, measured layer by layer.

`checks.fidelity_of` reads both texts and gives every layer, `checks.verdict` decides. All of it is
pure code, bounded on any text; only `claims` (a judge) and `alignment.aligned` (an embedder) ask a
model, and what the judge says counts only where the words that it cites really stand there.
"""
