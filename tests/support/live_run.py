"""A run's children in a namespace of a real cluster, with an attacker's program where an agent would be."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cluster.kubectl import Kubectl
from proctor.manifests.documents import RunSecrets, build_children, build_grades, build_keys, build_suite
from proctor.manifests.gateway import build_gateway
from proctor.manifests.jobs import build_account
from proctor.manifests.names import Role
from proctor.manifests.pods import literal
from proctor.manifests.policies import Pods, Surroundings, build_policies
from proctor.manifests.sandbox import build_sandbox
from proctor.manifests.scope import Images, KubeObject, RunScope
from support.kube_objects import attempt, scope, suite_spec

ATTACKS = (Path(__file__).parent / "attacks.py").read_text("utf-8")
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
PATIENCE_SECONDS = 240
"""For anything that a busy node does in a second or two."""

NOTHING_AROUND = Surroundings(operator=Pods(namespace="nowhere"), store=(), datasets=(), seeding=(), api_server=())

_LISTEN = """
import http.server, socket, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
def names(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", port))
        while True:
            query, asker = server.recvfrom(512); server.sendto(query[:2] + b"\\x81\\x80", asker)
for port in {udp}: threading.Thread(target=names, args=(port,)).start()
for port in {tcp}: threading.Thread(target=http.server.ThreadingHTTPServer(("", port), Page).serve_forever).start()
"""


def listening(*tcp: int, udp: tuple[int, ...] = ()) -> tuple[str, ...]:
    """The command of a program that answers on ports, as a web server and as a name server."""
    return ("python3", "-c", _LISTEN.format(tcp=tcp, udp=udp))


@dataclass(frozen=True, slots=True)
class Field:
    """One namespace in which a run's children are tried.

    Attributes:
        kubectl: the cluster.
        run: whose children they are.
        owner: what they are deleted with; a ConfigMap in the place of the EvalRun.
    """

    kubectl: Kubectl
    run: RunScope
    owner: KubeObject

    def create(self, *objects: KubeObject) -> None:
        """Create objects as they were built, but for their owner."""
        owned = [{**item, "metadata": {**item["metadata"], "ownerReferences": [self.owner]}} for item in objects]
        self.kubectl.apply(*owned)

    def prepare(self, around: Surroundings | None = None, *, policies: bool = True) -> str:
        """Create all that cells need, and something that answers as their gateway; return its address."""
        self.ground()
        if policies:
            self.create(*build_policies(self.run, around or NOTHING_AROUND))
        deployment, service = build_gateway(self.run)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        container |= {"image": self.run.images.sandbox, "command": [*listening(8080, 9999)]}
        self.create(deployment, service)
        until(lambda: self.kubectl.get("deployment", self.run.names.gateway, self._here), _is_available)
        return f"{self.service_address(service)}:8080"

    @property
    def _here(self) -> str:
        return f"--namespace={self.run.namespace}"

    def ground(self) -> None:
        """Create what pods need before they can start."""
        keys = RunSecrets(run_key=b"k" * 32, operator_token="operator-token", dataset_password="dataset-password")
        self.create(
            build_account(self.run),
            build_suite(self.run),
            build_keys(self.run, keys),
            build_children(self.run, {"run": self.run.uid}),
            build_grades(self.run),
            self._secret(self.run.clickhouse_secret, user="store", password="store-password"),
            self._secret("licence", text="licence-text"),
            self._secret("candidate", token="candidate-token"),
        )

    def _secret(self, name: str, **values: str) -> KubeObject:
        metadata = {"name": name, "namespace": self.run.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}

    def cell(self, number: int, command: tuple[str, ...], *, gateway: str, env: Mapping[str, str]) -> KubeObject:
        """A sandbox pod as it is built, in which another program runs."""
        pod = build_sandbox(self.run, replace(attempt(), opaque_id=f"{number:020x}", gateway=gateway))
        container = pod["spec"]["containers"][0]
        container["command"] = [literal(word) for word in command]
        container["env"] += [{"name": name, "value": literal(value)} for name, value in env.items()]
        return pod

    def attacker(self, number: int, orders: Mapping[str, Any], *, gateway: str) -> KubeObject:
        """A sandbox pod in which an attacker's program follows orders."""
        return self.cell(number, ("python3", "-c", ATTACKS), gateway=gateway, env={"ATTACK": json.dumps(orders)})

    def plain(
        self,
        name: str,
        command: tuple[str, ...],
        *,
        labels: Mapping[str, str] | None = None,
        orders: Mapping[str, Any] | None = None,
    ) -> KubeObject:
        """A pod that no policy of the run is about: for what others listen to, and for positive controls."""
        pod = self.attacker(0, orders or {}, gateway="127.0.0.1:1")
        spec = pod["spec"]
        spec["containers"][0]["command"] = [literal(word) for word in command]
        del spec["initContainers"]
        # They only listen: a small node has to hold them beside what is tried.
        resources = spec["containers"][0]["resources"]
        spec["containers"][0]["resources"] = {**resources, "requests": {**resources["requests"], "cpu": "10m"}}
        spec["serviceAccountName"] = "default"
        spec["securityContext"]["sysctls"] = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
        pod["metadata"] |= {"name": name, "labels": dict(labels or {"app": name})}
        return pod

    def become_attacker(self, pod: KubeObject, orders: Mapping[str, Any]) -> None:
        """Put an attacker's program in the place of a pod's own."""
        container = pod["spec"]["containers"][0]
        container |= {"image": self.run.images.sandbox, "command": ["python3", "-c", literal(ATTACKS)]}
        container["env"] = [{"name": "ATTACK", "value": literal(json.dumps(orders))}]
        container.pop("startupProbe", None)

    def pod(self, name: str) -> KubeObject:
        """A pod as it is now."""
        found: KubeObject = self.kubectl.get("pod", name, self._here)
        return found

    def only(self, role: Role) -> KubeObject:
        """The one pod of a role that is ready."""

        def look() -> KubeObject:
            found = self.kubectl.get("pods", self._here, f"--selector=proctor.dev/role={role}")["items"]
            return dict(found[0]) if found else {"status": {}}

        return until(look, is_ready)

    def log(self, name: str) -> str:
        """What a pod wrote."""
        return self.kubectl.run("logs", name, self._here).stdout

    def service_address(self, service: KubeObject) -> str:
        """The address of a Service."""
        found = self.kubectl.get("service", service["metadata"]["name"], self._here)
        return str(found["spec"]["clusterIP"])

    def finished(self, name: str) -> KubeObject:
        """A pod once it has ended."""
        return until(lambda: self.pod(name), lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"})

    def address(self, name: str) -> str:
        """The address of a pod that is ready."""
        pod = until(lambda: self.pod(name), is_ready)
        return str(pod["status"]["podIP"])

    def report(self, name: str) -> Any:
        """What the attacker's program in a pod found."""
        pod = self.finished(name)
        said = self.log(name)
        assert pod["status"]["phase"] == "Succeeded", (said, pod["status"])
        return json.loads(said)

    def last_words(self, name: str) -> tuple[int, Any]:
        """The exit code of a pod, and its last words as JSON."""
        (status,) = self.finished(name)["status"]["containerStatuses"]
        ended = status["state"]["terminated"]
        return ended["exitCode"], json.loads(ended["message"])


def _is_available(deployment: KubeObject) -> bool:
    return bool(deployment.get("status", {}).get("availableReplicas") == 1)


def is_ready(pod: KubeObject) -> bool:
    conditions = {item["type"]: item["status"] for item in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def until(look: Callable[[], KubeObject], is_so: Callable[[KubeObject], bool]) -> KubeObject:
    """Look again and again until it is so; the last look is shown if it never is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so(found := look()):
        assert time.monotonic() < deadline, found.get("status")
        time.sleep(0.5)
    return found


@contextlib.contextmanager
def open_field(kubectl: Kubectl, images: Images, **suite: Any) -> Iterator[Field]:
    """A namespace in which Pod Security admits nothing but what is restricted; it is deleted at the end."""
    namespace = f"sandbox-{secrets.token_hex(4)}"
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": RESTRICTED}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "run", "namespace": namespace}},
    )
    try:
        uid = kubectl.get("configmap", "run", f"--namespace={namespace}")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "run", "uid": uid}
        run = scope(suite_spec(**suite), namespace=namespace, uid=uid, name="run", images=images)
        yield Field(kubectl, run, owner)
    finally:
        kubectl.run("delete", "namespace", namespace, "--wait=false")
