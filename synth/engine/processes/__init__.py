"""Processes of this machine that make shards, and the only place that knows of processes.

`executor` is the run's side, `worker` the other end, `channel` the socket between them;
`compute_pool` runs plain functions beside the event loop.
"""
