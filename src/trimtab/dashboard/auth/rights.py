"""The kinds of objects that the pages show, and which of them a viewer may list.

Every part of a page belongs to a kind. A viewer sees it only with the right to list that kind in the namespace, so the
dashboard's own rights are never used for a viewer.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP

ALL_NAMESPACES: Final = ""


class Kind(NamedTuple):
    """A kind of objects, and the verb that reads them."""

    group: str
    resource: str
    subresource: str = ""
    verb: str = "list"

    def __str__(self) -> str:
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{name}.{self.group}" if self.group else name


HPAS: Final = Kind(OWN_GROUP, "horizontalpodautoscalers")
NATIVE_HPAS: Final = Kind("autoscaling", "horizontalpodautoscalers")
VPAS: Final = Kind(OWN_GROUP, "verticalpodautoscalers")
NATIVE_VPAS: Final = Kind(NATIVE_VPA_GROUP, "verticalpodautoscalers")
CHECKPOINTS: Final = Kind(OWN_GROUP, "verticalpodautoscalercheckpoints")
NATIVE_CHECKPOINTS: Final = Kind(NATIVE_VPA_GROUP, "verticalpodautoscalercheckpoints")
SCOPES: Final = Kind(OWN_GROUP, "vpascopes")
PODS: Final = Kind("", "pods")
USAGE: Final = Kind("metrics.k8s.io", "pods")
EVENTS: Final = Kind("", "events")

AUTOSCALERS: Final = {"hpa": HPAS, "native": NATIVE_HPAS, "vpa": VPAS, "native-vpa": NATIVE_VPAS}
"""The kind of an autoscaler by the first part of its id."""


def custom_metric(name: str) -> Kind:
    """Return the kind of a custom metric's samples, one per pod."""
    return Kind("custom.metrics.k8s.io", "pods", name, "get")


class KindInNamespace(NamedTuple):
    """The objects of one kind in one namespace."""

    kind: Kind
    namespace: str


class Viewer(Protocol):
    """A logged-in viewer."""

    @property
    def name(self) -> str:
        """Return the viewer's name."""
        ...

    def known(self, listing: KindInNamespace) -> bool | None:
        """Return a cached answer to `may_list`, or None."""
        ...

    async def may_list(self, listing: KindInNamespace) -> bool:
        """Return whether the viewer may list a kind in a namespace, or in `ALL_NAMESPACES`."""
        ...


class LocalViewer:
    """The user who started the program. This viewer may see everything."""

    name = "owner"

    def known(self, listing: KindInNamespace) -> bool | None:
        """Return True."""
        del listing
        return True

    async def may_list(self, listing: KindInNamespace) -> bool:
        """Return True."""
        del listing
        return True


@dataclass(frozen=True)
class NamespaceRights:
    """The rights of a viewer in one namespace."""

    viewer: Viewer
    namespace: str

    async def allowed(self, kinds: Iterable[Kind]) -> frozenset[Kind]:
        """Return the kinds that the viewer may list here."""
        listings = [KindInNamespace(kind, self.namespace) for kind in dict.fromkeys(kinds)]
        return frozenset(listing.kind for listing in await _granted(self.viewer, listings))

    def explain_missing(self, part: str, kind: Kind) -> str:
        """Return why a part of a page is not shown."""
        return f"{part}: you may not {kind.verb} {kind} in namespace {self.namespace}"


@dataclass(frozen=True)
class Visible:
    """The autoscalers that a viewer may see: whole kinds, and kinds in some namespaces."""

    everywhere: frozenset[Kind] = frozenset()
    listings: frozenset[KindInNamespace] = frozenset()

    def covers(self, listing: KindInNamespace) -> bool:
        """Return whether the viewer may see the autoscalers of a listing."""
        return listing.kind in self.everywhere or listing in self.listings


async def visible_to(viewer: Viewer, listings: Iterable[KindInNamespace]) -> Visible:
    """Review each kind in all namespaces, and in each namespace only where that is forbidden."""
    whole = [KindInNamespace(kind, ALL_NAMESPACES) for kind in AUTOSCALERS.values()]
    everywhere = frozenset(listing.kind for listing in await _granted(viewer, whole))
    narrow = sorted(listing for listing in set(listings) if listing.kind not in everywhere)
    return Visible(everywhere, frozenset(await _granted(viewer, narrow)))


async def _granted(viewer: Viewer, listings: Iterable[KindInNamespace]) -> list[KindInNamespace]:
    answers = {listing: viewer.known(listing) for listing in listings}
    unknown = [listing for listing, is_allowed in answers.items() if is_allowed is None]
    if unknown:
        reviewed = await asyncio.gather(*(viewer.may_list(listing) for listing in unknown))
        answers |= dict(zip(unknown, reviewed, strict=True))
    return [listing for listing, is_allowed in answers.items() if is_allowed]
