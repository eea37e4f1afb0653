"""Which nodes a pod may run on, by node selector, node affinity and taints."""

import pytest

from trimtab.model.core.objects import Node, Taint
from trimtab.model.core.scheduling import (
    PlacedSpec,
    Toleration,
    find_untolerated_taint,
    matches_node_affinity,
)
from trimtab.model.json import wire

NODE = wire.convert({"metadata": {"name": "node-1", "labels": {"zone": "a", "cores": "8"}}}, Node)
TAINT = Taint(key="gpu", value="yes", effect="NoSchedule")


def requirement(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def spec_of(*terms, selector=None):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    body = {"nodeSelector": selector or {}, "affinity": {"nodeAffinity": required}}
    return wire.convert(body, PlacedSpec)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(requirement("zone", "In", "a", "b"), True, id="the label is one of the values"),
        pytest.param(requirement("rack", "In", "a"), False, id="a missing label is in no list"),
        pytest.param(requirement("zone", "NotIn", "a"), False, id="the label is excluded"),
        pytest.param(requirement("rack", "NotIn", "a"), True, id="a missing label is not excluded"),
        pytest.param(requirement("zone", "Exists"), True, id="the label exists"),
        pytest.param(requirement("zone", "DoesNotExist"), False, id="the label must not exist"),
        pytest.param(requirement("cores", "Gt", "4"), True, id="the label is greater"),
        pytest.param(requirement("cores", "Lt", "4"), False, id="the label is not less"),
        pytest.param(requirement("cores", "Gt", "8"), False, id="equal is not greater"),
        pytest.param(requirement("cores", "Lt", "8"), False, id="equal is not less"),
        pytest.param(requirement("cores", "Lt", "9"), True, id="the label is less"),
        pytest.param(requirement("cores", "Gt"), False, id="no bound"),
        pytest.param(requirement("rack", "Gt", "4"), False, id="a missing label is no number"),
        pytest.param(requirement("rack", "Exists"), False, id="a missing label does not exist"),
        pytest.param(requirement("rack", "DoesNotExist"), True, id="a missing label must not exist"),
        pytest.param(requirement("zone", "Gt", "4"), False, id="a text is no number"),
        pytest.param(requirement("zone", "Near", "a"), False, id="an unknown operator never holds"),
    ],
)
def test_a_requirement_on_labels(expression, want):
    assert matches_node_affinity(spec_of({"matchExpressions": [expression]}), NODE) is want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(PlacedSpec(), True, id="without affinity every node matches"),
        pytest.param(spec_of(), True, id="without terms every node matches"),
        pytest.param(spec_of({}), False, id="an empty term matches no node"),
        pytest.param(
            spec_of({}, {"matchExpressions": [requirement("zone", "Exists")]}), True, id="one term is enough"
        ),
        pytest.param(
            spec_of({"matchFields": [requirement("metadata.name", "In", "node-2")]}), False, id="another node"
        ),
        pytest.param(spec_of(selector={"zone": "b"}), False, id="the node selector must hold, too"),
    ],
)
def test_terms_and_node_selector(spec, want):
    assert matches_node_affinity(spec, NODE) is want


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(Toleration(key="gpu", value="yes"), None, id="the same key and value"),
        pytest.param(Toleration(key="gpu", operator="Exists"), None, id="any value"),
        pytest.param(Toleration(operator="Exists"), None, id="every taint"),
        pytest.param(Toleration(), TAINT, id="an empty key needs Exists"),
        pytest.param(Toleration(key="gpu", value="no"), TAINT, id="another value"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), TAINT, id="another effect"),
    ],
)
def test_a_toleration_of_a_taint(toleration, want):
    assert find_untolerated_taint([toleration], [TAINT]) == want


def test_a_preference_keeps_no_pod_away():
    assert find_untolerated_taint([], [Taint(key="gpu", effect="PreferNoSchedule")]) is None


HOLDS, FAILS = requirement("zone", "Exists"), requirement("zone", "DoesNotExist")
NAMED = requirement("metadata.name", "In", "node-1")


@pytest.mark.parametrize(
    ("term", "want"),
    [
        pytest.param({"matchExpressions": [HOLDS, FAILS]}, False, id="the last fails"),
        pytest.param({"matchExpressions": [FAILS, HOLDS]}, False, id="the first fails"),
        pytest.param({"matchExpressions": [HOLDS, HOLDS]}, True, id="both hold"),
        pytest.param(
            {"matchExpressions": [FAILS], "matchFields": [NAMED]}, False, id="the field alone holds"
        ),
        pytest.param({"matchExpressions": [HOLDS], "matchFields": [NAMED]}, True, id="label and field hold"),
    ],
)
def test_every_requirement_of_a_term_must_hold(term, want):
    assert matches_node_affinity(spec_of(term), NODE) is want
    assert matches_node_affinity(spec_of(term, {"matchExpressions": [HOLDS]}), NODE)
    assert matches_node_affinity(spec_of({"matchExpressions": [HOLDS]}, term), NODE)


@pytest.mark.parametrize(
    ("selector", "want"), [({"zone": "a"}, True), ({"zone": "a", "cores": "9"}, False), ({"cores": "9", "zone": "a"}, False)]
)  # fmt: skip
def test_every_label_of_a_node_selector_must_match(selector, want):
    assert matches_node_affinity(wire.convert({"nodeSelector": selector}, PlacedSpec), NODE) is want


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_one_taint_that_is_not_tolerated_keeps_a_pod_away(order, effect):
    known, other = Taint(key="gpu", effect=effect), Taint(key="spot", effect=effect)
    tolerations = [Toleration(key="x"), Toleration(key="gpu", operator="Exists", effect=effect)][::order]
    assert find_untolerated_taint(tolerations, [known, other][::order]) == other
    assert find_untolerated_taint(tolerations, [known]) is None
