"""How it is run: Prefect flows, deployments and the command line."""
