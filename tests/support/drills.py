"""Small runs on a real cluster, held at a known point, so that something can be broken there and then."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from proctor.manifests.names import ROLE_LABEL, RUN_LABEL, Role, RunNames
from proctor.manifests.pods import literal
from support.installed import Installed, await_it

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "quickstart.yaml"

SCORE = "0.8333"
"""What the scripted model `newest` gets on the quickstart's dataset: never 0, so that a 0 would be seen."""

_BEGIN = """
import json, os, sys, time
sys.path.insert(0, "/opt/agent")
from proctor_agent.__main__ import main
from proctor_agent.failures import AgentFailure
from proctor_agent.wire import find_gateway
gateway = find_gateway(os.environ)
brief = json.loads(gateway.fetch("GET", "/brief"))
def may_go(): return os.path.exists("/scratch/go")
def wait():
    while not may_go(): time.sleep(0.1)
print("at work", flush=True)
"""

PATIENT = f"""{_BEGIN}
wait()
sys.exit(main())
"""
"""Asks for its brief, waits until it is let go, then works as the builtin agent does."""

LINGERING = f"""{_BEGIN}
code = main()
print("answered", flush=True)
wait()
gateway.fetch("GET", "/brief")
sys.exit(code)
"""
"""Works as the builtin agent does, and ends once it is let go."""

CALLING = f"""{_BEGIN}
try:
    while not may_go():
        gateway.fetch("POST", "/tools/run_query", json.dumps(dict(query="SELECT sleep(3)")).encode())
except AgentFailure:
    print("cut off", flush=True)
    time.sleep(600)
sys.exit(main())
"""
"""Is in the middle of a call until it is let go; cut off, it just stays."""

GREEDY = f"""{_BEGIN}
held = []
while True: held.append(b"x" * 1_000_000)
"""
"""Takes memory until there is none."""

DEAF = f"""{_BEGIN}
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True: time.sleep(600)
"""
"""Does nothing, and doesn't listen to TERM."""

BOMB = f"""{_BEGIN}
if not brief["model"].endswith("loudest"):
    wait()
    sys.exit(main())
try:
    with open("/scratch/full", "wb", buffering=0) as file:
        while True: file.write(bytes(1_000_000))
except OSError:
    print("no more space", flush=True)
told = False
while True:
    try:
        if os.fork() == 0:
            while True: time.sleep(60)
    except OSError:
        if not told: print("no more processes", flush=True)
        told = True
        time.sleep(0.01)
"""
"""Played by `loudest`, fills its scratch and forks for ever; all others are patient."""

SMALL = {"cpu": "250m", "memory": "384Mi"}
"""Of a sandbox: several have room beside each other on a small node."""

STORE = "proctor-clickhouse-0"
_RUNNING = "pods,jobs,deployments,services"
_ALL = f"{_RUNNING},configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies"


def command(code: str) -> list[str]:
    """Return how an agent of Python's standard library is started; a manifest's words have no line breaks."""
    return ["python3", "-I", "-S", "-B", "-c", f"exec({code!r})"]


def build_spec(images: Mapping[str, str], code: str = PATIENT, **changes: Any) -> dict[str, Any]:
    """Return the quickstart's suite with one cell beside its controls, and an agent of one's own in it.

    Args:
        images: by folder of `images/`.
        code: what the agent does.
        changes: other fields of the suite.
    """
    spec: dict[str, Any] = YAML(typ="safe").load(EXAMPLE.read_text("utf-8"))["spec"]
    agent = {"command": command(code), "image": images["sandbox"]}
    return spec | {
        "servers": [server for server in spec["servers"] if server["name"] == "mcp-clickhouse"],
        "models": [model for model in spec["models"] if model["name"] == "newest"],
        "agent": spec["agent"] | {"runtime": "Command", "command": agent, "deadlineSeconds": 600},
        "replicates": 1,
        "gate": {"enforcement": "Audit", "minimum": "0.5"},
        "runOnChange": False,
        "sandbox": {"resources": {"limits": SMALL}},
        **changes,
    }


@dataclass(frozen=True)
class Drill:
    """One run, and its agents that are no controls.

    Attributes:
        name: of suite and run.
        uid: the run's.
    """

    installed: Installed
    name: str
    uid: str

    @classmethod
    def start(cls, installed: Installed, name: str, spec: Mapping[str, Any]) -> Drill:
        """Apply a suite, and a run of it."""
        kubectl, version = installed.kubectl, "proctor.dev/v1alpha1"
        metadata = {"name": name, "namespace": installed.namespace}
        run = {"suiteRef": {"name": name}}
        kubectl.apply(
            {"apiVersion": version, "kind": "EvalSuite", "metadata": metadata, "spec": spec},
            {"apiVersion": version, "kind": "EvalRun", "metadata": metadata, "spec": run},
        )
        uid: str = kubectl.get("evalrun", name, f"--namespace={installed.namespace}")["metadata"]["uid"]
        return cls(installed, name, uid)

    @property
    def prefix(self) -> str:
        """What the names of all children begin with."""
        return RunNames.of(self.uid).prefix

    @property
    def selector(self) -> str:
        """What selects all children of the run."""
        return f"--selector={RUN_LABEL}={self.prefix}"

    def status(self) -> dict[str, Any]:
        """Return the run's status."""
        return self.installed.status(self.name)

    def patch(self, kind: str, change: Mapping[str, Any]) -> None:
        """Change the suite or the run."""
        self.kubectl("patch", kind, self.name, "--type=merge", f"--patch={json.dumps(change)}")

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """Run a command in the run's namespace."""
        return self.installed.kubectl.run(f"--namespace={self.installed.namespace}", *words, stdin=stdin).stdout

    def remove(self) -> None:
        """Delete suite and run, whatever has become of them."""
        for kind in ("evalsuite", "evalrun"):
            self.kubectl("delete", kind, self.name, "--ignore-not-found", "--wait=false")

    def is_ready(self, role: Role) -> bool:
        """Say whether a pod of a role is there, and every one of them may be called."""
        pods = self._pods(role)
        ready = [each for pod in pods for each in pod["status"].get("conditions", []) if each["type"] == "Ready"]
        return bool(pods) and all(each["status"] == "True" for each in ready) and len(ready) == len(pods)

    def agents(self) -> list[str]:
        """Return the pods of sandboxes, controls included."""
        return [str(pod["metadata"]["name"]) for pod in self._pods(Role.SANDBOX)]

    def await_agent(self, *, code: str = PATIENT, says: str = "at work", after: str = "") -> str:
        """Return the pod of an agent once it has said something.

        Args:
            code: what the agent does: no control does that.
            says: a line of its log.
            after: a pod that is not meant.
        """
        return await_it(f"{self.name}: an agent says {says!r}", lambda: self._find(code, says, after))

    def let_go(self, pod: str) -> None:
        """Let an agent go on."""
        self.kubectl("exec", pod, "--container=agent", "--", "python3", "-c", "open('/scratch/go', 'w')")

    def suspend_grader(self, *, suspend: bool) -> None:
        """Take the grader away, or let it come back, which then is another pod."""
        change = json.dumps({"spec": {"suspend": suspend}})
        self.kubectl("patch", "job", RunNames.of(self.uid).grade, "--type=merge", f"--patch={change}")

    def log(self, pod: str) -> str:
        """Return what an agent has said so far."""
        return self.kubectl("logs", pod, "--container=agent")

    def phase(self, pod: str) -> str:
        """Return how far a pod is."""
        return self.kubectl("get", "pod", pod, "--output=jsonpath={.status.phase}")

    def await_verdict(self) -> dict[str, Any]:
        """Return the status once its verdict is final."""
        return await_it(f"{self.name}: a verdict", self._terminal)

    def await_released(self) -> None:
        """Wait until nothing of the run runs any more."""
        await_it(f"{self.name}: all children are gone", lambda: not self.children(_RUNNING))

    def await_removed(self) -> None:
        """Wait until nothing is left of a run that was deleted."""
        await_it(f"{self.name}: everything is gone", lambda: not self.children(_ALL))

    def children(self, kinds: str) -> list[str]:
        """Return the names of the run's objects of some kinds."""
        return self.kubectl("get", kinds, self.selector, "--output=name").split()

    def attempts(self, *, controls: bool = False) -> list[tuple[int, str]]:
        """Return number and outcome of each attempt that the store has, of cells or of controls."""
        rows = query(self.installed, _ATTEMPTS.format(run=self.uid, no="" if controls else "NOT "))
        return [(int(attempt), outcome) for attempt, outcome in rows]

    def _find(self, code: str, says: str, after: str) -> str | None:
        for pod in self._pods(Role.SANDBOX):
            name, agent = pod["metadata"]["name"], pod["spec"]["containers"][0]
            meant = name != after and agent["command"] == [literal(word) for word in command(code)]
            if meant and pod["status"]["phase"] == "Running" and says in self.log(name).splitlines():
                return str(name)
        ended = self._terminal()
        assert ended is None, f"{self.name}: {ended['reason']}: {ended['summary']}"
        return None

    def _pods(self, role: Role) -> list[dict[str, Any]]:
        selector = f"{self.selector},{ROLE_LABEL}={role}"
        pods: list[dict[str, Any]] = json.loads(self.kubectl("get", "pods", selector, "--output=json"))["items"]
        return pods

    def _terminal(self) -> dict[str, Any] | None:
        status = self.status()
        return status if status.get("verdict", "Pending") != "Pending" else None


_ATTEMPTS = (
    "SELECT DISTINCT attempt, outcome FROM proctor.attempts "
    "WHERE run = '{run}' AND {no}startsWith(model, '~') ORDER BY attempt, outcome"
)
_ASK = """
import base64, os, sys, urllib.request
user = f"{os.environ['PROCTOR_ADMIN_USER']}:{os.environ['PROCTOR_ADMIN_PASSWORD']}".encode()
headers = {"Authorization": "Basic " + base64.b64encode(user).decode()}
request = urllib.request.Request("http://127.0.0.1:8123/", sys.argv[1].encode(), headers)
print(urllib.request.urlopen(request).read().decode())
"""


def query(installed: Installed, sql: str) -> list[list[str]]:
    """Return rows of the store, asked from within its own pod."""
    words = ("exec", STORE, f"--namespace={installed.release}", "--", "python3", "-c", _ASK, sql)
    text = installed.kubectl.run(*words).stdout
    return [line.split("\t") for line in text.splitlines() if line]


@contextlib.contextmanager
def without_store(installed: Installed) -> Iterator[None]:
    """Restart the store, and let nobody find it until this is over; what it has stored stays."""
    _select_store(installed, '"nobody"')
    try:
        here = f"--namespace={installed.release}"
        installed.kubectl.run("exec", STORE, here, "--", "python3", "-c", "import os; os.kill(1, 15)")
        await_it("the store is restarted", lambda: _is_restarted(installed))
        yield
    finally:
        _select_store(installed, "null")


def _select_store(installed: Installed, value: str) -> None:
    patch = f'{{"spec": {{"selector": {{"drill": {value}}}}}}}'
    where = f"--namespace={installed.release}"
    installed.kubectl.run("patch", "service", "proctor-clickhouse", where, "--type=merge", f"--patch={patch}")


def _is_restarted(installed: Installed) -> bool:
    status = installed.kubectl.get("pod", STORE, f"--namespace={installed.release}")["status"]["containerStatuses"][0]
    return bool(status["restartCount"] and status["ready"])
