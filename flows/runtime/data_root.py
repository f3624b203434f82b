"""What a flow may use that was started from the UI: its data root, and keys given to flows.

The server has no users and no passwords, so whoever reaches it can start a flow; the parameters
must not be a way to the rest of the disk. Commands name any path: who runs them has the shell.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from flows.runtime.settings import data_root, flow_addresses, flow_keys
from records.errors import ConfigError
from records.sources.stored_files import is_remote
from sandboxes.installing.client_files import is_server_file, servers_in
from sandboxes.lending.places import SandboxesConfig
from sandboxes.mcp.joining import files_joined, programs_of
from sandboxes.mcp.servers import ServerConfig
from synth.engine.context import ConfigT
from synth.engine.job_config import JobConfig
from synth.judging.config import JudgedConfig
from synth.llm.settings.config import RoleConfig
from synth.llm.settings.endpoints import endpoint_names
from synth.rephrasing.sources.sources import BUILT_IN, is_on_hub


def check_before_reading(values: Any) -> Any:
    """The parameters as they are; ConfigError for a file that their validation would read and, in
    an error, repeat. Settings that a command has read are validated already, and no mapping."""
    if not isinstance(values, Mapping):
        return values
    prompts = values.get("prompts")
    folder = prompts.get("path") if isinstance(prompts, Mapping) else prompts
    if isinstance(folder, str):
        check_paths([("config.prompts", folder)])
    gym = values.get("gym")
    for where in (values, gym if isinstance(gym, Mapping) else {}):
        _check_endpoints(where.get("roles"))
    return values


def _check_endpoints(roles: Any) -> None:
    for role, own in roles.items() if isinstance(roles, Mapping) else ():
        endpoint = own.get("endpoint") if isinstance(own, Mapping) else None
        if isinstance(endpoint, str) and endpoint not in endpoint_names():
            raise ConfigError(
                f"roles.{role}.endpoint = {endpoint!r} is no ready endpoint, and a flow that is "
                "started from the UI reads no other file of one; write its settings into the role, "
                f"or name a ready one: {', '.join(endpoint_names())}"
            )


ConfigParameter = Annotated[ConfigT, BeforeValidator(check_before_reading)]
"""The settings of a flow as its parameter, looked at before anything in them is read."""


def check_parameters(config: JobConfig, dataset: str) -> None:
    """Raise ConfigError for a path that leads out of the data root, or a secret not given to flows.

    Naming a variable as a key sends its value to the endpoint that stands beside it.
    """
    check_roles(config.roles)
    check_paths(_paths(config, dataset))
    check_addresses(_addresses(config))
    for server in _own_servers(config):
        for program in programs_of(server):
            _check_server(program)
    if any(not isinstance(gate, str) for gate in getattr(config, "gates", ())):
        raise ConfigError(
            "hooks of gates are programs, which a flow that is started from the UI does not run; "
            "use `synth rephrase`"
        )
    if isinstance(config, JudgedConfig):
        check_cluster(config.sandboxes)
    if getattr(config, "extensions", ()):
        raise ConfigError(
            "extensions are programs, which a flow that is started from the UI does not run; use "
            "`synth run`"
        )


def check_roles(roles: Mapping[Any, RoleConfig]) -> None:
    """ConfigError for a key or a file of certificates that a flow from the UI may not use."""
    for role, own in roles.items():
        held = {"api_key_env": own.api_key_env} if own.api_key_env is not None else {}
        held |= {f"headers.{name}": variable for name, variable in own.headers.items()}
        for setting, variable in held.items():
            if variable not in flow_keys():
                raise ConfigError(
                    f"roles.{role}.{setting} = {variable!r} is not among the keys that flows "
                    "started from the UI may use; name it in SYNTH_FLOW_KEYS (commas between) "
                    "where the flows are served"
                )
        if own.ca_file is not None:
            check_paths([(f"roles.{role}.ca_file", own.ca_file)])


def check_cluster(sandboxes: SandboxesConfig) -> None:
    """A kubeconfig may name programs that log in, and a variable's value opens the proxy."""
    settings = sandboxes.kubernetes
    if settings.kubeconfig is not None:
        raise ConfigError(
            f"sandboxes.kubernetes.kubeconfig = {settings.kubeconfig!r}: a kubeconfig can start "
            "programs, so a flow that is started from the UI uses that of where flows are served; "
            "leave the setting out"
        )
    variable = settings.egress_key_env
    if settings.egress_proxy is not None and variable not in flow_keys():
        raise ConfigError(
            f"sandboxes.kubernetes.egress_key_env = {variable!r} is not among the keys that flows "
            "started from the UI may use; name it in SYNTH_FLOW_KEYS (commas between) where the "
            "flows are served"
        )


def check_paths(paths: Iterable[tuple[str, str]]) -> None:
    """ConfigError for one, among (setting, path), that is not inside the data root."""
    root = data_root().resolve()
    for setting, path in paths:
        if root not in Path(path).resolve().parents:  # resolved: neither `..` nor links lead out
            raise ConfigError(
                f"{setting} = {path!r} is not inside the data root {root}; a flow that is started "
                "from the UI reads and writes only there (set SYNTH_DATA_ROOT for another folder)"
            )


def check_addresses(addresses: Iterable[tuple[str, str]]) -> None:
    """ConfigError for one, among (setting, address), that flows may not read."""
    for setting, address in addresses:
        _check_address(setting, address)


def _check_address(setting: str, address: str) -> None:
    """ConfigError for one that is not below an address that flows may read. An address may lead to
    this machine or its network, and carries whatever keys the machine has for its kind."""
    below = any(address.startswith(allowed) for allowed in flow_addresses())
    if not below or "::" in address or ".." in address.split("/"):
        raise ConfigError(
            f"{setting} = {address!r} is no address that a flow which is started from the UI may "
            "read; name its beginning in SYNTH_FLOW_ADDRESSES (commas between, such as "
            "s3://bucket/folder/) where the flows are served, or copy the files into the data root"
        )


def _own_servers(config: JobConfig) -> Iterator[ServerConfig]:
    """Of every definition file that is there; built-in servers are shown nothing of the host."""
    for name in getattr(config, "servers", ()):
        if is_server_file(name) and Path(name).is_file():
            yield from servers_in(Path(name))


def _check_server(server: ServerConfig) -> None:
    """What a definition may show its server of this machine, and where it may lead it."""
    for name in server.secrets:
        if name not in flow_keys():
            raise ConfigError(
                f"server {server.name} gets the secret {name}, which is not among the keys "
                "that flows started from the UI may use; name it in SYNTH_FLOW_KEYS (commas "
                "between) where the flows are served"
            )
    check_paths((f"binds of server {server.name}", bind.source) for bind in server.binds)
    for host in server.hosts:
        if "=" in host or _is_address(host):
            raise ConfigError(
                f"server {server.name} may reach {host!r}, an address of its own choice; a flow "
                "that is started from the UI reaches names only, which lead to public addresses"
            )


def _is_address(host: str) -> bool:
    bare = host.rpartition(":")[0] if host.count(":") == 1 else host
    try:
        ipaddress.ip_address(bare.strip("[]"))
    except ValueError:
        return host.startswith("[")
    return True


def _addresses(config: JobConfig) -> Iterator[tuple[str, str]]:
    for source in getattr(config, "sources", ()):
        if is_remote(source.path):
            yield "config.sources.path", source.path
    for setting, path in _evaluations(config):
        if is_remote(path):
            yield setting, path


def _evaluations(config: JobConfig) -> Iterator[tuple[str, str]]:
    for path in getattr(config, "decontaminate", ()):
        yield "config.decontaminate", path
    if isinstance(config, JudgedConfig):
        for path in config.curation.decontamination.files:
            yield "config.curation.decontamination.files", path


def _paths(config: JobConfig, dataset: str) -> Iterator[tuple[str, str]]:
    yield "dataset", dataset
    if config.prompts is not None:
        yield "config.prompts", config.prompts.path
    for source in getattr(config, "sources", ()):
        if source.path not in BUILT_IN and not is_on_hub(source) and not is_remote(source.path):
            yield "config.sources.path", source.path
    for setting, path in _evaluations(config):
        if not is_remote(path):
            yield setting, path
    for setting in ("domains", "servers", "code"):
        for name in getattr(config, setting, ()):
            if is_server_file(name):  # else the name of a built-in one
                yield f"config.{setting}", name
                if setting == "servers" and Path(name).is_file():
                    for part in files_joined(Path(name)):
                        yield f"joins of {name}", str(part)
