"""The table of built-in resources fits the tables that refer to it."""

import pytest

from trimtab_lab.apiserver.discovery import SUBRESOURCES
from trimtab_lab.apiserver.server import LAB_GATES
from trimtab_lab.kinds.builtin import builtin_resources
from trimtab_lab.schemas.shapes import kinds
from trimtab_lab.tables.rows import BUILTIN

RESOURCES = {(resource.group, resource.plural): resource for resource in builtin_resources(LAB_GATES)}


@pytest.mark.parametrize(
    ("group", "plural", "kind"),
    [
        ("", "pods", "Pod"),
        ("", "endpoints", "Endpoints"),
        ("", "resourcequotas", "ResourceQuota"),
        ("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
        ("metrics.k8s.io", "pods", "PodMetrics"),
    ],
)
def test_resources_have_upstreams_plural(group, plural, kind):
    assert RESOURCES[group, plural].kind == kind


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=lambda resource: resource.storage)
def test_kinds_have_a_schema_and_known_subresources(resource):
    if resource.group != "metrics.k8s.io":
        assert all((resource.group, version, resource.kind) in kinds() for version in resource.versions)
    assert set(resource.subresources) <= set(SUBRESOURCES)


def test_printer_columns_belong_to_served_resources():
    assert set(BUILTIN) <= set(RESOURCES)
