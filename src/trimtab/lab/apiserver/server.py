"""The lab's API server: one object that answers requests, with or without a socket in front of it.

`Server.request` is the whole of it; the ASGI app and the in-process transport are thin shells around that call. All
state is in memory and owned by one event loop.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from types import TracebackType

from trimtab.clock import Clock
from trimtab.lab.admission import AdmissionChain
from trimtab.lab.admission.pod_resources import LimitRanger, PodResizeValidator
from trimtab.lab.admission.webhooks import Webhooks
from trimtab.lab.apiserver.access_reviews import Reviews
from trimtab.lab.apiserver.aggregator import Aggregation
from trimtab.lab.apiserver.authentication import Tokens, impersonated
from trimtab.lab.apiserver.errors import StatusError, internal, too_large_body
from trimtab.lab.apiserver.outbound import Outbound
from trimtab.lab.apiserver.rbac import Attributes, RbacAuthorizer
from trimtab.lab.apiserver.request import (
    MAX_BODY,
    ApiRequest,
    ApiResponse,
    RequestPath,
    RequestUser,
    parse_path,
    parse_query,
    verb_of,
)
from trimtab.lab.apiserver.routes import NonResourceRoutes, ResourceRoutes
from trimtab.lab.controllers.disruption import Budgets
from trimtab.lab.controllers.garbage_collector import GarbageCollector
from trimtab.lab.crd.definitions import DefinitionKeeper
from trimtab.lab.handlers.create_update import WriteHandler
from trimtab.lab.handlers.delete import DeleteHandler
from trimtab.lab.handlers.get_list import ReadHandler
from trimtab.lab.handlers.patch import Patching
from trimtab.lab.handlers.pod_subresources import PodActions
from trimtab.lab.handlers.scale import Scales
from trimtab.lab.handlers.selectors import selected_name
from trimtab.lab.metrics.apis import MetricsApi
from trimtab.lab.resources.builtin import builtin_resources
from trimtab.lab.resources.registry import Registry
from trimtab.lab.storage.bootstrap import Identities, create_first_objects, put_object
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore
from trimtab.lab.storage.watch_cache import HISTORY
from trimtab.model.feature_gates import FeatureGates

LOG = logging.getLogger(__name__)
#: The lab switches every gate of the seeds on; it shows what they do.
LAB_GATES = FeatureGates.of(
    {
        "HPASelectionStrategy": True,
        "HPAScaleToZero": True,
        "HPAConfigurableTolerance": True,
        "VPASelectorRefinement": True,
    }
)


class Server:
    """An in-memory Kubernetes API server.

    Use it as an async context manager: its garbage collector and its budgets run as tasks in between. With a `seed`
    every uid, token and generated name repeats, so that equal runs give equal bytes.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int | None = None,
        gates: FeatureGates = LAB_GATES,
        history: int = HISTORY,
        tracks_fields: bool = True,
    ) -> None:
        self.clock = clock
        self.identities = Identities(seed)
        self.store = ObjectStore(history)
        self.registry = Registry(builtin_resources(gates))
        self.tokens = Tokens(self.identities)
        self.authorizer = RbacAuthorizer(self.store)
        self.outbound = Outbound(self.store)
        admission = AdmissionChain(
            (
                LimitRanger(self.store),
                Webhooks(self.store, self.identities, self.outbound),
                PodResizeValidator(self.store),
            )
        )
        reads = ReadHandler(clock, self.store)
        writes = WriteHandler(clock, self.store, self.identities, admission, tracks_fields=tracks_fields)
        deletion = DeleteHandler(clock, self.store, admission, reads)
        self.metrics = MetricsApi(clock, self.store, reads)
        self.aggregation = Aggregation(self.store, self.registry, self.outbound)
        self._definitions = DefinitionKeeper(self.store, self.registry)
        self._collector = GarbageCollector(self.store, self.registry, deletion)
        self._budgets = Budgets(self.store)
        self._resources = ResourceRoutes(
            self.registry,
            reads,
            writes,
            Patching(clock, self.store, writes),
            deletion,
            Scales(self.store, writes),
            PodActions(clock, self.store, writes, deletion),
            Reviews(self.tokens, self.authorizer),
            self.metrics,
            self.tokens,
        )
        self._others = NonResourceRoutes(self.registry, self.aggregation)
        self._tasks: list[asyncio.Task[None]] = []
        create_first_objects(clock, self.store, self.registry, self.identities)

    def put(self, obj: JsonObject) -> None:
        """Store an object as the server itself, past admission: what a cluster publishes about itself."""
        put_object(self.clock, self.store, self.registry, self.identities, obj)

    async def __aenter__(self) -> "Server":
        self._tasks = [asyncio.create_task(self._collector.run()), asyncio.create_task(self._budgets.run())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for shelf in self.store.shelves():
            shelf.history.cut_all()
        await self.outbound.close()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> ApiResponse:
        """Answer one request; never raises, except when cancelled."""
        call = ApiRequest(method.upper(), path, {}, {k.lower(): v for k, v in (headers or {}).items()}, body)
        try:
            call.query = _query_of(query)
            response = await self._answer(call)
        except StatusError as problem:
            response = ApiResponse.failure(problem)
        except Exception:  # the border: whatever is wrong inside is a 500 outside, and a log line
            LOG.exception("answering %s %s", method, path)
            response = ApiResponse.failure(internal("the lab failed on this request; its log says why"))
        if call.warnings:
            response.warnings = tuple(dict.fromkeys(call.warnings))
        return response

    async def _answer(self, call: ApiRequest) -> ApiResponse:
        if len(call.body) > MAX_BODY:
            raise too_large_body(f"Request entity too large: limit is {MAX_BODY}")
        call.user = self._user_of(call)
        target = parse_path(call.path)
        verb = verb_of(call, target)
        if not target.is_resource:
            self.authorizer.check(
                call.user, Attributes(verb="get" if verb == "list" else verb, path=call.path)
            )
            return await self._others.answer(call, target)
        self._authorize(call, target, verb)
        if self.aggregation.serves(target.group, target.version):
            return await self.aggregation.forward(call, target.group, target.version)
        return await self._resources.answer(call, target, verb)

    def _user_of(self, call: ApiRequest) -> RequestUser:
        user = self.tokens.authenticate(call)
        other = impersonated(call)
        if other is None:
            return user
        self.authorizer.check(user, Attributes("impersonate", "", "users", name=other.name))
        return other

    def _authorize(self, call: ApiRequest, target: RequestPath, verb: str) -> None:
        name = target.name
        if not name and verb in ("list", "watch", "deletecollection"):
            name = selected_name(call.option("fieldSelector"))
        question = Attributes(verb, target.group, target.resource, target.subresource, target.namespace, name)
        self.authorizer.check(call.user, question)


def _query_of(text: str) -> dict[str, list[str]]:
    try:
        return parse_query(text)
    except ValueError as problem:
        raise StatusError(400, "BadRequest", f"the query cannot be read: {problem}") from problem
