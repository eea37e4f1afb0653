"""The `vpaObservedContainers` annotation: which containers a pod had when it was admitted.

Containers that appear later (injected by another webhook) were never sized by us, so the updater leaves them out.
"""

from trimtab.model.core.pod import Pod
from trimtab.model.labels.names import dns1123_label

ANNOTATION = "vpaObservedContainers"
_SEPARATOR = ", "


class ObservedContainersError(ValueError):
    """The annotation names something that cannot be a container."""


def format_observed(names: tuple[str, ...]) -> str:
    """Return the annotation's value for these containers."""
    return _SEPARATOR.join(names)


def parse_observed(value: str) -> tuple[str, ...]:
    """Return the containers that the annotation's value names."""
    if not value:
        return ()
    names = tuple(value.split(_SEPARATOR))
    for name in names:
        if problems := dns1123_label(name):
            raise ObservedContainersError(
                f"incorrect format: {name} is not a valid container name: [{' '.join(problems)}]"
            )
    return names


def observed_containers(pod: Pod) -> frozenset[str] | None:
    """Return the containers seen at admission; None if the pod does not say, or says it illegibly."""
    value = pod.metadata.annotations.get(ANNOTATION)
    if value is None:
        return None
    try:
        return frozenset(parse_observed(value))
    except ObservedContainersError:
        return None
