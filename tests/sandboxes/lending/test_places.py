"""Where a run's sandboxes are: as its configuration says, for what is inside, and no longer."""

import asyncio
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest
from pydantic import ValidationError

from records.errors import ConfigError
from sandboxes.core.backend import Capability
from sandboxes.lending import leases
from sandboxes.lending.leases import HERE, SandboxPlace, leasing_from
from sandboxes.lending.places import SandboxesConfig, proxy_of
from sandboxes.local.backend import LocalBackend
from sandboxes.mcp.launch import check_way_out
from sandboxes.mcp.servers import ServerConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig

ROOT = Path(__file__).parents[3]
KEY = "0123456789abcdef0123456789abcdef"
CLUSTER = {"sandboxes": {"backend": "kubernetes", "live": 7, "kubernetes": {"warm": 9}}}


class Elsewhere(LocalBackend):
    name = "elsewhere"
    capabilities: Set[Capability] = frozenset()


def test_what_is_begun_inside_leases_there_and_what_comes_after_leases_here() -> None:
    there = SandboxPlace(Elsewhere(), paces=(("starts_at_once", 50),))

    async def asked() -> list[str]:
        with leasing_from(there):
            task = asyncio.create_task(asyncio.to_thread(lambda: leases.backend().name))
        return [await task, leases.backend().name]

    assert asyncio.run(asked()) == ["elsewhere", "local"]
    with leasing_from(there):
        assert leases.pool_settings(3).starts_at_once == 50
    assert leases.place_in_use() is HERE
    assert leases.pool_settings(3).live == 3


@pytest.mark.parametrize("kind", [RunConfig, GradeConfig])
def test_where_sandboxes_are_is_part_of_no_id(kind: type[RunConfig] | type[GradeConfig]) -> None:
    assert kind.model_validate(CLUSTER).run_id == kind().run_id


def test_a_cluster_holds_a_sandbox_for_each_item_in_flight_unless_told() -> None:
    told, plain = RunConfig.model_validate(CLUSTER), RunConfig()
    assert (told.live_sandboxes(16), plain.live_sandboxes(16)) == (7, 16)
    untold = plain.model_copy(update={"sandboxes": SandboxesConfig(backend="kubernetes")})
    assert untold.live_sandboxes(2) == untold.concurrency


def test_settings_of_nothing_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"sandboxes\.kubernetes\.imagee"):
        RunConfig.model_validate({"sandboxes": {"kubernetes": {"imagee": "x"}}})
    with pytest.raises(ValidationError, match="'local' or 'kubernetes'"):
        RunConfig.model_validate({"sandboxes": {"backend": "docker"}})


WITHOUT_CLIENT = """
import asyncio, sys
sys.modules["kubernetes"] = None
from sandboxes.lending.places import SandboxesConfig
async def use():
    async with SandboxesConfig(backend="kubernetes").in_use():
        print("in use")
asyncio.run(use())
"""


def test_without_the_client_the_error_says_what_to_install() -> None:
    argv = [sys.executable, "-c", WITHOUT_CLIENT]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "ConfigError" in done.stderr
    assert "pip install 'agentic-synth[k8s]'" in done.stderr
    assert not done.stdout


def test_a_proxy_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SandboxesConfig.model_validate({"kubernetes": {"egress_proxy": "10.1.2.3:3128"}})
    monkeypatch.delenv("SYNTH_EGRESS_KEY", raising=False)
    with pytest.raises(ConfigError, match="SYNTH_EGRESS_KEY is not set"):
        proxy_of(settings.kubernetes)
    monkeypatch.setenv("SYNTH_EGRESS_KEY", "short")
    with pytest.raises(ConfigError, match=r"SYNTH_EGRESS_KEY: .* at least 32 bytes, got 5"):
        proxy_of(settings.kubernetes)
    monkeypatch.setenv("SYNTH_EGRESS_KEY", f"{KEY}\n")
    proxy = proxy_of(settings.kubernetes)
    assert proxy is not None
    assert (proxy.address, proxy.key) == ("10.1.2.3:3128", KEY.encode())
    assert KEY not in repr(proxy)
    assert proxy_of(SandboxesConfig().kubernetes) is None


def test_a_server_with_hosts_is_refused_where_no_proxy_is() -> None:
    shop = ServerConfig(name="shop", command=("shop",), hosts=("shop.example",))
    check_way_out(shop)
    with leasing_from(SandboxPlace(Elsewhere())):
        with pytest.raises(
            ConfigError, match=r"shop declares hosts \(shop.example\).*egress_proxy"
        ):
            check_way_out(shop)
        check_way_out(ServerConfig(name="clock", command=("clock",)))
