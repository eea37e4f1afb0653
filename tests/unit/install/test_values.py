"""Values are set by path, in the type that they have."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.install import ValueProblem, default_values, set_values
from trimtab.install.template import look_up
from trimtab.install.values.schema import problems
from trimtab.install.values.types import CIDR
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
        pytest.param(
            "networkPolicy.apiServerPorts={6443}",
            "networkPolicy.apiServerPorts",
            [6443],
            id="numbers as in Helm",
        ),
        pytest.param(
            "networkPolicy.apiServerPorts=6443",
            "networkPolicy.apiServerPorts",
            [6443],
            id="a list of one number",
        ),
        pytest.param(
            "networkPolicy.apiServerPorts=443,6443", "networkPolicy.apiServerPorts", [443, 6443], id="numbers"
        ),
        pytest.param("watchNamespaces={1234}", "watchNamespaces", ["1234"], id="a text of digits in a list"),
        pytest.param("tolerations=[{operator: Exists}]", "tolerations", [{"operator": "Exists"}], id="YAML"),
        pytest.param("nodeSelector.pool=infra", "nodeSelector.pool", "infra", id="a key of the user's own"),
        pytest.param(
            "featureGates.HPAScaleToZero=false", "featureGates.HPAScaleToZero", False, id="one gate"
        ),
        pytest.param(
            r"nodeSelector.kubernetes\.io/arch=arm64",
            "nodeSelector",
            {"kubernetes.io/arch": "arm64"},
            id="a dot in a key",
        ),
        pytest.param(
            r"horizontal.serviceAccount.annotations.example\.com/role=arn:a:b",
            "horizontal.serviceAccount.annotations",
            {"example.com/role": "arn:a:b"},
            id="an annotation",
        ),
        pytest.param(
            "tolerations[0].operator=Exists", "tolerations", [{"operator": "Exists"}], id="an item of a list"
        ),
        pytest.param(
            "tolerations[0].operator=Exists,tolerations[0].key=gpu,tolerations[1].key=spot",
            "tolerations",
            [{"operator": "Exists", "key": "gpu"}, {"key": "spot"}],
            id="several assignments",
        ),
        pytest.param("watchNamespaces[0]=shop", "watchNamespaces", ["shop"], id="a text in a list"),
        pytest.param(
            "networkPolicy.apiServerPorts[0]=443,networkPolicy.apiServerPorts[1]=6443",
            "networkPolicy.apiServerPorts",
            [443, 6443],
            id="numbers by their index",
        ),
        pytest.param("dryRun=true,replicas=3", "replicas", 3, id="the second of two assignments"),
        pytest.param(
            "horizontal.extraArgs=--a=1,--b=2",
            "horizontal.extraArgs",
            ["--a=1", "--b=2"],
            id="equals signs of flags",
        ),
        pytest.param(
            "watchNamespaces=shop,search,replicas=3",
            "watchNamespaces",
            ["shop", "search"],
            id="a list, then a number",
        ),
        pytest.param(r"podAnnotations.note=a\,b\\c", "podAnnotations.note", r"a,b\c", id="escapes in a text"),
        pytest.param(
            "podAnnotations.note=a: b: c", "podAnnotations.note", "a: b: c", id="a text that is no YAML"
        ),
        pytest.param(
            "affinity.nodeAffinity.example=yes",
            "affinity.nodeAffinity.example",
            "yes",
            id="a word of YAML 1.1",
        ),
        pytest.param(
            "affinity.nodeAffinity.weights[0].weight=5",
            "affinity.nodeAffinity.weights",
            [{"weight": 5}],
            id="a list without a type",
        ),
    ],
)
def test_a_value_is_set(assignment, path, want):
    assert look_up(set_values([assignment]), path) == want


def test_an_item_of_a_list_is_changed_in_a_later_assignment():
    values = set_values(["watchNamespaces=shop,search", "watchNamespaces[1]=find"])
    assert values["watchNamespaces"] == ["shop", "find"]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        pytest.param("replicas", "expected KEY=VALUE", id="no value"),
        pytest.param(
            "nonsense=3",
            "there is no such value; known are: namespace, crds, image, ",
            id="a name that is not known",
        ),
        pytest.param("replica=3", "there is no such value; did you mean replicas?", id="a name nearly known"),
        pytest.param(
            "adapter.colour=blue",
            "there is no such value; known are: adapter.enabled",
            id="a group that is known",
        ),
        pytest.param("image.tags=3", "there is no such value", id="a name inside a group"),
        pytest.param("replicas=three", "'three' is not a whole number", id="no number"),
        pytest.param("dryRun=maybe", "'maybe' is not true or false", id="no switch"),
        pytest.param("watchNamespaces=shop}", "'shop}' is not the name of a namespace", id="half a list"),
        pytest.param("watchNamespaces=Shop", "'Shop' is not the name of a namespace", id="no DNS label"),
        pytest.param("watchNamespaces=[shop, 7]", "7 is not the name of a namespace", id="no text"),
        pytest.param(
            "vertical.ignoredNamespaces=a.b", "'a.b' is not the name of a namespace", id="no namespace"
        ),
        pytest.param("networkPolicy.apiServerPorts={https}", "'https' is not a whole number", id="no port"),
        pytest.param(
            "networkPolicy.apiServerPorts=443,[", r"'\[' is not a whole number", id="a port that is no YAML"
        ),
        pytest.param(
            "vertical.recommender.name=Upper_Case",
            "'Upper_Case' is not the name of a recommender: up to 63 lower case letters, digits and dashes, nor empty",
            id="no name of a recommender",
        ),
        pytest.param(
            "vertical.updater.maxEvictionsPerMinute=many",
            "'many' is not a whole number from 0 to 999999, nor empty",
            id="no number of evictions",
        ),
        pytest.param("horizontal.shards=1", "1 is not 0 or a number from 2 to 16", id="one shard"),
        pytest.param('commonLabels."a b"=foo', "is not the key of a label such as team", id="no key"),
        pytest.param("tolerations=[", "is not YAML", id="broken YAML"),
        pytest.param(
            "tolerations[x].key=gpu",
            r"--set tolerations\[x\].key=gpu: an index is a number, as tolerations\[0\]",
            id="no index",
        ),
        pytest.param("tolerations[0.key=gpu", "an index is a number", id="half an index"),
        pytest.param("tolerations[-1].key=gpu", "an index is a number", id="an index from the end"),
        pytest.param(
            "tolerations[1].key=gpu",
            r"tolerations\[1\].key: the list has 0 items, so the next index is 0",
            id="an index past the end",
        ),
        pytest.param("replicas[0]=3", r"replicas\[0\]: there is no such value", id="an index of a number"),
        pytest.param("tolerations.key=gpu", "tolerations.key: there is no such value", id="a key of a list"),
        pytest.param("image..tag=3", "there is no such value", id="an empty name"),
        pytest.param("=3", "expected KEY=VALUE", id="no key"),
        pytest.param(
            "dryRun=true,replicass=3",
            "'true,replicass=3' is not true or false",
            id="a second name that is not known",
        ),
    ],
)
def test_a_mistake_is_named(assignment, words):
    with pytest.raises(ValueProblem, match=words):
        set_values([assignment])


@pytest.mark.parametrize("namespace", ["Bad Ns", "", "a.b", "x" * 64])
def test_a_namespace_that_cannot_be_is_refused(namespace):
    with pytest.raises(ValueProblem, match=f"--namespace: {namespace!r} is not the name of a namespace"):
        set_values([], namespace=namespace)


_WORDS = st.lists(st.sampled_from(["0", "1", "ffff", "12345", "g", "", "10", "255"]), min_size=1, max_size=9)
_ADDRESSES = st.one_of(
    st.ip_addresses().map(str),
    st.lists(st.integers(0, 300).map(str), min_size=3, max_size=5).map(".".join),
    _WORDS.map(":".join),
)


@given(_ADDRESSES, st.integers(0, 140))
def test_a_range_of_addresses_is_what_python_takes_for_one(address, bits):
    text = f"{address}/{bits}"
    try:
        ip_network(text, strict=False)
    except ValueError:
        assert list(problems(CIDR, text)), text
    else:
        assert not list(problems(CIDR, text)), text


def test_the_gates_of_our_own_features_are_set_and_known():
    gates = default_values()["featureGates"]
    text = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
    assert all(FeatureGates.parse(text).enabled(name) for name in gates)
    assert len(gates) == 2
