"""HTTP: paths, verbs, subresources, discovery, tables, streams and faults."""
