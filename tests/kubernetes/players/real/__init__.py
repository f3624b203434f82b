"""Real Pods: each container is bubblewrap on this machine, with a process namespace of its own.

Every image is this machine's /usr, read-only, a small /etc of ours, and in /opt/python the Python
that runs the players; /usr/bin/python3 is the system's, where it has one. Containers of a Pod share
volumes, a network of a loopback alone, IPC and host name. Cgroups bound each container's memory,
processor and processes.
What a kubelet does beside that and is not played: probes, hooks, sidecars, attach, port-forward,
terminals, users of a Pod's own, host paths, persistent and projected volumes, changes of mounted
ConfigMaps, the runtime's seccomp profile.
"""
