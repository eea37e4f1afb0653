"""The lab's API server. `Server.request` serves a request, with or without a socket in front of it.

The order is the real server's: authentication, authorization, aggregation, then the handler of the verb. All state is in
memory and owned by one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType

from trimtab.clock import Clock
from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.status import StatusError, internal, too_large_body
from trimtab_lab.admission import AdmissionChain, LimitRanger, PodResizeValidator
from trimtab_lab.apiserver.access import Attributes, RbacAuthorizer, Tokens
from trimtab_lab.apiserver.bootstrap import first_objects, put_object
from trimtab_lab.apiserver.discovery import Aggregation
from trimtab_lab.apiserver.outbound import Outbound
from trimtab_lab.apiserver.request import (
    MAX_BODY,
    ApiRequest,
    ApiResponse,
    RequestInfo,
    parse_path,
    parse_query,
    verb_of,
)
from trimtab_lab.apiserver.routes import NonResourceRoutes, ResourceRoutes
from trimtab_lab.controllers.controller import Controller, Lag, seeded_lag, stop
from trimtab_lab.controllers.daemon_sets import DaemonSetController
from trimtab_lab.controllers.deployments import DeploymentController
from trimtab_lab.controllers.disruption import DisruptionController
from trimtab_lab.controllers.garbage_collector import GarbageCollector
from trimtab_lab.controllers.jobs import JobController
from trimtab_lab.controllers.kinds import DEPLOYMENTS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS
from trimtab_lab.controllers.objects import Objects
from trimtab_lab.controllers.replica_sets import ReplicaSetController
from trimtab_lab.controllers.stateful_sets import StatefulSetController
from trimtab_lab.crd.definitions import DefinitionKeeper
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.read import selected_name
from trimtab_lab.kinds.builtin import builtin_resources
from trimtab_lab.kinds.registry import Registry
from trimtab_lab.metrics.apis import ResourceMetrics
from trimtab_lab.storage.codec import Identities, JsonObject
from trimtab_lab.storage.store import HISTORY, ObjectStore
from trimtab_lab.webhooks import Webhooks

LOG = logging.getLogger("trimtab.lab.apiserver.server")
#: The lab enables the gate of every proposed feature.
LAB_GATES = FeatureGates.of(
    dict.fromkeys(
        ("HPASelectionStrategy", "HPAScaleToZero", "HPAConfigurableTolerance", "VPASelectorRefinement"), True
    )
)


#: The controllers of workloads, which only a server that is asked for them runs.
WORKLOADS: tuple[Callable[[Objects, Clock, Lag], Controller], ...] = (
    partial(DeploymentController, DEPLOYMENTS),
    partial(ReplicaSetController, REPLICA_SETS),
    partial(ReplicaSetController, REPLICATION_CONTROLLERS),
    StatefulSetController,
    DaemonSetController,
    partial(JobController, JOBS),
)


class Server:
    """An in-memory Kubernetes API server.

    Use it as an async context manager, which runs its garbage collector and its disruption budgets as tasks. With a
    `seed` every uid, token and generated name repeats, so that equal runs give equal bytes. `rules` are those of a version of
    Kubernetes. With `has_controllers` it also runs the controllers of workloads.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int | None = None,
        gates: FeatureGates = LAB_GATES,
        rules: ServerRules = KUBERNETES_1_37,
        history: int = HISTORY,
        tracks_fields: bool = True,
        has_controllers: bool = False,
    ) -> None:
        self.clock = clock
        self.identities = Identities(seed)
        self.store = ObjectStore(history)
        self.registry = Registry(builtin_resources(gates, rules))
        self.tokens = Tokens(self.identities)
        self.authorizer = RbacAuthorizer(self.store)
        self.outbound = Outbound(self.store)
        plugins = (
            LimitRanger(self.store),
            Webhooks(self.store, self.identities, self.outbound),
            PodResizeValidator(self.store),
        )
        self._context = HandlerContext(
            clock, self.registry, self.store, self.identities, AdmissionChain(plugins), tracks_fields, rules
        )
        self.metrics = ResourceMetrics(clock.now)
        self.aggregation = Aggregation(self.store, self.registry, self.outbound)
        self._resources = ResourceRoutes(self._context, self.tokens, self.authorizer, self.metrics)
        self._others = NonResourceRoutes(self.registry, self.aggregation, rules)
        self._definitions = DefinitionKeeper(self.store, self.registry)
        #: The queues of the controllers, which are tasks of the server.
        self.queues = [
            GarbageCollector(clock, self.store, self.registry, self._resources.deletes).queue,
            DisruptionController(clock, self.store).queue,
        ]
        if has_controllers:
            objects, lag = Objects(self.store, self.request, self.tokens.admin), seeded_lag(seed)
            self.queues += [make(objects, clock, lag).queue for make in WORKLOADS]
        self._tasks: list[asyncio.Task[None]] = []
        for obj in first_objects():
            self.put(obj)

    def put(self, obj: JsonObject) -> None:
        """Store an object as the server itself, past admission."""
        put_object(self._context, obj)

    async def __aenter__(self) -> "Server":
        self._tasks = [asyncio.create_task(queue.run()) for queue in self.queues]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await stop(self._tasks, self.queues)
        for objects in self.store.resources():
            objects.watch_cache.expire_all()
        await self.outbound.close()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> ApiResponse:
        """Return the response of a request. It never raises, except when cancelled."""
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        request = ApiRequest(method.upper(), path, {}, lower, body)
        try:
            request.query = parse_query(query)
            response = await self._handle(request)
        except StatusError as problem:
            response = ApiResponse.failure(problem)
        except Exception:  # the border: an unexpected error inside is a 500 outside, and a log line
            LOG.exception("request failed method=%s path=%s", method, path)
            response = ApiResponse.failure(internal("the lab failed on this request; its log says why"))
        if request.warnings:
            response.warnings = tuple(dict.fromkeys(request.warnings))
        return response

    async def _handle(self, request: ApiRequest) -> ApiResponse:
        if len(request.body) > MAX_BODY:
            raise too_large_body(f"Request entity too large: limit is {MAX_BODY}")
        request.user = self.tokens.authenticate(request)
        info = parse_path(request.path)
        verb = verb_of(request, info)
        self._authorize(request, info, verb)
        if not info.is_resource:
            return await self._others.handle(request, info)
        if self.aggregation.serves(info.group, info.version):
            return await self.aggregation.forward(request, info.group, info.version)
        return await self._resources.handle(request, info, verb)

    def _authorize(self, request: ApiRequest, info: RequestInfo, verb: str) -> None:
        if not info.is_resource:
            attributes = Attributes("get" if verb == "list" else verb, path=request.path)
        else:
            name = info.name
            if not name and verb in ("list", "watch", "deletecollection"):
                name = selected_name(request.option("fieldSelector"))
            attributes = Attributes(verb, info.group, info.resource, info.subresource, info.namespace, name)
        self.authorizer.check(request.user, attributes)
