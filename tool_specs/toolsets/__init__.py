"""Which tools go together: io types, dependencies between tools, sampling of toolsets."""
