"""Authorizes users by SubjectAccessReviews per user, verb, namespace and metric."""

from trimtab.clock import Clock
from trimtab.cluster.access_reviews import AccessReviewer, Attributes, NonResourceAttributes, UserInfo
from trimtab.cluster.client import Client
from trimtab.model.status import StatusError


class SubjectAccessAuthorizer:
    """Rejects requests that the cluster does not allow."""

    def __init__(self, clock: Clock, client: Client, cache_seconds: float) -> None:
        self._reviews = AccessReviewer(clock, client, cache_seconds)

    async def authorize(self, user: UserInfo, attributes: Attributes) -> None:
        """Raise a StatusError if the user may not, or ReviewFailedError if the cluster does not answer."""
        status = await self._reviews.review(user, attributes)
        if not status.is_allowed:
            raise StatusError(403, _refusal(user, attributes, status.reason))


def _refusal(user: UserInfo, attributes: Attributes, reason: str) -> str:
    if isinstance(attributes, NonResourceAttributes):
        message = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}": {reason}'
        return message.rstrip(": ")
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f' in the namespace "{attributes.namespace}"' if attributes.namespace else " at the cluster scope"
    what = f'cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}"{where}'
    named = f' "{attributes.name}"' if attributes.name else f".{attributes.group}"
    return f'{resource}{named} is forbidden: User "{user.name}" {what}: {reason}'.rstrip(": ")
