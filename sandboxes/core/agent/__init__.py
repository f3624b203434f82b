"""The one program of ours inside a sandbox: runs commands for the host over two pipes.

`main` serves requests, `job` is a running command, `files` reads, writes and wipes, and `frames`
is what both ends agree on. All is compiled into one file (`sandboxes.local.bwrap.agent_code`) and
starts without `site`: imports are the start-up time of every sandbox, so these modules import only
what is compiled into Python or nearly so, and each other.
"""
