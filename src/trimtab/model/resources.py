"""Requests and limits of containers and pods."""

from trimtab.model.quantity import Quantity
from trimtab.model.wire import Wire

ResourceList = dict[str, Quantity]

CPU = "cpu"
MEMORY = "memory"


class ResourceClaim(Wire):
    """A reference of a container to one of its pod's resource claims (DRA)."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire):
    """What a container (or pod) asks for and may use at most."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaim, ...] = ()
