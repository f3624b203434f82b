"""One file for each group of commands of `synth`.

A command parses, calls one function elsewhere and prints. Nothing heavy is imported at the top of
these files: `synth --help` has to be quick.
"""
