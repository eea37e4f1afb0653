"""Rules of VPAs that upstream has no vectors for: scopes, our estimator settings, what only the schema refuses."""

import pytest

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.vpa.defaults import VPAOptions, options_for
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.model.vpa.validation import schema_errors, validate_scope, validate_vpa

TARGET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
SCOPES_ALLOWED = VPAOptions(allow_vpa_scope=True)
GATE_ON = FeatureGates(vpa_selector_refinement=True)


def vpa(**spec):
    return wire.convert({"spec": {"targetRef": TARGET, **spec}}, VerticalPodAutoscaler)


def policy(**fields):
    return vpa(resourcePolicy={"containerPolicies": [{"containerName": "app", **fields}]})


def errors(found):
    return [(error.type.value.removeprefix("FieldValue"), error.field, error.detail) for error in found]


class TestScopeReference:
    def test_is_forbidden_while_the_gate_is_off(self):
        found = validate_vpa(vpa(vpaScope={"name": "leader"}), options_for(FeatureGates()))
        detail = "not supported when feature flag VPASelectorRefinement is disabled"
        assert errors(found.errors) == [("Forbidden", "spec.vpaScope", detail)]

    def test_stays_allowed_on_an_object_that_has_one(self):
        old = vpa(vpaScope={"name": "leader"})
        options = options_for(FeatureGates(), old)
        assert not validate_vpa(vpa(vpaScope={"name": "follower"}), options).errors

    def test_needs_a_name(self):
        found = validate_vpa(vpa(vpaScope={}), SCOPES_ALLOWED)
        assert errors(found.errors)[0][:2] == ("Required", "spec.vpaScope.name")

    def test_must_name_a_scope_that_exists_where_that_is_checked(self):
        scoped = vpa(vpaScope={"name": "leader"}, updatePolicy={"updateMode": "InPlaceOrRecreate"})
        assert not validate_vpa(scoped, options_for(GATE_ON)).errors
        assert not validate_vpa(scoped, options_for(GATE_ON, checked_scopes={"leader"})).errors
        found = validate_vpa(scoped, options_for(GATE_ON, checked_scopes={"other"}))
        assert errors(found.errors) == [("NotFound", "spec.vpaScope.name", "")]

    @pytest.mark.parametrize(
        ("mode", "warnings"),
        [
            pytest.param(None, 1, id="no policy means Recreate, which evicts"),
            pytest.param("Recreate", 1, id="Recreate evicts"),
            pytest.param("Auto", 2, id="Auto is deprecated, and evicts where it cannot resize"),
            pytest.param("InPlaceOrRecreate", 0, id="InPlaceOrRecreate resizes"),
            pytest.param("Initial", 0, id="Initial touches no running pod"),
            pytest.param("Off", 0, id="Off touches nothing"),
        ],
    )
    def test_warns_of_modes_that_evict(self, mode, warnings):
        update = {"updatePolicy": {"updateMode": mode}} if mode else {}
        assert (
            len(validate_vpa(vpa(vpaScope={"name": "leader"}, **update), SCOPES_ALLOWED).warnings) == warnings
        )


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"targetPercentile": 0.9, "safetyMarginFraction": "0"}, [], id="fractions are fine"),
        pytest.param({"upperBoundPercentile": 1}, [], id="1 is the largest percentile"),
        pytest.param({"targetPercentile": "0"}, ["targetPercentile"], id="percentile 0 covers nothing"),
        pytest.param({"targetPercentile": "1001m"}, ["targetPercentile"], id="nothing covers more than all"),
        pytest.param({"targetPercentile": 95}, ["targetPercentile"], id="percent are not fractions"),
        pytest.param({"safetyMarginFraction": "-1m"}, ["safetyMarginFraction"], id="a margin only adds"),
        pytest.param(
            {"lowerBoundPercentile": "0.9", "targetPercentile": "0.5", "upperBoundPercentile": "0.4"},
            ["targetPercentile", "upperBoundPercentile"],
            id="bounds stand around the target",
        ),
    ],
)
def test_estimator_settings(fields, want):
    found = validate_vpa(policy(**fields), VPAOptions()).errors
    assert [error.field.rpartition(".")[2] for error in found] == want


def test_a_new_vpa_needs_a_target():
    nothing = wire.convert({"spec": {}}, VerticalPodAutoscaler)
    assert errors(validate_vpa(nothing, VPAOptions()).errors)[0][:2] == ("Required", "spec.targetRef")
    assert not validate_vpa(nothing, VPAOptions(is_create=False)).errors


def test_what_only_the_schema_refuses():
    broken = vpa(
        targetRef={"apiVersion": "apps/v1"},
        resourcePolicy={"containerPolicies": [{"containerName": "app", "controlledValues": "LimitsOnly"}]},
        updatePolicy={"updateMode": "Off", "evictionRequirements": [{"changeRequirement": "Sideways"}]},
        recommenders=[{}],
    )
    assert [error.field for error in schema_errors(broken)] == [
        "spec.targetRef.kind",
        "spec.targetRef.name",
        "spec.resourcePolicy.containerPolicies[0].controlledValues",
        "spec.updatePolicy.evictionRequirements[0].resources",
        "spec.updatePolicy.evictionRequirements[0].changeRequirement",
        "spec.recommenders[0].name",
    ]


def scope(**spec):
    return wire.convert({"metadata": {"name": "leader"}, "spec": spec}, VPAScope)


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        pytest.param({}, 0, id="an empty selector selects all"),
        pytest.param({"matchLabels": {"role": "leader"}}, 0, id="a label"),
        pytest.param({"matchExpressions": [{"key": "role", "operator": "Exists"}]}, 0, id="an expression"),
        pytest.param(
            {"matchExpressions": [{"key": "role", "operator": "In"}]}, 1, id="SCP-U4 In without values"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "role", "operator": "Exists", "values": ["x"]}]},
            1,
            id="Exists with values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "role", "operator": "Gt", "values": ["1"]}]},
            1,
            id="SCP-U4 operator",
        ),
        pytest.param({"matchLabels": {"a b": "x"}}, 1, id="SCP-U4 bad key"),
        pytest.param({"matchLabels": {"role": "no spaces"}}, 1, id="bad value"),
        pytest.param({"matchLabels": {"-": "x", "ok": "-"}}, 2, id="every mistake is reported"),
    ],
)
@pytest.mark.parametrize("name", ["podSelector", "nodeSelector"])
def test_a_scopes_selectors_must_be_selectors(name, selector, count):
    found = validate_scope(scope(**{name: selector}))
    assert [(error.type.value, error.field) for error in found] == [
        ("FieldValueInvalid", f"spec.{name}")
    ] * count
