"""Requests and limits of containers and pods."""

from trimtab.model.quantity import Quantity
from trimtab.model.wire import Wire

ResourceList = dict[str, Quantity]

CPU = "cpu"
MEMORY = "memory"


class ResourceRequirements(Wire):
    """What a container (or pod) asks for and may use at most."""

    requests: ResourceList = {}
    limits: ResourceList = {}
