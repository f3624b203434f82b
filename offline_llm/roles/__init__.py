"""The offline agent, user and judge: what each does with a request that was read."""
