"""How a run is run: jobs, stages, items, shards, and the processes that make them.

Nothing here knows what an item is about. Only `run` commits.
"""
