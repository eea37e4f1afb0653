"""What a VPA means by what it leaves out, and the defaults that admission writes into the object."""

from typing import Any

from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

DEFAULT_RECOMMENDER = "default"


def default_patch(vpa: VerticalPodAutoscaler) -> list[dict[str, Any]]:
    """Return the JSON patch that makes the default update policy visible in the object, or no operations."""
    if vpa.spec.update_policy is not None:
        return []
    policy = {"updateMode": UpdateMode.RECREATE.value}
    return [{"op": "add", "path": "/spec/updatePolicy", "value": policy}]


def recommender_of(vpa: VerticalPodAutoscaler) -> str:
    """Return the name of the recommender that is responsible for this VPA."""
    return vpa.spec.recommenders[0].name if vpa.spec.recommenders else DEFAULT_RECOMMENDER
