"""Values are set by path, in the type that they have."""

import pytest

from trimtab.install import ValueProblem, default_values, set_values
from trimtab.install.template import look_up
from trimtab.model.feature_gates import FeatureGates


@pytest.mark.parametrize(
    ("assignment", "path", "want"),
    [
        pytest.param("replicas=3", "replicas", 3, id="a number"),
        pytest.param("image.tag=1.0", "image.tag", "1.0", id="a text that looks like a number stays text"),
        pytest.param("dryRun=true", "dryRun", True, id="a switch"),
        pytest.param(
            "watchNamespaces=shop, search", "watchNamespaces", ["shop", "search"], id="a list by commas"
        ),
        pytest.param(
            "watchNamespaces={shop, search}", "watchNamespaces", ["shop", "search"], id="a list as in Helm"
        ),
        pytest.param("watchNamespaces={shop}", "watchNamespaces", ["shop"], id="a list of one as in Helm"),
        pytest.param("watchNamespaces={}", "watchNamespaces", [], id="an empty list as in Helm"),
        pytest.param(
            r"horizontal.extraArgs={--a=1\,2,--b}", "horizontal.extraArgs", ["--a=1,2", "--b"], id="a comma"
        ),
        pytest.param("tolerations=[{operator: Exists}]", "tolerations", [{"operator": "Exists"}], id="YAML"),
        pytest.param("nodeSelector.pool=infra", "nodeSelector.pool", "infra", id="a key of the user's own"),
        pytest.param(
            "featureGates.HPAScaleToZero=false", "featureGates.HPAScaleToZero", False, id="one gate"
        ),
    ],
)
def test_a_value_is_set(assignment, path, want):
    assert look_up(set_values([assignment]), path) == want


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        pytest.param("replicas", "expected KEY=VALUE", id="no value"),
        pytest.param(
            "nonsense=3", "there is no such value; known are: namespace.create", id="a name that is not known"
        ),
        pytest.param("replica=3", "there is no such value; did you mean replicas?", id="a name nearly known"),
        pytest.param(
            "adapter.colour=blue",
            "there is no such value; known are: adapter.enabled",
            id="a group that is known",
        ),
        pytest.param("image.tags=3", "there is no such value", id="a name inside a group"),
        pytest.param("replicas=three", "must be a whole number", id="no number"),
        pytest.param("dryRun=maybe", "must be true or false", id="no switch"),
        pytest.param("watchNamespaces=shop}", "'shop}' cannot be a namespace", id="half a list"),
        pytest.param("watchNamespaces=Shop", "'Shop' cannot be a namespace", id="no DNS label"),
        pytest.param("watchNamespaces=[shop, 7]", "7 cannot be a namespace: must be a text", id="no text"),
        pytest.param("vertical.ignoredNamespaces=a.b", "must not contain dots", id="no namespace"),
        pytest.param("tolerations=[", "is not YAML", id="broken YAML"),
    ],
)
def test_a_mistake_is_named(assignment, words):
    with pytest.raises(ValueProblem, match=words):
        set_values([assignment])


def test_the_gates_of_our_own_features_are_set_and_known():
    gates = default_values()["featureGates"]
    text = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
    assert all(FeatureGates.parse(text).enabled(name) for name in gates)
    assert len(gates) == 2
