"""Values are set by path, in the type that they have."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.install import ValueProblem, manifests, set_values
from trimtab.install.schema import problems, values_schema

CIDR = values_schema()["properties"]["networkPolicy"]["properties"]["apiServerCidrs"]["items"]


def look_up(values, path):
    for name in path.split("."):
        values = values[name]
    return values


@pytest.mark.parametrize(
    ("assignment", "path", "want"),
    [
        pytest.param("replicas=3", "replicas", 3, id="a number"),
        pytest.param("image.tag=1.0", "image.tag", "1.0", id="a text that looks like a number stays text"),
        pytest.param("adapter.enabled=true", "adapter.enabled", True, id="a switch"),
        pytest.param(
            "horizontal.customMetrics=a, b", "horizontal.customMetrics", ["a", "b"], id="a list by commas"
        ),
        pytest.param(
            "horizontal.customMetrics={a, b}", "horizontal.customMetrics", ["a", "b"], id="a list as in Helm"
        ),
        pytest.param(
            "horizontal.customMetrics={a}", "horizontal.customMetrics", ["a"], id="a list of one as in Helm"
        ),
        pytest.param(
            "horizontal.customMetrics={}", "horizontal.customMetrics", [], id="an empty list as in Helm"
        ),
        pytest.param(
            r"imagePullSecrets[0].name=a,settings.plugins=a.b/C\,d.e/F",
            "settings.plugins",
            "a.b/C,d.e/F",
            id="a comma as in Helm",
        ),
        pytest.param(
            "settings.watch-namespaces=shop,search",
            "settings.watch-namespaces",
            "shop,search",
            id="a comma without a backslash",
        ),
        pytest.param("settings.dry-run=true", "settings.dry-run", True, id="a switch of all programs"),
        pytest.param(
            "settings.horizontal-pod-autoscaler-tolerance=0.2",
            "settings.horizontal-pod-autoscaler-tolerance",
            0.2,
            id="a fraction",
        ),
        pytest.param(
            "settings.feature-gates=HPAScaleToZero=false,AllAlpha=true",
            "settings.feature-gates",
            "HPAScaleToZero=false,AllAlpha=true",
            id="equals signs of gates",
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
        pytest.param(
            "horizontal.customMetrics={1234}",
            "horizontal.customMetrics",
            ["1234"],
            id="a text of digits in a list",
        ),
        pytest.param("tolerations=[{operator: Exists}]", "tolerations", [{"operator": "Exists"}], id="YAML"),
        pytest.param("nodeSelector.pool=infra", "nodeSelector.pool", "infra", id="a key of the user's own"),
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
        pytest.param(
            "horizontal.customMetrics[0]=a", "horizontal.customMetrics", ["a"], id="a text in a list"
        ),
        pytest.param(
            "networkPolicy.apiServerPorts[0]=443,networkPolicy.apiServerPorts[1]=6443",
            "networkPolicy.apiServerPorts",
            [443, 6443],
            id="numbers by their index",
        ),
        pytest.param("adapter.enabled=true,replicas=3", "replicas", 3, id="the second of two assignments"),
        pytest.param(
            "horizontal.customMetrics=a,b,replicas=3",
            "horizontal.customMetrics",
            ["a", "b"],
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
    values = set_values(["horizontal.customMetrics=a,b", "horizontal.customMetrics[1]=c"])
    assert values["horizontal"]["customMetrics"] == ["a", "c"]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        pytest.param("replicas", "expected KEY=VALUE", id="no value"),
        pytest.param(
            "nonsense=3",
            "there is no such value; known are: settings, namespace, crds, image, ",
            id="a name that is not known",
        ),
        pytest.param("replica=3", "there is no such value; did you mean replicas?", id="a name nearly known"),
        pytest.param("replicas=three", "'three' is not a whole number", id="no number"),
        pytest.param("settings.dry-run=maybe", "'maybe' is not true or false", id="no switch"),
        pytest.param("settings.dry-run=yes", "'yes' is not true or false", id="a switch of YAML 1.1"),
        pytest.param("replicas=null", "replicas: is missing", id="a value that is taken away"),
        pytest.param("horizontal.customMetrics=a}", "'a}' is not the name of a metric", id="half a list"),
        pytest.param("horizontal.customMetrics=[a, 7]", "7 is not the name of a metric", id="no text"),
        pytest.param(
            "settings.watch-namespaces=Shop",
            "'Shop' is not a list with commas, of which each part is a namespace",
            id="no DNS label",
        ),
        pytest.param(
            "settings.dry-runs=true",
            r"settings.dry-runs: there is no such value; did you mean settings.dry-run\?",
            id="a setting nearly known",
        ),
        pytest.param(
            "settings.password=secret",
            "there is no such value; docs/reference/flags.md lists them",
            id="a secret",
        ),
        pytest.param("networkPolicy.apiServerPorts={https}", "'https' is not a whole number", id="no port"),
        pytest.param(
            "networkPolicy.apiServerPorts=443,[", r"'\[' is not a whole number", id="a port that is no YAML"
        ),
        pytest.param('commonLabels."a b"=foo', "is not the key of a label such as team", id="no key"),
        pytest.param("tolerations=[", "tolerations.0: '\\[' is not a map", id="broken YAML"),
        pytest.param(
            "tolerations[x].key=gpu",
            r"--set tolerations\[x\].key: an index is a number, as tolerations\[0\]",
            id="no index",
        ),
        pytest.param("tolerations[0.key=gpu", "an index is a number", id="half an index"),
        pytest.param("tolerations[-1].key=gpu", "an index is a number", id="an index from the end"),
        pytest.param(
            "tolerations[1].key=gpu",
            r"tolerations\[1\].key: the list has 0 items, so the next index is 0",
            id="an index past the end",
        ),
        pytest.param("replicas[0]=3", r"replicas: \[3\] is not a whole number", id="an index of a number"),
        pytest.param(
            "tolerations.key=gpu", "tolerations: {'key': 'gpu'} is not a list", id="a key of a list"
        ),
        pytest.param("image..tag=3", "there is no such value", id="an empty name"),
        pytest.param("adapter.prometheus=http://me:a/b@c", "'http://...@c' is not", id="a password"),
        pytest.param("=3", "expected KEY=VALUE", id="no key"),
        pytest.param(
            "adapter.enabled=true,replicass=3",
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
        manifests(set_values(), namespace)


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
