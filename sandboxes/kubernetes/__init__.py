"""Sandboxes on Kubernetes: Pods of a cluster, claimed from warm pools or made one by one.

Only here the Kubernetes client is imported. Nothing here has been run against a real cluster: the
tests run it against an API server's double, or against the server of a kubeconfig that they get.
"""
