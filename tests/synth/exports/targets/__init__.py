"""Programs that read an export by another project's own code, each in an environment of its own.

`make test-exports` runs them (`run.py`); CI does not, since their dependencies conflict with ours.
"""
