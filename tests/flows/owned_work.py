"""A flow with a child flow, both claimed by this process, which says so and waits to be killed."""

import asyncio
import sys

from prefect import flow, tags

from flows.runtime.ownership import OURS, claim_this_flow_run


@flow(flow_run_name="{name}-child")
async def child(name: str) -> None:
    await claim_this_flow_run()
    print("claimed", flush=True)  # noqa: T201
    await asyncio.sleep(600)


@flow(flow_run_name="{name}")
async def parent(name: str) -> None:
    await claim_this_flow_run()
    await child(name)


if __name__ == "__main__":
    with tags(OURS):
        asyncio.run(parent(sys.argv[1]))
