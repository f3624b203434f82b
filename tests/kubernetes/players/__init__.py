"""What a bare API server lacks, played by one process through the public API alone.

    python -m tests.kubernetes.players --kubeconfig FILE [--nodes real=1,simulated=N]
        [--without scheduler,collector,lifecycle,accounts,sandboxes,pools,claims,policies]

It plays the nodes (`nodes`, `kubelet`; `real` for Pods whose containers run in bubblewrap on this
machine, `simulated` for Pods without processes), the scheduler, and in `controllers` what a
controller manager and agent-sandbox do. Each part is switched off where the cluster has the real
one. `control` breaks things for tests. Nothing here knows what kind of API server it talks to.
"""
