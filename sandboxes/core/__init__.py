"""What any sandbox has, wherever it runs: template, limits, channel, accounts, the agent inside.

Nothing here knows bubblewrap, control groups or a host's files; that is `sandboxes.local`.
"""
