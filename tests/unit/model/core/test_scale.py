"""A Scale in a write: which of its metadata each version of Kubernetes checks."""

import pytest

from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37
from trimtab.model.core.workloads import validate_scale

BAD = {
    "metadata": {"name": "No Name", "namespace": "shop", "managedFields": [{"operation": "Guess"}]},
    "spec": {"replicas": -1},
}


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        (KUBERNETES_1_36, {"metadata.name", "metadata.managedFields[0].operation", "spec.replicas"}),
        (KUBERNETES_1_37, {"metadata.managedFields[0].operation", "spec.replicas"}),
    ],
    ids=["1.36", "1.37"],
)
def test_a_server_of_1_37_ignores_the_metadata_except_managed_fields(rules, fields):
    assert {error.field for error in validate_scale(BAD, rules)} == fields
