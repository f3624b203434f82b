"""A double of the Kubernetes API server: it stores, validates, watches, proxies and runs nothing.

What it does is what kube-apiserver does by its documentation (API conventions, "API Concepts",
custom resource definitions). It has no controllers, no scheduler, no nodes and no authorization,
as a bare kube-apiserver has none; whoever needs them plays them through the API. Passing against
it never means "tested on Kubernetes".
"""
