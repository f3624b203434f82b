"""`python -m flows.cli` is the command `synth`."""

from flows.cli.main import main

main()
