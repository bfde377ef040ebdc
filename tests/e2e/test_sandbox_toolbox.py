"""Servers and hooks in strangers' images, as the gateway reaches them: one fresh process for each connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.names import Role
from proctor.manifests.policies import Pods, Ports, Surroundings, Way
from proctor.manifests.scope import Images
from proctor.manifests.toolbox import Part, build_provision, build_toolbox
from support.kube_objects import DATASET, HTTP, STDIO
from support.live_run import Field, listening, open_field

pytestmark = pytest.mark.cluster

_SERVER = 'echo "said aside by $$" >&2; echo "{\\"process\\": $$, \\"words\\": \\"$1\\"}"; exec cat'
_WORDS = "$(PATH) costs $5"
_HOOK = 'echo "said aside" >&2; echo chatter; echo "{\\"url\\": \\"$PROCTOR_SERVER_URL\\"}"; exit 3'
_CLIENT = """
import json, socket, time
def dial(port):
    until = time.monotonic() + 90
    while True:
        try:
            return socket.create_connection((HOST[port], 8080), timeout=60)
        except OSError:
            if time.monotonic() > until: raise
            time.sleep(0.2)
def ask(port, *words):
    with dial(port) as one:
        for word in words: one.sendall(word.encode() + b"\\n")
        one.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: one.recv(65536), b"")).decode().splitlines()
HOST = HOSTS
print(json.dumps({"first": ask("server", "hello"), "second": ask("server", "hello"), "hook": ask("hook")}))
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A server, a hook, and what the gateway heard of them."""

    field: Field
    heard: dict[str, list[str]]

    def log(self, role: Role) -> str:
        """What a role's pod wrote."""
        return self.field.log(self.field.only(role)["metadata"]["name"])


@pytest.fixture(scope="module")
def scene(kubectl: Kubectl, images: Images) -> Iterator[Scene]:
    shell = ["/bin/busybox", "sh", "-c"]
    server = STDIO | {"stdio": {"image": images.sandbox, "command": [*shell, _SERVER, "sh", _WORDS]}}
    hook = HTTP | {"provision": {"image": images.sandbox, "command": [*shell, _HOOK]}}
    with open_field(kubectl, images, servers=[server, hook]) as field, open_field(kubectl, images) as store:
        store.ground()
        store.create(store.plain("store", listening(8200)))
        pods = Pods(namespace=store.run.namespace, labels={"app": "store"})
        way = Way(to=(pods,), ports=(Ports(first=8200),))
        field.prepare(Surroundings(operator=pods, store=(), datasets=(way,), seeding=(), api_server=()))
        dataset = replace(DATASET, host=store.address("store"), port=8200)
        toolbox = build_toolbox(field.run, Part(server=0, scenario=0), dataset)
        provision = build_provision(field.run, Part(server=1, scenario=0), dataset, "http://10.0.0.1:9000")
        field.create(*toolbox, *provision)
        hosts = {name: field.service_address(made[1]) for name, made in (("server", toolbox), ("hook", provision))}
        for role in (Role.TOOLBOX, Role.PROVISION):
            field.only(role)
        client = ("python3", "-c", _CLIENT.replace("HOSTS", repr(hosts)))
        field.create(field.plain("gateway-too", client, labels=field.run.names.labels(Role.GATEWAY)))
        yield Scene(field, field.report("gateway-too"))


def test_each_connection_is_a_fresh_process(scene: Scene) -> None:
    """Architecture, last facts: a stdio server in an unchanged image; it ends with its connection (S29: as written)."""
    first, second = (json.loads(scene.heard[name][0]) for name in ("first", "second"))
    assert first["process"] != second["process"]
    assert first["words"] == _WORDS
    assert scene.heard["first"][1:] == ["hello"]


def test_what_a_server_says_aside_is_in_its_log(scene: Scene) -> None:
    """Its standard error is for people: in the pod's log, and never in the conversation."""
    assert scene.log(Role.TOOLBOX).count("said aside by") == 2


def test_a_hook_is_heard_by_the_gateway_alone(scene: Scene) -> None:
    """A provision hook: the last line is how it ended; what it printed, which may be a secret, is in no log."""
    assert scene.heard["hook"] == ["chatter", json.dumps({"url": "http://10.0.0.1:9000"}), "", "exit 3"]
    assert scene.log(Role.PROVISION) == "said aside\n"
