"""Counts the pods and the autoscalers of each namespace that an operator watches, for `trimtab shards`."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from trimtab.cli.missing_crds import INSTALL, NOT_INSTALLED
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.leases.balance import NamespaceContents
from trimtab.cluster.resource import PODS, Resource
from trimtab.model.core.meta import ListMeta
from trimtab.model.json import wire
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.recommender.feeder import is_served_by

A = TypeVar("A")
T = TypeVar("T")

_AT_ONCE: Final = 8
"""How many namespaces are counted at the same time."""

_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", PartialObject, namespaced=False)


class _CountedList(wire.Wire, frozen=True):
    """One object of a list, and how many more there are."""

    metadata: ListMeta = ListMeta()
    items: list[PartialObject] = []


@dataclass(frozen=True, slots=True)
class CountedKinds:
    """The kinds of autoscalers to count."""

    hpas: tuple[Resource[Any], ...] = ()
    recommender: str = ""
    """The recommender whose VPAs are counted. It is empty if no VPAs are."""

    @property
    def noun(self) -> str:
        """Return what these autoscalers are called, in the plural."""
        if self.hpas and self.recommender:
            return "autoscalers"
        return "VPAs" if self.recommender else "HPAs"


def counted_kinds(component: str, recommender: str, found: FoundSettings) -> CountedKinds:
    """Return the kinds that the operator of a component acts on.

    A process with both components has one layout for HPAs and VPAs. Without an operator both kinds of HPAs are counted.
    """
    settings = found.settings
    components = settings.components if found.is_published else (component,)
    is_acted_on = {OWN_HPAS: settings.horizontal.own_hpas, NATIVE_HPAS: settings.horizontal.native_hpas}
    hpas = tuple(kind for kind, wanted in is_acted_on.items() if wanted or not found.is_published)
    name = settings.recommender.recommender_name if found.is_published else recommender
    return CountedKinds(
        hpas if "horizontal" in components else (), name if "recommender" in components else ""
    )


@dataclass(frozen=True, slots=True)
class ClusterContents:
    """What the namespaces of a cluster have."""

    namespaces: dict[str, NamespaceContents]
    notes: tuple[str, ...] = ()
    """What could not be counted."""


async def count_cluster(client: Client, kinds: CountedKinds, watched: Sequence[str]) -> ClusterContents:
    """Count what each watched namespace has. None watched means all."""
    namespaces = await _namespaces(client, watched)
    unknown = sorted(set(watched) - set(namespaces))
    notes = [f"not in this cluster: {', '.join(unknown)} of --watch-namespaces"] if unknown else []
    # A user may have rights in the watched namespaces only.
    places = namespaces if watched else [None]
    hpas = [await _listed(client, kind.into(PartialObject), places) for kind in kinds.hpas]
    vpas = [await _listed(client, VPAS, places)] if kinds.recommender else []
    for noun, lists in (("HPAs", hpas), ("VPAs", vpas)):
        if lists and all(found is None for found in lists):
            notes.append(f"there are no {noun}{NOT_INSTALLED} ({INSTALL})")
    served = [vpa for found in vpas for vpa in found or () if is_served_by(vpa, {kinds.recommender})]
    names = _names_by_namespace([*(hpa for found in hpas for hpa in found or ()), *served])
    pods = await _some_at_once(partial(_count_pods, client), namespaces)
    contents = {
        namespace: NamespaceContents(number, tuple(names.get(namespace, ())))
        for namespace, number in zip(namespaces, pods, strict=True)
    }
    return ClusterContents(contents, tuple(notes))


def _names_by_namespace(autoscalers: Iterable[Any]) -> Mapping[str, list[str]]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for autoscaler in autoscalers:
        names[autoscaler.metadata.namespace].append(autoscaler.metadata.name)
    return names


async def _namespaces(client: Client, watched: Sequence[str]) -> list[str]:
    """Return the watched namespaces that exist. None watched means all."""
    if not watched:
        return [found.metadata.name for found in (await client.list(_NAMESPACES)).items]
    exists = await _some_at_once(partial(_exists, client), watched)
    return [name for name, is_there in zip(watched, exists, strict=True) if is_there]


async def _exists(client: Client, namespace: str) -> bool:
    """Return whether a namespace exists, or whether the user may not know."""
    try:
        await client.get(_NAMESPACES, namespace)
    except errors.NotFound:
        return False
    except errors.Forbidden:
        pass
    return True


async def _listed(client: Client, kind: Resource[T], places: Sequence[str | None]) -> list[T] | None:
    """Return the objects of a kind in these places, or None if its CRD is not installed."""
    try:
        lists = await _some_at_once(partial(client.list, kind), map(ListOptions, places))
    except errors.NotFound:
        return None
    return [item for listed in lists for item in listed.items]


async def _count_pods(client: Client, namespace: str) -> int:
    listed = await client.read(
        f"counting pods of {namespace}", PODS.path(namespace), _CountedList, query=[("limit", "1")]
    )
    return len(listed.items) + listed.metadata.remaining_item_count


async def _some_at_once(call: Callable[[A], Awaitable[T]], arguments: Iterable[A]) -> list[T]:
    """Return the results of a call with each argument. A few calls run at the same time."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def within(argument: A) -> T:
        async with gate:
            return await call(argument)

    return await asyncio.gather(*map(within, arguments))
