"""The stages of a run in their order, its configuration, its sources, its estimate."""
