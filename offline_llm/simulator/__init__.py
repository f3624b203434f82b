"""The offline simulator: it answers calls of tools and sketches the environment behind them."""
