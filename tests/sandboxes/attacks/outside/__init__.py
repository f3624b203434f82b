"""Attempts on what lies outside a sandbox: networks, files, processes, secrets, neighbours."""
