"""A double of the Kubernetes API server: it stores, validates, watches, proxies and runs nothing.

What it does is what kube-apiserver does by its documentation (API conventions, "API Concepts",
custom resource definitions). It has no controllers, no scheduler and no nodes, as a bare
kube-apiserver has none; whoever needs them plays them through the API. Passing against it never
means "tested on Kubernetes".

What a real server has and this one has not: authentication and authorization (roles are stored;
a bearer token is a name in the log), TLS, protobuf bodies and SPDY, OpenAPI schemas (kubectl is
told that the server validates), admission webhooks and conversion webhooks (a version that needs
one answers 500), CEL but rules that a field never changes, priority and fairness, disruption
budgets, limit ranges, scopes of quotas, ephemeral containers, port forwarding, and field managers
but those that apply. Quotas are enforced here, where a bare server without their controller would
not.
"""
