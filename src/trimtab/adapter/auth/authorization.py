"""Whether a user may: a SubjectAccessReview per user, verb, namespace and metric, believed for a few seconds (S11)."""

from typing import Any

from trimtab.adapter.api.requests import Attributes
from trimtab.adapter.auth.access_reviews import ReviewCache, review
from trimtab.adapter.auth.authentication import UserInfo
from trimtab.adapter.errors import Forbidden
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.model.json.wire import Wire

ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _AccessStatus(Wire):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(Wire):
    status: _AccessStatus = _AccessStatus()


class SubjectAccessAuthorizer:
    """Asks the cluster whether a user may, and refuses where it says no."""

    def __init__(self, clock: Clock, client: Client, cache_seconds: float) -> None:
        self._client = client
        self._cache: ReviewCache[tuple[UserInfo, Attributes], _AccessStatus] = ReviewCache(
            clock, cache_seconds
        )

    async def authorize(self, user: UserInfo, attributes: Attributes) -> None:
        """Return if the user may; raise Forbidden if not, Unavailable if nobody can tell."""
        status = await self._cache.get((user, attributes), lambda: self._ask(user, attributes))
        if not status.allowed or status.denied:
            raise Forbidden(_refusal(user, attributes, status.reason))

    async def _ask(self, user: UserInfo, attributes: Attributes) -> _AccessStatus:
        spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra}
        if attributes.is_resource:
            spec["resourceAttributes"] = {
                "verb": attributes.verb,
                "group": attributes.group,
                "version": attributes.version,
                "namespace": attributes.namespace,
                "resource": attributes.resource,
                "name": attributes.name,
                "subresource": attributes.subresource,
            }
        else:
            spec["nonResourceAttributes"] = {"verb": attributes.verb, "path": attributes.path}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return (await review(self._client, ACCESS_REVIEWS, body, _AccessReview)).status


def _refusal(user: UserInfo, attributes: Attributes, reason: str) -> str:
    if not attributes.is_resource:
        return f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}": {reason}'.rstrip(
            ": "
        )
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f' in the namespace "{attributes.namespace}"' if attributes.namespace else " at the cluster scope"
    what = f'cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}"{where}'
    return f'{resource} "{attributes.name}" is forbidden: User "{user.name}" {what}: {reason}'.rstrip(": ")
