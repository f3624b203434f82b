"""How rows become text that people read: pages, escaping, figures, intervals, transcripts.

Whatever shows a value from a model, a tool or a user passes through here.
"""
