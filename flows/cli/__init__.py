"""The command line: `synth`, and nothing that only it can do.

`main` maps errors to exit codes. Here belong parsing, help texts and printing; what a command does
is a flow, or a function of the package that it is about.
"""
