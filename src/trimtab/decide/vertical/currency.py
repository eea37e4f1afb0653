"""Whether a recommendation was made under the VPA's present specification.

A recommendation made before the scope (or anything else) changed may belong to another role. Comparing generations
keeps updater and admission from applying it until the recommender has caught up (spec 5.6).
"""

from trimtab.model.vpa.types import VerticalPodAutoscaler


def is_recommendation_current(vpa: VerticalPodAutoscaler) -> bool:
    """Return whether the status was written for the VPA's present generation.

    A recommender that never writes observedGeneration is trusted on unscoped VPAs only: it may be an older program,
    which knows no scopes.
    """
    observed = vpa.status.observed_generation
    if observed is None:
        return vpa.spec.vpa_scope is None
    return observed >= vpa.metadata.generation
