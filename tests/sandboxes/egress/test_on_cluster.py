"""A server that declares hosts on a cluster: its sandbox reaches the proxy of there, by a pass.

The sandbox is one of this machine that shares the machine's network, as a Pod shares one with the
proxy; what network policies keep from it is not tried here.
"""

import asyncio
from pathlib import Path

import pytest

from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import SandboxPlace, available, leasing_from
from sandboxes.local.backend import LocalBackend
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.session import open_server
from tests.sandboxes.egress.test_service import egress_process, internet

SERVER = Path(__file__).parents[1] / "mcp" / "reaching_server.py"


class BesideTheProxy(LocalBackend):
    name = "beside"

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        assert template.egress
        assert not template.recycle
        there = {"egress": False, "network": True}
        return await super().create(template.model_copy(update=there), snapshot)


@pytest.mark.skipif(available() is not None, reason="no sandbox can run here")
def test_a_server_reaches_its_hosts_through_the_proxy_of_the_cluster(tmp_path: Path) -> None:
    async def run() -> None:
        async with internet() as port:
            passing = f"shop.example:{port}=127.0.0.1\nbooks.example:{port}=127.0.0.1"
            async with egress_process(tmp_path, passing) as proxy:
                shop = server_of_command(f"python {SERVER}").model_copy(
                    update={"hosts": (f"shop.example:{port}",)}
                )
                with leasing_from(SandboxPlace(BesideTheProxy(), proxy)):
                    async with open_server(shop) as server:

                        async def fetched(host: str) -> str:
                            url = f"http://{host}:{port}/"
                            return (await server.call("fetch", {"url": url})).text

                        said = await fetched("shop.example")
                        assert said == f"hello from shop.example:{port}"
                        assert "not among the hosts that are declared" in await fetched(
                            "books.example"
                        )

    asyncio.run(run())
