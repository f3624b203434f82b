"""The parts of the protocol beside tools: resources, prompts, and what a server asks back."""
