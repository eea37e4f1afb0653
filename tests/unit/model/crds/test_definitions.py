"""The definitions are structural, name every field of the types, and give every rule a bound."""

import re

import pytest

from trimtab.model.crds import CRDS, all_crds
from trimtab.model.crds.schema import FRACTION, NOT_NEGATIVE, POSITIVE, QUANTITY
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.vpa.types import UpdateMode

DEFINITIONS = {crd.name: crd.manifest() for crd in CRDS}


def schema(name):
    return DEFINITIONS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(node, path=""):
    """Yield every schema with its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


def at(root, path):
    for name in path.split("."):
        root = root["properties"][name.removesuffix("[]")]
        root = root["items"] if name.endswith("[]") else root
    return root


def test_all_four_kinds_are_defined():
    assert [crd["metadata"]["name"] for crd in all_crds()] == [
        "horizontalpodautoscalers.autoscaling.trimtab.dev",
        "verticalpodautoscalers.autoscaling.trimtab.dev",
        "verticalpodautoscalercheckpoints.autoscaling.trimtab.dev",
        "vpascopes.autoscaling.trimtab.dev",
    ]


@pytest.mark.parametrize("name", DEFINITIONS)
class TestEveryDefinition:
    def test_has_names_that_belong_together(self, name):
        spec = DEFINITIONS[name]["spec"]
        assert f"{spec['names']['plural']}.{spec['group']}" == name
        assert spec["names"]["listKind"] == f"{spec['names']['kind']}List"
        assert [version["storage"] for version in spec["versions"]] == [True]

    def test_is_approved_where_the_group_is_protected(self, name):
        annotations = DEFINITIONS[name]["metadata"].get("annotations", {})
        assert ("api-approved.kubernetes.io" in annotations) == name.endswith(".k8s.io")

    def test_gives_every_schema_one_type(self, name):
        for path, node in nodes(schema(name)):
            kinds = {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}
            is_free = node.get("type") == "object" and "x-kubernetes-preserve-unknown-fields" in node
            assert len(kinds & node.keys()) == (2 if is_free else 1), path
            assert not {"properties", "additionalProperties"} <= node.keys(), path
            assert (node.get("type") == "array") == ("items" in node), path

    def test_requires_only_fields_that_exist(self, name):
        for path, node in nodes(schema(name)):
            assert set(node.get("required", ())) <= set(node.get("properties", {})), path

    def test_keeps_its_hands_off_metadata(self, name):
        assert schema(name)["properties"]["metadata"] == {"type": "object"}

    def test_reports_rules_at_fields_that_exist(self, name):
        for path, node in nodes(schema(name)):
            for rule in node.get("x-kubernetes-validations", ()):
                assert rule["message"], path
                if "fieldPath" in rule:
                    assert rule["fieldPath"].removeprefix(".") in node["properties"], path

    def test_bounds_every_list_and_map_above_a_rule(self, name):
        root = schema(name)
        for path, node in nodes(root):
            is_many = node.get("type") == "array" or "additionalProperties" in node
            has_rules = any("x-kubernetes-validations" in below for _, below in nodes(node))
            if is_many and has_rules:
                assert node.get("maxItems") or node.get("maxProperties"), path

    def test_never_refuses_what_a_controller_reports(self, name):
        status = schema(name)["properties"].get("status", {})
        assert not [path for path, node in nodes(status) if "x-kubernetes-validations" in node]

    def test_shows_columns_of_fields_that_exist(self, name):
        version = DEFINITIONS[name]["spec"]["versions"][0]
        for column in version["additionalPrinterColumns"]:
            # The first names of a path are fields; of a union such as .spec['one','other'] the first one is.
            top, second = re.findall(r"\w+", column["jsonPath"])[:2]
            if top != "metadata":
                assert second in schema(name)["properties"][top]["properties"]

    def test_describes_every_object(self, name):
        assert all(
            node.get("description") for path, node in nodes(schema(name)) if "properties" in node and path
        )


def test_enums_are_those_of_the_types():
    hpa = schema("horizontalpodautoscalers.autoscaling.trimtab.dev")
    (rule,) = at(hpa, "spec.selectionStrategy")["x-kubernetes-validations"]
    pattern = rule["rule"].removeprefix("self.matches('").removesuffix("')")
    assert all(re.match(pattern, name) for name in (*SelectionStrategy, "example.com/NotDraining"))
    assert not any(
        re.match(pattern, name) for name in ("", "Other", "labelSelector", "example/Other", "a.b/")
    )
    vpa = schema("verticalpodautoscalers.autoscaling.trimtab.dev")
    assert at(vpa, "spec.updatePolicy.updateMode")["enum"] == list(UpdateMode)


def test_integers_have_the_width_of_the_api():
    vpa = schema("verticalpodautoscalers.autoscaling.trimtab.dev")
    policy = at(vpa, "spec.resourcePolicy.containerPolicies[]")["properties"]
    assert policy["memoryAggregationIntervalSeconds"]["format"] == "int32"
    assert policy["memoryAggregationIntervalCount"]["format"] == "int64"


def test_only_the_kinds_whose_status_has_another_writer_have_the_subresource():
    with_status = {name for name, crd in DEFINITIONS.items() if "subresources" in crd["spec"]["versions"][0]}
    assert with_status == {
        "horizontalpodautoscalers.autoscaling.trimtab.dev",
        "verticalpodautoscalers.autoscaling.trimtab.dev",
    }


@pytest.mark.parametrize(
    ("number", "good", "bad"),
    [
        (
            POSITIVE,
            ["1", "0.5", ".05", "10m", "+1Gi", "1e-3", "0.0010"],
            ["0", "0.0", "-1", "0m", ".", "1x", "1 m"],
        ),
        (NOT_NEGATIVE, ["0", "0.0", "5", "0m", "1e3"], ["-1", "-0.001", "x", ""]),
        (
            FRACTION,
            ["1", "1.0", "0.99", ".5", "950m", "1000m", "1m"],
            ["0", "0.0", "1.01", "95", "1001m", "-1", "0m"],
        ),
    ],
)
def test_numbers_written_as_text_are_held_to_their_range(number, good, bad):
    patterns = [number["pattern"], *(part["pattern"] for part in number.get("allOf", []))]
    taken = [text for text in [*good, *bad] if all(re.search(pattern, text) for pattern in patterns)]
    assert taken == good


@pytest.mark.parametrize(
    "text", ["1", "-1", "+5", "0.5", ".5", "5.", "100m", "1Gi", "1e3", "1E-3", "12E", "1k", "5u", "7n"]
)
def test_the_pattern_accepts_what_a_quantity_is(text):
    assert re.search(QUANTITY["pattern"], text)
    Quantity.parse(text)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "--1", "1..2", "1e", "0x10", "1Ki5"])
def test_the_pattern_refuses_what_is_none(text):
    assert not re.search(QUANTITY["pattern"], text)
    with pytest.raises(QuantityError):
        Quantity.parse(text)
