"""The one program of ours inside a sandbox: it runs commands for the host over one stream.

`main` serves requests, `stream` keeps and repeats what the host has not confirmed, `job` is a
running command, `files` reads, writes and wipes, `rights` gives up what the agent starts with, and
`frames` is what both ends agree on. All travels as one program (`sandboxes.core.agent_code`) to any
Python from 3.9 and starts without `site`: imports are the start-up time of every sandbox, so these
modules import only what is compiled into Python or nearly so, and each other.
"""
