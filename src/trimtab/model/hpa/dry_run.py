"""The annotation that puts one HPA into dry run."""

from trimtab.model.hpa.types import HorizontalPodAutoscaler

MODE_ANNOTATION = "autoscaling.trimtab.dev/mode"
"""With `DryRun` the operator decides and reports, but does not write the scale."""

DRY_RUN = "DryRun"


def is_dry_run(hpa: HorizontalPodAutoscaler) -> bool:
    """Return whether the HPA's scale must not be written.

    An unknown value counts as DryRun: the annotation is a brake, and a misspelt one must not let go.
    """
    return bool(hpa.metadata.annotations.get(MODE_ANNOTATION))


def mode_problem(text: str) -> str:
    """Return the problem with the annotation's value, empty if it is known or absent."""
    if text in ("", DRY_RUN):
        return ""
    return f"annotation {MODE_ANNOTATION} is {text!r}, which is not known: write {DRY_RUN}, or remove it"
