"""The Kubernetes client: reads, writes and subresources of any kind, over any transport.

A write carries a precondition if the caller names it and the API has it, and can be fenced by a lease. `sender` decides
which requests are retried.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.codec.lists import Reduce, read_pages
from trimtab.cluster.codec.objects import ListPage, decode_answer
from trimtab.cluster.lanes import OBJECTS, Lane, LaneLimits
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.sender import DryRun, Sender
from trimtab.cluster.transport import NO_HEADERS, Query, Request, Response, Transport
from trimtab.model.json import wire


class PatchType(Enum):
    """The content types of patches."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold on the server for a write to be accepted."""

    uid: str | None = None
    resource_version: str | None = None

    def as_json(self) -> Json:
        """Return the fields that are set, in the API's spelling."""
        pairs = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {name: value for name, value in pairs.items() if value}

    def within(self, body: Any, how: PatchType) -> Any:
        """Return the patch with the preconditions."""
        wanted = self.as_json()
        if not wanted:
            return body
        if how is PatchType.JSON:
            # A failed test is a 422. Another resourceVersion in the result is a 409, as in the other kinds of patches.
            operations = {"uid": "test", "resourceVersion": "add"}
            conditions = [
                {"op": operations[name], "path": f"/metadata/{name}", "value": value}
                for name, value in wanted.items()
            ]
            return [*conditions, *body]
        return {**body, "metadata": {**body.get("metadata", {}), **wanted}}


NO_PRECONDITIONS = Preconditions()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion."""

    preconditions: Preconditions = NO_PRECONDITIONS
    grace_seconds: int | None = None
    propagation: str | None = None

    def as_json(self) -> Json:
        """Return the options that are set, in the API's spelling."""
        pairs: Mapping[str, Any] = {
            "preconditions": self.preconditions.as_json() or None,
            "gracePeriodSeconds": self.grace_seconds,
            "propagationPolicy": self.propagation,
        }
        return {name: value for name, value in pairs.items() if value is not None}


DELETE_DEFAULTS = DeleteOptions()


T = TypeVar("T")
R = TypeVar("R")

PAGE_SIZE = 500
"""Objects per page of a list. Paging costs no time and limits the peak memory to one page."""

FIELD_MANAGER = "trimtab"
_PODS: Resource[Json] = Resource("", "v1", "pods", "Pod", Json)
_MAX_DECISIONS = 5

WITHOUT_MANAGED_FIELDS = {"Accept": "application/json;drop=metadata.managedFields,application/json"}
"""Asks the server to leave out `metadata.managedFields`, as Kubernetes 1.38 can (KEP-5958).

The header needs no knowledge of the server: kube-apiserver ignores parameters that it does not have, and a server that
rejects unknown parameters finds plain JSON after the comma. So no list costs a second request.
"""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Selects the objects of a resource to list or watch."""

    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    drops_managed_fields: bool = False
    """Whether `metadata.managedFields` may be missing. It is the only field that says which client wrote last."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of requests."""
        return WITHOUT_MANAGED_FIELDS if self.drops_managed_fields else NO_HEADERS

    def query(self) -> list[tuple[str, str]]:
        """Return the query parameters."""
        pairs = (("labelSelector", self.labels), ("fieldSelector", self.fields))
        return [(name, value) for name, value in pairs if value]


EVERYTHING = ListOptions()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects of a list, and its resourceVersion."""

    items: tuple[T, ...]
    resource_version: str


class Client:
    """A client of one API server. `fenced` returns a cheap copy on the same connections."""

    def __init__(
        self,
        clock: Clock,
        transport: Transport,
        *,
        qps: float | None = None,
        burst: int = 10,
        seed: int | None = None,
    ) -> None:
        jitter = random.Random(seed)  # noqa: S311 - spreads requests in time, keeps no secret
        self.clock = clock
        self.sender = Sender(clock, transport, Lane(clock, jitter, OBJECTS, qps=qps, burst=burst), jitter)

    def fenced(self, fence: Fence) -> "Client":
        """Return a client on the same connections whose writes `fence` can stop."""
        return self._with(self.sender.fenced(fence))

    def in_lane(self, limits: LaneLimits) -> "Client":
        """Return a client whose requests have connections, turns and a rate limiter of their own."""
        return self._with(self.sender.in_lane(limits))

    def in_dry_run(self, rule: DryRun) -> "Client":
        """Return a client on the same connections that sends only the writes of a dry run."""
        return self._with(self.sender.in_dry_run(rule))

    @property
    def is_dry_run(self) -> bool:
        """Return whether this client belongs to a dry run."""
        return self.sender.dry_run is not None

    def _with(self, sender: Sender) -> "Client":
        other = Client(self.clock, sender.transport)
        other.sender = sender
        return other

    async def close(self) -> None:
        """Close the transport's connections."""
        await self.sender.transport.close()

    async def get(self, resource: Resource[T], name: str, namespace: str | None = None) -> T:
        """Read an object."""
        act = f"reading {resource.describe(namespace, name)}"
        return await self.read(act, resource.path(namespace, name), resource.struct)

    async def read(self, act: str, path: str, into: type[T], *, query: Query = ()) -> T:
        """Read and decode any path, for subresources and for paths without a resource such as discovery."""
        answer = await self.sender.send(act, Request("GET", path, query))
        return decode_answer(act, answer.body, into)

    def pages(
        self,
        resource: Resource[T],
        selection: ListOptions = EVERYTHING,
        *,
        limit: int = PAGE_SIZE,
        retry: bool = True,
        reduce: Reduce | None = None,
    ) -> AsyncGenerator[ListPage[T], None]:
        """Return the pages of a list. A `limit` of 0 requests a single page.

        `reduce` returns what is kept of an object, while its page arrives.
        """
        act = f"listing {resource.describe(selection.namespace, None)}"
        query = selection.query() + ([("limit", str(limit))] if limit else [])

        def ask(token: str, into: Callable[[bytes], None]) -> Coroutine[Any, Any, Response]:
            more = [("continue", token)] if token else []
            path = resource.path(selection.namespace)
            request = Request("GET", path, [*query, *more], selection.headers())
            if retry:
                return self.sender.send(act, request)  # whole: what is sent twice is not taken in twice
            return self.sender.send_in_turn(act, msgspec.structs.replace(request, into=into))

        return read_pages(act, resource.struct, ask, reduce)

    async def list(self, resource: Resource[T], selection: ListOptions = EVERYTHING) -> Listing[T]:
        """List all selected objects. An expired continue token starts again without pages."""
        try:
            return await self._collect(resource, selection, PAGE_SIZE)
        except errors.Gone:
            return await self._collect(resource, selection, 0)

    async def create(
        self, resource: Resource[T], body: Any, namespace: str | None = None, *, query: Query = ()
    ) -> T:
        """Create an object."""
        act = f"creating {resource.describe(namespace, None)}"
        answer = await self.sender.send(act, _request("POST", resource.path(namespace), body, query=query))
        return decode_answer(act, answer.body, resource.struct)

    async def update(
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None,
        body: Any,
        *,
        subresource: str | None = None,
    ) -> T:
        """Replace an object. `body` is the whole object with the resourceVersion that was read."""
        act = f"updating {resource.describe(namespace, name)}"
        answer = await self.sender.send(
            act, _request("PUT", resource.path(namespace, name, subresource), body)
        )
        return decode_answer(act, answer.body, resource.struct)

    async def patch(  # noqa: PLR0913 - one parameter per option of the request
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None,
        body: Any,
        *,
        how: PatchType = PatchType.MERGE,
        preconditions: Preconditions = NO_PRECONDITIONS,
        subresource: str | None = None,
        is_dry_run: bool = False,
    ) -> T:
        """Patch an object. The preconditions become part of the patch."""
        what = f"{subresource} of " if subresource else ""
        act = f"patching {what}{resource.describe(namespace, name)}"
        query = [("fieldManager", FIELD_MANAGER)]
        query += [("force", "true")] if how is PatchType.APPLY else []
        query += [("dryRun", "All")] if is_dry_run else []
        path = resource.path(namespace, name, subresource)
        request = _request(
            "PATCH", path, preconditions.within(body, how), query=query, content_type=how.value
        )
        try:
            answer = await self.sender.send(act, request)
        except errors.Invalid as error:
            if preconditions.uid and any(cause.field == "metadata.uid" for cause in error.details.causes):
                # kube-apiserver reads another uid as an attempt to change it; to us it means "not the one we saw".
                raise errors.Conflict.like(error) from error
            raise
        return decode_answer(act, answer.body, resource.struct)

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str | None = None,
        *,
        options: DeleteOptions = DELETE_DEFAULTS,
    ) -> None:
        """Delete an object."""
        act = f"deleting {resource.describe(namespace, name)}"
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options.as_json()}
        await self.sender.send(act, _request("DELETE", resource.path(namespace, name), body))

    async def evict(
        self,
        name: str,
        namespace: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        dry_run: bool = False,
    ) -> None:
        """Request a pod's eviction. TooManyRequests means that a disruption budget forbids it now."""
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if options := DeleteOptions(preconditions).as_json():
            body["deleteOptions"] = options
        query = [("dryRun", "All")] if dry_run else []
        request = _request("POST", _PODS.path(namespace, name, "eviction"), body, query=query)
        # This 429 is about a pod's disruption budget, not about the server's load, so it starts no rate limit.
        await self.sender.send_once(f"evicting pods {namespace}/{name}", request)

    async def resize(
        self, name: str, namespace: str, spec: Json, *, preconditions: Preconditions = NO_PRECONDITIONS
    ) -> Json:
        """Resize a running pod in place, through `pods/resize`."""
        how = PatchType.STRATEGIC
        body = {"spec": spec}
        return await self.patch(
            _PODS, name, namespace, body, how=how, preconditions=preconditions, subresource="resize"
        )

    async def _collect(self, resource: Resource[T], selection: ListOptions, limit: int) -> Listing[T]:
        items: list[T] = []
        version = ""
        async with aclosing(self.pages(resource, selection, limit=limit)) as pages:
            async for page in pages:
                items += page.items
                version = page.resource_version
        return Listing(tuple(items), version)


async def retry_on_conflict(
    decide_and_write: Callable[[], Awaitable[R]], *, tries: int = _MAX_DECISIONS
) -> R:
    """Run a step that reads, decides and writes. On a conflict run the whole step again.

    The step must read inside, so that a decision on the old state is never written over the new one.
    """
    for _ in range(tries - 1):
        try:
            return await decide_and_write()
        except errors.Conflict as error:
            if isinstance(error, errors.AlreadyExists):
                raise
    return await decide_and_write()


def _request(
    method: str, path: str, body: Any, *, query: Query = (), content_type: str = "application/json"
) -> Request:
    return Request(method, path, query, {"Content-Type": content_type}, wire.encode(body))
