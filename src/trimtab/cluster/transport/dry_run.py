"""The writes that a dry run may send. The sender checks every write.

A dry run decides and changes nothing that other programs act on. It writes events and its own Leases. It writes no
status, because a live updater and webhook apply the recommendation in it, and a live operator resumes from the memory in
it. Requests that store nothing pass: reviews of tokens and access, and writes with `dryRun=All`. All other writes are
rejected, whichever component sends them.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from trimtab.cluster.transport.transport import Request
from trimtab.model.json import wire

_EVENTS: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_OWN_ENDING: Final = re.compile(r"(member-)?\d+|settings")
_LEASES: Final = ("coordination.k8s.io", "leases")


class _Metadata(wire.Wire):
    name: str = ""


class _Named(wire.Wire):
    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class _Target:
    group: str
    resource: str
    """The plural, with the subresource if there is one."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The rule of a dry run."""

    lease_namespace: str = ""
    lease_name: str = ""
    """What the names of the Leases of this process begin with."""

    def may_send(self, request: Request) -> bool:
        """Return whether a request may be sent."""
        if request.method == "GET" or ("dryRun", "All") in request.query:
            return True
        target = _target_of(request)
        kind = target.group, target.resource
        return kind in _EVENTS or target.group in _REVIEWS or (kind == _LEASES and self._is_own_lease(target))

    def _is_own_lease(self, target: _Target) -> bool:
        ending = target.name.removeprefix(f"{self.lease_name}-")
        is_named = ending != target.name and bool(_OWN_ENDING.fullmatch(ending))
        return bool(self.lease_name) and target.namespace == self.lease_namespace and is_named


def _target_of(request: Request) -> _Target:
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else ("".join(parts[1:2]), parts[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    return _Target(
        group, f"{plural}/{subresource}" if subresource else plural, namespace, name or _name_in(request)
    )


def _name_in(request: Request) -> str:
    """Return the name of the object that is created."""
    try:
        return wire.decode(request.body or b"{}", _Named).metadata.name
    except (wire.WireError, msgspec.DecodeError):
        return ""
