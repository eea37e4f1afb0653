"""The annotations that Trimtab reads from HPAs, and those that were probably meant to be one of them."""

from collections.abc import Mapping
from functools import lru_cache

from trimtab.model.hpa import replica_policies, selection_strategy
from trimtab.model.hpa.dry_run import MODE_ANNOTATION
from trimtab.model.hpa.metric_annotations import METRIC_ANNOTATIONS
from trimtab.model.spelling import nearest

DOMAIN = "trimtab.dev"
MEMORY_ANNOTATION = "autoscaling.trimtab.dev/memory"
REASON_ANNOTATION = "autoscaling.trimtab.dev/reason"
STORED = frozenset({MEMORY_ANNOTATION, REASON_ANNOTATION})
"""The annotations that carry the memory and the reason of a native HPA, whose status has no fields for them."""
SETTABLE = (
    MODE_ANNOTATION,
    selection_strategy.ANNOTATION,
    replica_policies.ANNOTATION,
    *(annotation.name for annotation in METRIC_ANNOTATIONS),
)
"""What users may write."""
FIELDS_OF_OWN_KIND = {
    replica_policies.ANNOTATION: f"spec.{replica_policies.FIELD}",
    **{annotation.name: f"{annotation.field} of the metric" for annotation in METRIC_ANNOTATIONS},
}
"""The annotations that only native HPAs need, and the fields that Trimtab's own kind has in their place."""


def misspelt_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with annotations that look like ours and have no effect, by name."""
    return {name: problem for name in annotations if (problem := _problem(name))}


def misplaced_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with annotations of native HPAs on an HPA of Trimtab's own kind, by name."""
    return {
        name: f"annotation {name} counts on native HPAs only and has no effect here: set {field} instead"
        for name, field in FIELDS_OF_OWN_KIND.items()
        if annotations.get(name)
    }


@lru_cache(4096)  # the HPAs of a cluster have few different annotations, and every decision asks
def _problem(name: str) -> str:
    domain, _, _ = name.partition("/")
    if name in SETTABLE or name in STORED or not _is_ours(domain):
        return ""
    near = nearest(name, SETTABLE)
    advice = f"did you mean {near}?" if near else f"known are {', '.join(SETTABLE)}"
    return f"annotation {name} is not known and has no effect: {advice}"


def _is_ours(domain: str) -> bool:
    return domain == DOMAIN or domain.endswith(f".{DOMAIN}") or domain.startswith("autoscaling.trimtab")
