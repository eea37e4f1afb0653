"""The patch forms by themselves, as tables and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.status import StatusError
from trimtab.model.times import parse_time
from trimtab_lab.patches import json_patch, managed_fields, merge
from trimtab_lab.patches.managed_fields import Manager, from_wire, leaves, show, to_wire
from trimtab_lab.schemas.shapes import shape_of_kind

DEPLOYMENT = shape_of_kind("apps", "v1", "Deployment")
POD = shape_of_kind("", "v1", "Pod")
NOW = parse_time("2026-01-01T00:00:00Z")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@pytest.mark.parametrize(
    ("operations", "wanted"),
    [
        pytest.param(
            [{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}, id="add into a list shifts it"
        ),
        pytest.param([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}, id="a dash appends"),
        pytest.param([{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove by index"),
        pytest.param([{"op": "replace", "path": "/a", "value": {}}], {"a": {}}, id="replace a value"),
        pytest.param([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}, id="move"),
        pytest.param([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}, id="copy"),
        pytest.param([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}, id="a test that holds"),
        pytest.param(
            [{"op": "add", "path": "/x~1y", "value": 1}], {"a": [1, 2], "x/y": 1}, id="escaped slash"
        ),
    ],
)
def test_json_patch(operations, wanted):
    assert json_patch.apply({"a": [1, 2]}, operations) == wanted


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/none"},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "jump", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a"},
    ],
    ids=str,
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(operation):
    with pytest.raises(StatusError) as refused:
        json_patch.apply({"a": [1, 2]}, [operation])
    assert refused.value.code == 422


def test_a_json_patch_of_too_many_operations_is_too_large():
    body = b"[" + b",".join([b'{"op":"test","path":"","value":{}}'] * 10_001) + b"]"
    with pytest.raises(StatusError) as refused:
        json_patch.parse(body)
    assert refused.value.code == 413


def test_copies_that_double_an_object_again_and_again_are_stopped():
    operations = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(200)]
    with pytest.raises(StatusError) as refused:
        json_patch.apply({"a": ["x" * 1000]}, operations)
    assert refused.value.code == 422


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_changes_nothing_more(target, patch):
    once = merge.merge(target, patch)
    assert merge.merge(once, patch) == once


@given(OBJECTS)
def test_an_empty_patch_changes_nothing(target):
    assert merge.merge(target, {}) == target
    assert merge.merge_strategically(target, {}, DEPLOYMENT) == target
    assert json_patch.apply(target, []) == target


def containers(*names):
    return {"spec": {"containers": [{"name": name, "image": "i"} for name in names]}}


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        pytest.param(
            {"containers": [{"name": "a", "image": "new"}]}, [("a", "new"), ("b", "i")], id="merged by name"
        ),
        pytest.param({"containers": [{"name": "a", "$patch": "delete"}]}, [("b", "i")], id="deleted by name"),
        pytest.param(
            {"containers": [{"name": "c", "image": "i"}]}, [("c", "i"), ("a", "i"), ("b", "i")], id="added"
        ),
        pytest.param(
            {"containers": [{"$patch": "replace"}, {"name": "c", "image": "i"}]},
            [("c", "i")],
            id="replaced whole",
        ),
        pytest.param(
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            [("b", "i"), ("a", "i")],
            id="reordered",
        ),
    ],
)
def test_strategic_merge_of_keyed_lists(patch, wanted):
    merged = merge.merge_strategically(containers("a", "b"), {"spec": patch}, POD)
    assert [(container["name"], container["image"]) for container in merged["spec"]["containers"]] == wanted


def test_strategic_merge_deletes_from_lists_of_plain_values():
    target = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert merge.merge_strategically(target, patch, POD) == {"metadata": {"finalizers": ["b"]}}


def test_strategic_merge_retains_only_named_keys():
    target = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merge.merge_strategically(target, patch, DEPLOYMENT) == {
        "spec": {"strategy": {"type": "Recreate"}}
    }


def test_a_keyed_item_without_its_key_is_refused():
    with pytest.raises(StatusError, match="merge key"):
        merge.merge_strategically(containers("a"), {"spec": {"containers": [{"image": "x"}]}}, POD)


PATHS = st.sets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
)


@given(PATHS)
def test_a_set_of_fields_survives_the_wire(paths):
    assert from_wire(to_wire(paths)) == paths


def test_a_field_path_reads_like_the_object():
    (path,) = (p for p in leaves(containers("a"), POD) if p[-1] == "f:image")
    assert show(path) == '.spec.containers[name="a"].image'


def applied(live, config, manager, *, force=False):
    return managed_fields.apply(
        {"metadata": {"name": "x"}, **live},
        {"metadata": {"name": "x"}, **config},
        DEPLOYMENT,
        Manager(manager, "Apply", "apps/v1"),
        NOW,
        force=force,
    )


def test_apply_takes_away_what_its_manager_no_longer_lists():
    first = applied({}, {"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}}, "one")
    second = applied(first, {"metadata": {"name": "x", "labels": {"a": "1"}}}, "one")
    assert second["metadata"]["labels"] == {"a": "1"}


def test_apply_leaves_what_another_manager_also_owns():
    first = applied({}, {"metadata": {"name": "x", "labels": {"a": "1"}}}, "one")
    shared = applied(first, {"metadata": {"name": "x", "labels": {"a": "1"}}}, "two")
    left = applied(shared, {}, "one")
    assert left["metadata"]["labels"] == {"a": "1"}


def test_apply_refuses_to_change_what_another_manager_owns_unless_forced():
    first = applied({}, {"spec": {"replicas": 1}}, "one")
    with pytest.raises(StatusError, match=r'conflict with "one": \.spec\.replicas') as refused:
        applied(first, {"spec": {"replicas": 2}}, "two")
    assert refused.value.code == 409
    forced = applied(first, {"spec": {"replicas": 2}}, "two", force=True)
    assert forced["spec"]["replicas"] == 2
    managers = {entry["manager"] for entry in forced["metadata"]["managedFields"]}
    assert managers == {"two"}


def test_apply_merges_keyed_lists_of_two_managers():
    def ports(*numbers):
        listed = [{"containerPort": number, "protocol": "TCP"} for number in numbers]
        pod = {"containers": [{"name": "c", "ports": listed}]}
        return {"spec": {"template": {"spec": pod}}}

    first = applied({}, ports(80), "one")
    both = applied(first, ports(443), "two")
    found = both["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert [port["containerPort"] for port in found] == [80, 443]
