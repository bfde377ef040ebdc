"""A run as its pods find it: read from mounted files by closed, bounded schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.bootstrap.children_file import MAX_CHILDREN_BYTES, ChildrenFile, parse_children
from proctor.bootstrap.gateway_config import GatewayConfig, SandboxMode
from proctor.bootstrap.mounted import Mount
from proctor.bootstrap.mounted_gateway import read_gateway_config
from proctor.errors import InvalidInput
from support.mounted import (
    ADMIN_PASSWORD,
    DATASET_PASSWORD,
    OPERATOR_TOKEN,
    RUN,
    RUN_KEY,
    make_children,
    make_dataset,
    make_suite,
    write_mount,
)

SCENARIO = "error-root-cause"
TOOLBOX = {"server": "sql", "scenario": SCENARIO, "host": "10.96.3.4", "port": 8080}
KNOWN = {
    "datasets": {SCENARIO: make_dataset()},
    "toolboxes": [TOOLBOX],
    "hostNames": ["10.96.1.2:8080", "gateway"],
    "allowedHosts": ["api.anthropic.com"],
}
KEY = {"name": "anthropic", "key": "api-key"}


def read_gateway(tmp_path: Path, **parts: Any) -> GatewayConfig:
    suite = {"suite": make_suite(**parts.pop("suite", {}))}
    return read_gateway_config(write_mount(tmp_path, **suite, children=make_children(**(KNOWN | parts))))


def refusal(read: Any, *arguments: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(*arguments)
    told = str(caught.value)
    assert not any(secret in told for secret in (RUN_KEY, OPERATOR_TOKEN, DATASET_PASSWORD, ADMIN_PASSWORD))
    return told


def test_a_gateway_is_told_by_files_what_one_machine_tells_it_by_a_pipe(tmp_path: Path) -> None:
    """architecture, Processes: the same gateway; its addresses, keys and logins are mounted."""
    config = read_gateway(tmp_path)
    assert (config.run, config.run_key.get_secret_value()) == (RUN, RUN_KEY)
    assert config.operator_token.get_secret_value() == OPERATOR_TOKEN
    dataset = config.scenarios[SCENARIO].dataset
    assert (dataset.user, dataset.password.get_secret_value()) == ("pr_0123456789_0", DATASET_PASSWORD)
    assert config.scenarios[SCENARIO].brief["prompt"]
    assert config.scenarios[SCENARIO].policies["oracle"]
    assert config.store is not None
    assert config.store.password.get_secret_value() == ADMIN_PASSWORD
    assert config.listen is not None
    assert (config.listen.host, config.listen.port) == ("0.0.0.0", 8080)  # noqa: S104 - a pod's own


def test_a_gateway_in_a_pod_starts_nothing(tmp_path: Path) -> None:
    """issue, Children: servers under test run in toolboxes; without one for each, the gateway does not start."""
    assert read_gateway(tmp_path).sandbox is SandboxMode.ELSEWHERE
    assert "toolboxes: server sql has none for scenario error-root-cause" in refusal(
        lambda: read_gateway(tmp_path, toolboxes=[])
    )


def test_a_server_with_a_hook_needs_its_pod(tmp_path: Path) -> None:
    """issue, Children: `provision` as a Job, dialled by the gateway."""
    server = {
        "name": "sql",
        "http": {"image": f"x@sha256:{'0' * 64}", "port": 9000},
        "provision": {"command": ["hook"]},
        "allowedTools": ["q"],
    }
    suite = {"servers": [server]}
    assert "hooks: server sql has none" in refusal(lambda: read_gateway(tmp_path, suite=suite))
    assert read_gateway(tmp_path, suite=suite, hooks=[TOOLBOX]).hooks[0].host == "10.96.3.4"


def test_names_by_which_a_gateway_is_called_have_no_port(tmp_path: Path) -> None:
    """S15: a `Host` header is compared by name."""
    assert read_gateway(tmp_path).host_names == ("10.96.1.2", "gateway")


def test_keys_of_models_are_needed_and_environments_of_servers_are_not(tmp_path: Path) -> None:
    """S17: a server's credential may be in its own pod alone."""
    variable = {"name": "TOKEN", "secretKeyRef": {"name": "server", "key": "token"}}
    server = {"name": "sql", "stdio": {"command": ["s"]}, "env": [variable], "allowedTools": ["q"]}
    model = {"name": "m", "anthropic": {"model": "claude-test", "secretKeyRef": KEY}}
    suite = {"servers": [server], "models": [model]}
    assert "secrets/anthropic/api-key" in refusal(lambda: read_gateway(tmp_path, suite=suite))
    (tmp_path / "secrets" / "anthropic").mkdir(parents=True)
    (tmp_path / "secrets" / "anthropic" / "api-key").write_text("sk-ant-hidden\n")
    config = read_gateway(tmp_path, suite=suite)
    assert {name: value.get_secret_value() for name, value in config.secrets.items()} == {
        "anthropic/api-key": "sk-ant-hidden"
    }
    assert "hidden" not in repr(config)


@pytest.mark.parametrize("missing", ["suite/suite.json", "children/children.json", "keys/runKey", "clickhouse/user"])
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    """style: messages name the object; a pod's last line says which mount it lacks."""
    write_mount(tmp_path, children=make_children(**KNOWN))
    (tmp_path / missing).unlink()
    assert missing in refusal(read_gateway_config, tmp_path)


def test_a_dataset_that_is_not_seeded_is_named(tmp_path: Path) -> None:
    """issue, Children: a gateway is started once datasets are served."""
    assert f"datasets: {SCENARIO} is missing" in refusal(lambda: read_gateway(tmp_path, datasets={}))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"surprise": 1}, "surprise"),
        ({"store": {"host": "10.0.0.1", "port": 0}}, "store.port"),
        ({"store": {"host": "a b", "port": 1}}, "store.host"),
        ({"datasets": {"s": make_dataset(database="ds; DROP")}}, "datasets.s.database"),
        ({"datasets": {"s": make_dataset(user="x'y")}}, "datasets.s.user"),
        ({"datasets": {"s": make_dataset(hash="../../etc")}}, "datasets.s.hash"),
        ({"toolboxes": [{**TOOLBOX, "port": "8080"}]}, "toolboxes.0.port"),
        ({"hostNames": ["x\r\nHost: y"]}, "hostNames.0"),
    ],
)
def test_hostile_children_are_refused_by_field(fields: dict[str, Any], where: str) -> None:
    """S29: names of other objects reach SQL, URLs and headers, so each has a pattern and a bound."""
    import json

    assert where in refusal(parse_children, json.dumps(make_children(**fields)))


def test_files_have_bounds(tmp_path: Path) -> None:
    """S21: no mounted file is held in memory beyond what it may be."""
    assert "larger than" in refusal(parse_children, b" " * (MAX_CHILDREN_BYTES + 1))
    write_mount(tmp_path)
    (tmp_path / "keys" / "runKey").write_bytes(b"x" * 100_000)
    assert "larger than" in refusal(Mount(tmp_path).key, "runKey")
    (tmp_path / "keys" / "runKey").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refusal(Mount(tmp_path).key, "runKey")
    (tmp_path / "keys" / "runKey").write_bytes(b"\n")
    assert "empty" in refusal(Mount(tmp_path).key, "runKey")
    (tmp_path / "suite" / "suite.json").write_bytes(b"{" * 2_000_000)
    assert "larger than" in refusal(lambda: Mount(tmp_path).suite)


def test_a_suite_that_is_none_is_refused_by_field(tmp_path: Path) -> None:
    """manifest: unknown fields are refused wherever a suite is read."""
    write_mount(tmp_path, suite=make_suite(surprise=1))
    assert "surprise" in refusal(lambda: Mount(tmp_path).suite)


def test_equal_children_are_equal_text() -> None:
    """issue, Reconciling: the operator patches the ConfigMap only if something changed."""
    first = ChildrenFile.model_validate(make_children(**KNOWN))
    assert parse_children(first.render()) == first
    assert parse_children(first.render()).render() == first.render()


def test_a_scenario_of_ones_own_is_read_from_its_mount(tmp_path: Path) -> None:
    """manifest: brief and recipe in a ConfigMap, the answer in a Secret; never a shipped scenario of the same name."""
    own = {"name": SCENARIO, "configMapRef": {"name": "mine"}, "answerRef": {"name": "mine"}}
    write_mount(tmp_path, suite=make_suite(scenarios=[own]))
    mount = Mount(tmp_path)
    assert "not mounted" in refusal(mount.scenario_dir, mount.suite.scenarios[0])
    (tmp_path / "scenarios" / SCENARIO).mkdir(parents=True)
    assert mount.scenario_dir(mount.suite.scenarios[0]) == tmp_path / "scenarios" / SCENARIO
