"""Safety: instructions injected into tool results, secrets to be kept, harmful requests and their
harmless look-alikes."""
