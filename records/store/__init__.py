"""A dataset on disk: commits, the log of them, the lease, journals, DuckDB views.

Here belongs whatever writes to a dataset's folder or decides what a reader sees of it.
"""
