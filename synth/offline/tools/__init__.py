"""The offline generator's jobs `tools` and `domain`: a grammar of tools over entities and fields.

Patterns (`listing`, `reporting`, `checking`, `making`, `changing`, `moving`, `relating`) meet the
outline of a domain; operators (`reworking`, `composing`) meet tools that are given to them.
"""
