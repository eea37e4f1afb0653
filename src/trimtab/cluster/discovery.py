"""Discovers which resources the cluster serves, and which of them have a scale.

Aggregated discovery takes one request per root, without it there is one per group version. A group whose server is
down is unknown, not absent, so that a kind is never called unknown because of an incomplete answer.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import decode_answer
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport import Request
from trimtab.model.json.wire import Wire

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
_REFRESH_SECONDS = 600.0
_MISS_SECONDS = 10.0


class UnknownKindError(errors.ClusterError):
    """The cluster does not serve this kind."""


class GroupUnavailableError(errors.ClusterError):
    """The group may serve this kind, but its server does not answer. A retry may succeed."""


@dataclass(frozen=True, slots=True)
class Served:
    """A resource that the cluster serves."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    subresources: frozenset[str] = frozenset()

    @property
    def has_scale(self) -> bool:
        """Return whether the resource has a scale."""
        return "scale" in self.subresources

    def resource(self) -> Resource[Json]:
        """Return the resource, decoded as plain JSON."""
        return Resource(self.group, self.version, self.plural, self.kind, Json, self.namespaced)


class _ResponseKind(Wire, frozen=True):
    kind: str = ""


class _Subresource(Wire, frozen=True):
    subresource: str = ""


class _AggregatedResource(Wire, frozen=True):
    resource: str = ""
    response_kind: _ResponseKind = _ResponseKind()
    scope: str = ""
    subresources: tuple[_Subresource, ...] = ()


class _AggregatedVersion(Wire, frozen=True):
    version: str = ""
    resources: tuple[_AggregatedResource, ...] = ()
    freshness: str = "Current"


class _Named(Wire, frozen=True):
    name: str = ""


class _AggregatedGroup(Wire, frozen=True):
    metadata: _Named = _Named()
    versions: tuple[_AggregatedVersion, ...] = ()


class _GroupVersion(Wire, frozen=True):
    group_version: str = ""
    version: str = ""


class _LegacyGroup(Wire, frozen=True):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()


class _Root(Wire, frozen=True):
    """A response of /api or /apis, of the kind that `kind` names."""

    kind: str = ""
    items: tuple[_AggregatedGroup, ...] = ()
    groups: tuple[_LegacyGroup, ...] = ()
    versions: tuple[str, ...] = ()


class _LegacyResource(Wire, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _LegacyResources(Wire, frozen=True):
    resources: tuple[_LegacyResource, ...] = ()


class _Version(Wire, frozen=True):
    """The response of /version. A server may behave like an older one, which `emulation` names."""

    major: str = ""
    minor: str = ""
    emulation_major: str = ""
    emulation_minor: str = ""

    def __str__(self) -> str:
        major, minor = self.emulation_major or self.major, self.emulation_minor or self.minor
        return f"{major}.{minor.rstrip('+')}"


class Discovery:
    """The resources of the cluster, read at first use, every 10 minutes, and at a miss (rate-limited)."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: dict[tuple[str, str], dict[str, Served]] = {}
        self._unavailable: dict[tuple[str, str], str] = {}
        self._read_at: float | None = None
        self._one_refresh = asyncio.Lock()
        self._kubernetes = ""
        self._kubernetes_read_at: float | None = None

    async def served(self, group: str, version: str, plural: str) -> Served | None:
        """Return a resource by its plural name, or None."""
        await self._refresh_if_older(_REFRESH_SECONDS)
        found = self._served.get((group, version), {}).get(plural)
        if found is None and await self._refresh_if_older(_MISS_SECONDS):
            found = self._served.get((group, version), {}).get(plural)
        self._complain_if_unavailable(found, group, version, plural)
        return found

    async def find_kind(self, api_version: str, kind: str) -> Served:
        """Return the resource of a group and kind.

        Raise if it is unknown or its server does not answer.

        The version of `api_version` is preferred. References outlive versions, so another served version of the group
        is used if necessary, as upstream's mapper does.
        """
        group, _, version = api_version.rpartition("/")
        await self._refresh_if_older(_REFRESH_SECONDS)
        found = self._of_kind(group, version, kind)
        if found is None and await self._refresh_if_older(_MISS_SECONDS):
            found = self._of_kind(group, version, kind)
        if found is None:
            for unavailable in [each for of, each in self._unavailable if of == group]:
                self._complain_if_unavailable(found, group, unavailable, kind)
            raise UnknownKindError(
                f"the cluster serves no kind {kind} in {api_version}; is its CRD installed?"
            )
        return found

    async def kubernetes(self) -> str:
        """Return the version of Kubernetes whose rules the API server follows, such as `1.37`."""
        now = self._client.clock.monotonic()
        if self._kubernetes_read_at is None or now - self._kubernetes_read_at >= _REFRESH_SECONDS:
            self._kubernetes_read_at = now  # also after a failure, so that each period has one request
            self._kubernetes = str(await self._client.read("reading /version", "/version", _Version))
        return self._kubernetes

    def unavailable(self) -> dict[tuple[str, str], str]:
        """Return the group versions whose servers did not answer, with the reason."""
        return dict(self._unavailable)

    async def refresh(self) -> None:
        """Read everything again. A group that cannot be read keeps its last answer."""
        roots = [await self._read_root("/api"), await self._read_root("/apis")]
        served: dict[tuple[str, str], dict[str, Served]] = {}
        self._unavailable = {}
        for path, root in zip(("/api", "/apis"), roots, strict=True):
            for group_version, resources in await self._entries(path, root):
                if resources is None:
                    served[group_version] = self._served.get(group_version, {})
                else:
                    served[group_version] = {resource.plural: resource for resource in resources}
        self._served = served
        self._read_at = self._client.clock.monotonic()

    async def _refresh_if_older(self, seconds: float) -> bool:
        async with self._one_refresh:
            now = self._client.clock.monotonic()
            if self._read_at is not None and now - self._read_at < seconds:
                return False
            try:
                await self.refresh()
            except (errors.TransportError, errors.ServerError):
                if self._read_at is None:
                    raise
                # Keep the old answer and read again after the usual pause.
                self._read_at = now
                return False
            return True

    async def _read_root(self, path: str) -> _Root:
        act = f"discovering {path}"
        answer = await self._client.sender.send(act, Request("GET", path, headers={"Accept": _AGGREGATED}))
        return decode_answer(act, answer.body, _Root)

    async def _entries(self, path: str, root: _Root) -> list[tuple[tuple[str, str], list[Served] | None]]:
        if root.kind == "APIGroupDiscoveryList":
            return [
                ((group.metadata.name, version.version), self._aggregated(group.metadata.name, version))
                for group in root.items
                for version in group.versions
            ]
        if path == "/api":
            wanted = [("", version) for version in root.versions]
        else:
            wanted = [(group.name, version.version) for group in root.groups for version in group.versions]
        return [((group, version), await self._legacy(group, version)) for group, version in wanted]

    def _aggregated(self, group: str, version: _AggregatedVersion) -> list[Served] | None:
        if version.freshness == "Stale":
            self._unavailable[group, version.version] = "its server does not answer"
            return None
        return [
            Served(
                group,
                version.version,
                resource.resource,
                resource.response_kind.kind,
                resource.scope == "Namespaced",
                frozenset(sub.subresource for sub in resource.subresources),
            )
            for resource in version.resources
        ]

    async def _legacy(self, group: str, version: str) -> list[Served] | None:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            answer = await self._client.read(f"discovering {path}", path, _LegacyResources)
        except (errors.TransportError, errors.ApiError) as error:
            self._unavailable[group, version] = str(error)
            return None
        return list(_join_subresources(group, version, answer.resources))

    def _of_kind(self, group: str, version: str, kind: str) -> Served | None:
        """Return a kind in this version of its group, else in the first version that has it."""
        for each in (version, *(other for of, other in self._served if of == group)):
            for resource in self._served.get((group, each), {}).values():
                if resource.kind == kind:
                    return resource
        return None

    def _complain_if_unavailable(self, found: Served | None, group: str, version: str, what: str) -> None:
        reason = self._unavailable.get((group, version))
        if found is None and reason is not None:
            raise GroupUnavailableError(
                f"{what} of {group}/{version}: cannot tell whether it is served: {reason}"
            )


def _join_subresources(group: str, version: str, resources: Iterable[_LegacyResource]) -> Iterable[Served]:
    resources = list(resources)
    subresources: dict[str, set[str]] = {}
    for resource in resources:
        plural, _, subresource = resource.name.partition("/")
        if subresource:
            subresources.setdefault(plural, set()).add(subresource)
    for resource in resources:
        if "/" not in resource.name:
            parts = frozenset(subresources.get(resource.name, ()))
            yield Served(group, version, resource.name, resource.kind, resource.namespaced, parts)
