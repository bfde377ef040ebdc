"""A gateway in a pod: what is mounted becomes its configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import render_login
from proctor.api.fields import SecretKeyRef
from proctor.api.suite import EvalSuiteSpec
from proctor.bootstrap.children_file import ToolboxPlace
from proctor.bootstrap.gateway_config import (
    DatasetLogin,
    GatewayConfig,
    SandboxMode,
    ScenarioParts,
    StoreLogin,
    TcpListen,
    ToolboxAddress,
    check_gateway_config,
)
from proctor.bootstrap.mounted import Mount, state_dir
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.policies import read_policies
from proctor.errors import InvalidInput

LISTEN_VARIABLE = "PROCTOR_LISTEN"
_LISTEN = "0.0.0.0:8080"


def read_gateway_config(root: Path) -> GatewayConfig:
    """Return the configuration of the gateway whose pod this is.

    Raises:
        InvalidInput: a file is missing or wrong; the message names it, and never a secret.
    """
    mount = Mount(root)
    children = mount.children
    state = state_dir()
    secrets = mount.secrets([*_needed(mount.suite), *filter(mount.has_secret, _of_servers(mount.suite))])
    host, _, port = os.environ.get(LISTEN_VARIABLE, _LISTEN).rpartition(":")
    return check_gateway_config(
        {
            "run": children.run,
            "suite": mount.suite,
            "anchor": children.anchor,
            "run_key": mount.key("runKey"),
            "operator_token": mount.key("operatorToken"),
            "scenarios": {
                ref.name: ScenarioParts(
                    brief=load_brief(folder, ref.seed).model_dump(mode="json"),
                    policies=read_policies(folder, ref.seed),
                    dataset=DatasetLogin.model_validate(render_login(mount.dataset(ref.name))),
                )
                for ref, folder in mount.scenario_dirs()
            },
            "secrets": secrets,
            "store": StoreLogin.model_validate(render_login(mount.store())),
            "spool_dir": state / "spool",
            "sockets_dir": state / "s",
            "listen": TcpListen(host=host, port=_parse_port(port)),
            "sandbox": SandboxMode.ELSEWHERE,
            "toolboxes": _addresses(children.toolboxes),
            "hooks": _addresses(children.hooks),
            "allowed_hosts": children.allowed_hosts,
            "host_names": tuple(name.rpartition(":")[0] or name for name in children.host_names),
        }
    )


def _addresses(places: Iterable[ToolboxPlace]) -> tuple[ToolboxAddress, ...]:
    return tuple(ToolboxAddress.model_validate(place.model_dump()) for place in places)


def _needed(suite: EvalSuiteSpec) -> Iterator[SecretKeyRef]:
    """Yield what the gateway itself sends: keys of models, and headers."""
    for model in suite.models:
        if model.anthropic is not None:
            yield model.anthropic.secret_key_ref
    for server in suite.servers:
        yield from (header.secret_key_ref for header in server.headers if header.secret_key_ref is not None)


def _of_servers(suite: EvalSuiteSpec) -> Iterator[SecretKeyRef]:
    """Yield what servers have in their environments: where it is mounted too, it is taken out of what they say."""
    for server in suite.servers:
        yield from (variable.secret_key_ref for variable in server.env if variable.secret_key_ref is not None)


def _parse_port(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise InvalidInput(f"{LISTEN_VARIABLE}: write host:port, like {_LISTEN}")
    return int(text)
