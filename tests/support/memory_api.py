"""An API server in memory, behind the operator's own client: names, uids, labels, owners, patches and failures."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from proctor.adapters.kube.client import KubeClient
from proctor.adapters.kube.kinds import KINDS, Kind

Json = dict[str, Any]
Fault = Callable[[str, str], int | None]
"""Given method and path, the status that the API server fails with; None if it doesn't."""

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class ApiDied(Exception):  # noqa: N818 - says what happened
    """Whoever called the API server is dead: nothing comes back."""


@dataclass
class Doom:
    """Kills the operator right after one of its effects.

    Attributes:
        at: which, counted from 1; 0 for none.
        effects: brought about so far.
    """

    at: int = 0
    effects: int = 0

    def strike(self) -> None:
        """Take note of an effect.

        Raises:
            ApiDied: it was the last one.
        """
        self.effects += 1
        if self.effects == self.at:
            raise ApiDied


@dataclass
class _Configuration:
    host: str = ""


@dataclass
class _Response:
    status: int
    body: bytes
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        return self.body


@dataclass(frozen=True)
class Request:
    """One request that was served."""

    method: str
    path: str
    body: Any


@dataclass
class MemoryApi:
    """The server.

    Attributes:
        objects: by plural, namespace and name.
        now: what its clock says; it stands still until told.
        requests: what was asked of it, in order.
        fault: fails requests before they are served.
        lost: fails requests after they were served: whoever asked doesn't learn that it was done.
        doom: kills who asks, after an effect.
        refuse: why an object is not admitted; empty if it is.
    """

    objects: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    now: datetime = START
    requests: list[Request] = field(default_factory=list)
    fault: Fault = lambda _method, _path: None
    lost: Fault = lambda _method, _path: None
    doom: Doom = field(default_factory=Doom)
    refuse: Callable[[Json], str] = lambda _body: ""
    configuration: _Configuration = field(default_factory=_Configuration)
    _count: int = 0

    def client(self) -> KubeClient:
        return KubeClient(self, pause=_no_pause)  # type: ignore[arg-type] # all of an ApiClient that the client uses

    def clock(self) -> datetime:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def every(self, kind: Kind, **labels: str) -> list[Json]:
        wanted = {name.replace("__", "/").replace("_", "."): value for name, value in labels.items()}
        return [
            body for (plural, _, _), body in list(self.objects.items()) if plural == kind.plural and _has(body, wanted)
        ]

    def one(self, kind: Kind, name: str, namespace: str = "team") -> Json:
        return self.objects[kind.plural, namespace, name]

    def put(self, body: Json) -> Json:
        """Create an object, as anybody may."""
        kind = KINDS[body["kind"]]
        metadata = body["metadata"]
        self._count += 1
        stored: Json = copy.deepcopy(body)
        stored["metadata"] |= {
            "uid": f"uid-{self._count:05d}",
            "creationTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resourceVersion": str(self._count),
            "generation": 1,
        }
        if kind.name == "Service":
            stored["spec"]["clusterIP"] = f"10.96.{self._count // 250}.{self._count % 250 + 1}"
        if kind.name in {"EvalRun", "EvalSuite"}:
            stored["status"] = {"observedGeneration": -1}
        self.objects[kind.plural, metadata["namespace"], metadata["name"]] = stored
        return stored

    def remove(self, kind: Kind, name: str, namespace: str = "team") -> None:
        """Delete an object with all that it owns."""
        gone = self.objects.pop((kind.plural, namespace, name), None)
        if gone is None:
            return
        uid = gone["metadata"]["uid"]
        for (plural, where, other), body in list(self.objects.items()):
            owners = body["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == uid for owner in owners) and (plural, where, other) in self.objects:
                self.remove(KINDS[body["kind"]], other, where)

    def respec(self, kind: Kind, name: str, patch: Json, namespace: str = "team") -> None:
        """Change an object's spec, as a person does."""
        body = self.one(kind, name, namespace)
        body["spec"] = _merge(body["spec"], patch)
        body["metadata"]["generation"] += 1

    async def close(self) -> None:
        """Nothing is held."""

    async def update_params_for_auth(self, *_: Any) -> None:
        """Nobody has to say who they are."""

    async def call_api(self, method: str, url: str, _headers: Json, body: Any, **_: Any) -> _Response:
        path, _, query = url.partition("?")
        failed = self.fault(method, path)
        if failed is not None:
            return _answer(failed, {"message": "it fails on purpose"})
        self.requests.append(Request(method, path, body))
        status, reply = self._serve(method, path, dict(parse_qsl(query)), copy.deepcopy(body))
        if method != "GET" and "dryRun" not in query:
            self.doom.strike()
        lost = self.lost(method, path)
        if lost is not None:
            return _answer(lost, {"message": "it was done, but who asked doesn't learn of it"})
        return _answer(status, reply)

    def _serve(self, method: str, path: str, query: Json, body: Any) -> tuple[int, Json]:
        kind, namespace, name, sub = _parse(path)
        if name is None:
            return self._serve_collection(method, kind, namespace, query=query, body=body)
        key = (kind.plural, namespace or "", name)
        found = self.objects.get(key)
        if found is None:
            return 404, {"message": f"{kind} {namespace}/{name} not found"}
        if method == "DELETE":
            return self._delete(kind, key, found, body)
        return 200, copy.deepcopy(found if method == "GET" else self._patch(found, body, sub))

    def _serve_collection(
        self, method: str, kind: Kind, namespace: str | None, *, query: Json, body: Any
    ) -> tuple[int, Json]:
        if method == "POST":
            refusal = self.refuse(body)
            if refusal or "dryRun" in query:
                return (403, {"message": refusal}) if refusal else (201, body)
            return self._create(kind, namespace, body)
        items = self._select(kind, namespace, query)
        if method == "GET":
            return 200, {"items": copy.deepcopy(items)}
        for item in items:
            self.remove(kind, item["metadata"]["name"], item["metadata"]["namespace"])
        return 200, {}

    def _create(self, kind: Kind, namespace: str | None, body: Json) -> tuple[int, Json]:
        assert body["metadata"]["namespace"] == namespace
        key = (kind.plural, namespace, body["metadata"]["name"])
        if key in self.objects:
            return 409, {"message": f"{kind} {key[1]}/{key[2]} already exists"}
        return 201, copy.deepcopy(self.put(body))

    def _delete(self, kind: Kind, key: tuple[str, str, str], found: Json, options: Json) -> tuple[int, Json]:
        uid = (options.get("preconditions") or {}).get("uid")
        if uid is not None and uid != found["metadata"]["uid"]:
            return 409, {"message": "another object has the name"}
        self.remove(kind, key[2], key[1])
        return 200, {}

    def _patch(self, found: Json, patch: Json, sub: str | None) -> Json:
        if sub == "status":
            found["status"] = _merge(found.get("status") or {}, patch["status"])
            return found
        for name, value in patch.items():
            found[name] = _merge(found.get(name) or {}, value)
        return found

    def _select(self, kind: Kind, namespace: str | None, query: Json) -> list[Json]:
        pairs = (pair.split("=", 1) for pair in query.get("labelSelector", "").split(",") if pair)
        wanted = dict(pairs)
        return [
            body
            for (plural, where, _), body in list(self.objects.items())
            if plural == kind.plural and namespace in {None, where} and _has(body, wanted)
        ]


async def _no_pause(_seconds: float) -> None:
    """Time passes only when the test says so."""


def _parse(path: str) -> tuple[Kind, str | None, str | None, str | None]:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = None
    if parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    plural, name, sub = (*parts, None, None)[:3]
    return next(kind for kind in KINDS.values() if kind.plural == plural), namespace, name, sub


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _has(body: Json, labels: Mapping[str, str]) -> bool:
    own = body["metadata"].get("labels") or {}
    return all(own.get(name) == value for name, value in labels.items())


def _answer(status: int, body: Json) -> _Response:
    return _Response(status, json.dumps(body).encode(), {})
