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


@pytest.mark.parametrize("name", ["kind", "name"])
def test_the_schema_bounds_the_names_of_a_target(name):
    found = list(schema_errors(vpa(targetRef={**TARGET, name: "x" * 10_000})))
    assert [error.field for error in found] == [f"spec.targetRef.{name}"]
    assert list(schema_errors(vpa())) == []


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


EVERYTHING = VPAOptions(
    allow_vpa_scope=True, allow_per_vpa_config=True, allow_in_place=True, allow_cpu_startup_boost=True
)


@pytest.mark.parametrize(
    ("update", "want"),
    [
        pytest.param({"updateMode": "Off", "minReplicas": 1}, [], id="one replica is enough"),
        pytest.param({"updateMode": "Off", "minReplicas": 0}, ["minReplicas"], id="none is not"),
        pytest.param({"updateMode": "Off", "evictAfterOOMSeconds": 1}, [], id="one second"),
        pytest.param(
            {"updateMode": "Off", "evictAfterOOMSeconds": 0}, ["evictAfterOOMSeconds"], id="no time"
        ),
        pytest.param({"updateMode": "InPlace"}, [], id="InPlace"),
        pytest.param({"updateMode": "Sideways"}, ["updateMode"], id="an unknown mode"),
        pytest.param({"minReplicas": 2}, ["updateMode"], id="no mode"),
    ],
)
def test_update_policies(update, want):
    found = validate_vpa(vpa(updatePolicy=update), EVERYTHING).errors
    assert [error.field for error in found] == [f"spec.updatePolicy.{name}" for name in want]


@pytest.mark.parametrize(
    "update",
    [{"updateMode": "InPlace"}, {"updateMode": "Off", "evictAfterOOMSeconds": 60}],
    ids=["mode", "seconds"],
)
def test_gated_fields_of_an_update_policy_are_forbidden(update):
    (error,) = validate_vpa(vpa(updatePolicy=update), VPAOptions()).errors
    assert error.type.value == "FieldValueForbidden"


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"mode": "Off", "controlledValues": "RequestsAndLimits"}, ["controlledValues"], id="Off with limits"),
        pytest.param({"mode": "Off", "controlledValues": "RequestsOnly"}, [], id="Off with requests"),
        pytest.param({"mode": "Auto", "controlledValues": "RequestsAndLimits"}, [], id="Auto with limits"),
        pytest.param({"mode": "Odd"}, ["mode"], id="an unknown mode"),
        pytest.param({"containerName": ""}, ["containerName"], id="no name"),
        pytest.param({"controlledResources": ["gpu", "cpu"]}, ["controlledResources[0]"], id="an unknown resource first"),
        pytest.param({"controlledResources": ["memory", "gpu"]}, ["controlledResources[1]"], id="an unknown resource last"),
        pytest.param({"minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "2"}}, [], id="equal bounds"),
        pytest.param({"minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}}, ["maxAllowed[cpu]"], id="crossed bounds"),
        pytest.param({"minAllowed": {"memory": "2"}, "maxAllowed": {"cpu": "1"}}, [], id="bounds of two resources"),
        pytest.param({"minAllowed": {"cpu": "100u"}}, ["minAllowed[cpu]"], id="less than a milli CPU"),
        pytest.param({"maxAllowed": {"memory": "100m"}}, ["maxAllowed[memory]"], id="less than a byte"),
        pytest.param({"maxAllowed": {"gpu": "100u"}}, [], id="parts of another resource"),
        pytest.param({"oomBumpUpRatio": "1"}, [], id="a bump of nothing"),
        pytest.param({"oomBumpUpRatio": "0.9"}, ["oomBumpUpRatio"], id="a bump below 1"),
        pytest.param({"oomMinBumpUp": "0"}, [], id="no least bump"),
        pytest.param({"oomMinBumpUp": "-1"}, ["oomMinBumpUp"], id="a negative bump"),
        pytest.param({"memoryAggregationIntervalSeconds": 1, "memoryAggregationIntervalCount": 1}, [], id="one each"),
        pytest.param({"memoryAggregationIntervalSeconds": 0}, ["memoryAggregationIntervalSeconds"], id="no seconds"),
        pytest.param({"memoryAggregationIntervalCount": 0}, ["memoryAggregationIntervalCount"], id="no intervals"),
        pytest.param({"lowerBoundPercentile": "0.5", "upperBoundPercentile": "0.5"}, [], id="equal percentiles"),
        pytest.param({"lowerBoundPercentile": "0.6", "upperBoundPercentile": "0.5"}, ["upperBoundPercentile"], id="crossed percentiles without a target"),
    ],
)  # fmt: skip
def test_container_policies(fields, want):
    found = validate_vpa(policy(**fields), EVERYTHING).errors
    assert [error.field for error in found] == [
        f"spec.resourcePolicy.containerPolicies[0].{name}" for name in want
    ]


@pytest.mark.parametrize("name", ["oomBumpUpRatio", "oomMinBumpUp", "memoryAggregationIntervalSeconds", "memoryAggregationIntervalCount"])  # fmt: skip
def test_per_vpa_settings_are_forbidden_while_their_gate_is_off(name):
    (error,) = validate_vpa(policy(**{name: 2}), VPAOptions()).errors
    assert (error.type.value, error.field.rpartition(".")[2]) == ("FieldValueForbidden", name)


@pytest.mark.parametrize(
    ("boost", "want"),
    [
        pytest.param({"type": "Factor", "factor": 1}, [], id="factor 1"),
        pytest.param({"type": "Factor", "factor": 0}, ["factor"], id="factor 0"),
        pytest.param({"type": "Factor"}, ["factor"], id="no factor"),
        pytest.param({"type": "Quantity", "quantity": "100m"}, [], id="a quantity"),
        pytest.param({"type": "Quantity"}, ["quantity"], id="no quantity"),
        pytest.param({"type": "Quantity", "quantity": "1u"}, ["quantity"], id="less than a milli CPU"),
        pytest.param({"type": "Odd"}, ["type"], id="an unknown type"),
        pytest.param({}, ["type"], id="no type"),
    ],
)
def test_startup_boosts(boost, want):
    for made, path in (
        (vpa(startupBoost={"cpu": boost}), "spec.startupBoost.cpu"),
        (policy(startupBoost={"cpu": boost}), "spec.resourcePolicy.containerPolicies[0].startupBoost.cpu"),
    ):
        assert [error.field for error in validate_vpa(made, EVERYTHING).errors] == [
            f"{path}.{name}" for name in want
        ]
        assert [error.type.value for error in validate_vpa(made, VPAOptions()).errors] == [
            "FieldValueForbidden"
        ]
    assert not validate_vpa(vpa(startupBoost={}), EVERYTHING).errors


@pytest.mark.parametrize(
    ("bound", "amount", "count"),
    [("minAllowed", "-1", 1), ("maxAllowed", "-1", 1), ("minAllowed", "0", 0), ("maxAllowed", "9" * 65, 1)],
)
def test_the_schema_refuses_amounts_below_zero_or_of_too_many_digits(bound, amount, count):
    found = list(schema_errors(policy(**{bound: {"cpu": amount}})))
    assert [error.field for error in found] == [
        f"spec.resourcePolicy.containerPolicies[0].{bound}[cpu]"
    ] * count


def test_one_recommender_is_the_most():
    assert not validate_vpa(vpa(recommenders=[{"name": "a"}]), VPAOptions()).errors
    (error,) = validate_vpa(vpa(recommenders=[{"name": "a"}, {"name": "b"}]), VPAOptions()).errors
    assert error.field == "spec.recommenders"


def test_a_resource_of_the_stored_object_stays_allowed_with_a_warning():
    options = VPAOptions(existing_controlled_resources=frozenset({"gpu"}))
    found = validate_vpa(policy(controlledResources=["gpu", "tpu"]), options)
    assert [error.field.rpartition(".")[2] for error in found.errors] == ["controlledResources[1]"]
    assert ["controlledResources[0]" in warning for warning in found.warnings] == [True]
