"""A grammar of tools: parts of tools here, whole ideas in `patterns`, jobs in `operators`."""
