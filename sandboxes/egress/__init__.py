"""The only way out of a sandbox: the proxy that knows the declared hosts, how a sandbox reaches it,
and the same proxy as a process of its own beside the sandboxes of a cluster."""
