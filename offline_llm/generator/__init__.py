"""The offline generator: agents, personas, briefs and issues written by rule."""
