"""A thin client of the API server: plain dictionaries in and out, every effect safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import ApiClient

from proctor.adapters.kube.kinds import EVENT, KINDS, Kind
from proctor.adapters.kube.replies import Reply, parse_reply, to_error
from proctor.errors import Retryable, Terminal

Object = dict[str, Any]

_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=5)
_PAGE = 500
_PAUSES = (0.1, 0.4)
_LONGEST_PAUSE = 2.0
"""A pass that waits longer is better made anew."""
_BUSY = frozenset({429, 500, 502, 503, 504})
_MERGE = "application/merge-patch+json"


class KubeClient:
    """Speaks to one API server.

    Args:
        api: connects, authenticates, and reads tokens anew.
        pause: waits some seconds between two tries.

    Attributes:
        requests: how many were sent; for figures.
    """

    def __init__(self, api: ApiClient, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._api = api
        self._pause = pause
        self.requests = 0

    async def close(self) -> None:
        """Let go of the connections."""
        await self._api.close()  # type: ignore[no-untyped-call] # generated code

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object; None if there is none.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        path = kind.path(namespace, name)
        reply = await self._send("GET", path, attempted=f"reading {kind} {namespace}/{name}", absent_ok=True)
        return None if reply.status == HTTPStatus.NOT_FOUND else dict(reply.body)

    async def list(self, kind: Kind, namespace: str | None, *, labels: Mapping[str, str] | None = None) -> list[Object]:
        """Return the objects of a kind, in pages.

        Args:
            kind: their kind.
            namespace: None for all namespaces.
            labels: all of which they have.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        query: dict[str, str | int] = {"limit": _PAGE}
        if labels:
            query["labelSelector"] = render_selector(labels)
        found: list[Object] = []
        while True:
            path = f"{kind.path(namespace)}?{urlencode(query)}"
            reply = await self._send("GET", path, attempted=f"listing {kind} in {namespace or 'all namespaces'}")
            found += reply.body.get("items") or []
            following = (reply.body.get("metadata") or {}).get("continue")
            if not following:
                return found
            query["continue"] = following

    async def create(self, body: Object) -> Object:
        """Create an object; one of the same name and the same owner counts as created.

        Raises:
            Retryable: not now.
            Terminal: somebody else's object has the name.
            InvalidInput: the API server refuses the object.
        """
        kind, metadata = KINDS[body["kind"]], body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        reply = await self._create(kind, body)
        if reply.status != HTTPStatus.CONFLICT:
            return dict(reply.body)
        existing = await self.get(kind, namespace, name)
        if existing is None or existing["metadata"].get("deletionTimestamp"):
            raise Retryable(f"creating {kind} {namespace}/{name}: one of that name is just going away")
        if owner_uids(existing) != owner_uids(body):
            raise Terminal(f"creating {kind} {namespace}/{name}: another owner has an object of that name; remove it")
        return existing

    async def create_unread(self, body: Object) -> None:
        """Create an object that is never read back, such as a Secret; one of the same name counts as created.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the API server refuses the object.
        """
        await self._create(KINDS[body["kind"]], body)

    async def try_create(self, body: Object) -> str:
        """Return why an object would be refused; empty if it would not be, or that can't be told.

        Raises:
            Retryable: not now.
        """
        kind, namespace = KINDS[body["kind"]], body["metadata"]["namespace"]
        reply = await self._request("POST", f"{kind.path(namespace)}?dryRun=All", body)
        if reply.status in {HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}:
            error = to_error(reply, f"trying {kind} {namespace}/{body['metadata']['name']}")
            if isinstance(error, Retryable):
                raise error
            return str(reply.body.get("message", reply.status))
        return ""

    async def merge(self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any]) -> Object | None:
        """Patch an object; return it as it is then, or None if there is none.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the API server refuses the patch.
        """
        return await self._patch(kind, kind.path(namespace, name), patch, f"{namespace}/{name}")

    async def merge_status(self, kind: Kind, namespace: str, name: str, status: Mapping[str, Any]) -> Object | None:
        """Patch an object's status; return it as it is then, or None if there is none.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the API server refuses the patch.
        """
        path = kind.path(namespace, name) + "/status"
        return await self._patch(kind, path, {"status": status}, f"{namespace}/{name} status")

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Delete an object; one that is gone, or another of the same name, is left alone.

        Args:
            kind: its kind.
            namespace: where it is.
            name: its name.
            uid: delete it only if it has this uid.
            grace_seconds: a pod's time to end; None for its own.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        attempted = f"deleting {kind} {namespace}/{name}"
        reply = await self._request("DELETE", kind.path(namespace, name), options)
        if not reply.ok and reply.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            raise to_error(reply, attempted)

    async def delete_all(self, kind: Kind, namespace: str, *, labels: Mapping[str, str]) -> None:
        """Delete every object of a kind that has all labels.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        path = f"{kind.path(namespace)}?{urlencode({'labelSelector': render_selector(labels)})}"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self._send("DELETE", path, options, attempted=f"deleting {kind} in {namespace}", absent_ok=True)

    async def note(self, event: Object) -> None:
        """Create a Kubernetes Event; one of the same name counts as created.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the API server refuses it.
        """
        await self._create(EVENT, event)

    async def _create(self, kind: Kind, body: Object) -> Reply:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        reply = await self._request("POST", kind.path(namespace), body)
        if reply.ok or reply.status == HTTPStatus.CONFLICT:
            return reply
        raise to_error(reply, f"creating {kind} {namespace}/{name}")

    async def _patch(self, kind: Kind, path: str, patch: Mapping[str, Any], name: str) -> Object | None:
        reply = await self._send("PATCH", path, patch, attempted=f"patching {kind} {name}", absent_ok=True)
        return None if reply.status == HTTPStatus.NOT_FOUND else dict(reply.body)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        attempted: str,
        absent_ok: bool = False,
    ) -> Reply:
        reply = await self._request(method, path, body)
        if reply.ok or (absent_ok and reply.status == HTTPStatus.NOT_FOUND):
            return reply
        raise to_error(reply, attempted)

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Send a request, and again where the API server is busy: whatever is asked for may be asked for twice."""
        for pause in _PAUSES:
            try:
                reply = await self._request_once(method, path, body)
            except Retryable:
                await self._pause(pause)
                continue
            if reply.status not in _BUSY:
                return reply
            await self._pause(min(reply.retry_after or pause, _LONGEST_PAUSE))
        return await self._request_once(method, path, body)

    async def _request_once(self, method: str, path: str, body: Mapping[str, Any] | None) -> Reply:
        self.requests += 1
        kind = _MERGE if method == "PATCH" else "application/json"
        headers = {"Accept": "application/json", "Content-Type": kind}
        try:
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            url = self._api.configuration.host + path
            response = await self._api.call_api(method, url, headers, body, _request_timeout=_TIMEOUT)
            content = await response.read()  # type: ignore[no-untyped-call] # generated code
            return parse_reply(response.status, content, response.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Retryable(f"{method} {path.partition('?')[0]}: {e or type(e).__name__}") from e


def render_selector(labels: Mapping[str, str]) -> str:
    """Return labels as the API server's selectors write them."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def owner_uids(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the uids of an object's owners."""
    return frozenset(owner["uid"] for owner in body["metadata"].get("ownerReferences") or ())
