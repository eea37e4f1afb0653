"""The `vpaObservedContainers` annotation: which containers a pod had when it was admitted.

Containers that appear later (injected by another webhook) were never sized by us, so the updater leaves them out.
"""

import re

from trimtab.model.pod import Pod

ANNOTATION = "vpaObservedContainers"
_SEPARATOR = ", "
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LONGEST_LABEL = 63


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
        if problems := _problems(name):
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


def _problems(name: str) -> list[str]:
    problems = (
        [f"must be no more than {_LONGEST_LABEL} characters"] if len(name.encode()) > _LONGEST_LABEL else []
    )
    if _LABEL.match(name):
        return problems
    return [*problems, "must not contain dots" if _SUBDOMAIN.match(name) else _LABEL_RULE]
