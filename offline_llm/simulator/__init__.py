"""The offline simulator: it answers calls of tools and sketches the world behind them."""
