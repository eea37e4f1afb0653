"""Whether an HPA is to be acted upon, by its annotation."""

from trimtab.model.hpa.types import HorizontalPodAutoscaler

MODE_ANNOTATION = "autoscaling.trimtab.dev/mode"
"""`DryRun` makes one HPA decide and tell without writing the scale."""

DRY_RUN = "DryRun"


def is_dry_run(hpa: HorizontalPodAutoscaler) -> bool:
    """Return whether the object asks not to be acted upon; a value that is not known asks for it, too.

    The annotation is a brake: a misspelt one must not let go.
    """
    return bool(hpa.metadata.annotations.get(MODE_ANNOTATION))


def mode_problem(text: str) -> str:
    """Return what is wrong with the value of the annotation; nothing if it is known or absent."""
    if text in ("", DRY_RUN):
        return ""
    return f"annotation {MODE_ANNOTATION} is {text!r}, which is not known: write {DRY_RUN}, or remove it"
