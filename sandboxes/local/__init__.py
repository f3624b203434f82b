"""Sandboxes of this machine: bubblewrap, control groups, seccomp, snapshots, the pool."""
