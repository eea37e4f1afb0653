"""As much of an API server as the adapter asks: who a token is, what a user may, whom to trust, which pods there are."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qsl

Json = dict[str, Any]


class FakeCluster:
    """A server with tokens, rights, ConfigMaps and pods that tests change as they go."""

    def __init__(self) -> None:
        self.tokens: dict[str, Json] = {}
        self.may: Callable[[Json], bool] = lambda spec: True
        self.reviews_fail = False
        self.access_reviews: list[Json] = []
        self.token_reviews: list[Json] = []
        self.objects: dict[str, dict[str, Json]] = {"configmaps": {}, "pods": {}}
        self._version = 100
        self._log: list[tuple[int, str, Json]] = []
        self._changed = asyncio.Condition()

    async def put(self, plural: str, name: str, namespace: str, **fields: Any) -> None:
        self._version += 1
        known = name in self.objects[plural]
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": str(self._version),
        }
        meta["labels"] = fields.pop("labels", {})
        thing = {"metadata": meta, **fields}
        self.objects[plural][name] = thing
        self._log.append((self._version, plural, {"type": "MODIFIED" if known else "ADDED", "object": thing}))
        async with self._changed:
            self._changed.notify_all()

    async def request(self, method: str, path: str, query: str, headers: Any, body: bytes) -> "Answered":
        plural = path.rsplit("/", 1)[1]
        if plural == "tokenreviews":
            return self._token_review(json.loads(body))
        if plural == "subjectaccessreviews":
            return self._access_review(json.loads(body))
        if plural in self.objects:
            return self._collection(plural, _namespace(path), dict(parse_qsl(query)))
        return Answered(404, status(404, "NotFound"))

    def _token_review(self, review: Json) -> "Answered":
        self.token_reviews.append(review["spec"])
        if self.reviews_fail:
            return Answered(500, status(500, "etcd is away"))
        user = self.tokens.get(review["spec"]["token"])
        found = {"authenticated": True, "user": user} if user else {"authenticated": False}
        return Answered(201, {"kind": "TokenReview", "status": found})

    def _access_review(self, review: Json) -> "Answered":
        self.access_reviews.append(review["spec"])
        if self.reviews_fail:
            return Answered(503, status(503, "etcd is away"))
        return Answered(201, {"kind": "SubjectAccessReview", "status": {"allowed": self.may(review["spec"])}})

    def _collection(self, plural: str, namespace: str, query: Json) -> "Answered":
        if query.get("watch"):
            return Answered(200, stream=self._watch(plural, namespace, int(query["resourceVersion"])))
        items = [one for one in self.objects[plural].values() if _is_in(one, namespace)]
        return Answered(
            200, {"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items}
        )

    async def _watch(self, plural: str, namespace: str, seen: int) -> AsyncIterator[bytes]:
        while True:
            for version, kind, event in self._log:
                if version > seen and kind == plural and _is_in(event["object"], namespace):
                    seen = version
                    yield json.dumps(event).encode() + b"\n"
            async with self._changed:
                await self._changed.wait()


def _namespace(path: str) -> str:
    """Return the namespace of a collection's path; empty if it is the whole cluster's."""
    parts = path.split("/")
    return parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""


def _is_in(thing: Json, namespace: str) -> bool:
    return not namespace or thing["metadata"]["namespace"] == namespace


class Answered:
    """An answer in the shape that the in-process transport takes."""

    def __init__(self, status: int, body: Any = None, *, stream: AsyncIterator[bytes] | None = None) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.body = json.dumps(body).encode()
        self.stream = stream


def status(code: int, message: str) -> Json:
    return {"kind": "Status", "status": "Failure", "code": code, "message": message}
