"""Renders the chart with values into the objects of an installation, in order of application."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import trimtab
from trimtab.install.schema import CHART, read
from trimtab.install.templates import Failed, Templates
from trimtab.install.values import ValueProblem, check_namespace

CRDS: Final = "crds.yaml"
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount")
"""What other objects need when they are applied."""


def manifests(
    values: Mapping[str, Any], namespace: str = "trimtab", *, only: str = ""
) -> list[dict[str, Any]]:
    """Return the objects of an installation, or those of one template. Raise ValueProblem if the values cannot work."""
    check_namespace(namespace)
    context = {
        "Values": values,
        "Chart": {"AppVersion": trimtab.__version__},
        "Release": {"Namespace": namespace},
        "Files": {"Get": read},
    }
    try:
        objects = _templates().render(context, only)
    except Failed as problem:
        raise ValueProblem(str(problem)) from problem
    return sorted(objects, key=lambda manifest: (*_FIRST, manifest["kind"]).index(manifest["kind"]))


@cache
def _templates() -> Templates:
    paths = sorted(path for path in (CHART / "templates").iterdir() if path.suffix in {".tpl", ".yaml"})
    return Templates({path.name: path.read_text(encoding="utf-8") for path in paths})
