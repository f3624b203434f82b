"""What a controller manager and agent-sandbox do, each through the API alone and switched off by
name: garbage collection, lost nodes, service accounts; sandboxes, warm pools, claims, policies."""
