"""What one container is given."""

from dataclasses import dataclass

from trimtab.model.core.pod import ResourceList


@dataclass(frozen=True)
class ContainerResources:
    """Requests and limits to give to one container; what is empty stays as it is."""

    requests: ResourceList
    limits: ResourceList


NOTHING = ContainerResources({}, {})
