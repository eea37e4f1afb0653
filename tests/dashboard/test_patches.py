"""What can be copied from a page does what the page showed."""

import shlex
import shutil
import subprocess

import msgspec
import pytest
import yaml
from hypothesis import given as generated
from hypothesis import strategies as st

from tests.dashboard import stage
from tests.dashboard.asking import EVERYTHING
from tests.dashboard.roles import play
from tests.unit.decide.horizontal import builders as given
from trimtab.dashboard.pages.patches import hpa_patch, patch_command, requests_yaml
from trimtab.dashboard.pages.what_if import Edits, MetricEdit, edited
from trimtab.model import hpa as hpa_rules
from trimtab.model.hpa.selection_strategy import ANNOTATION
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedContainerResources


def merged(target, patch):
    """Apply a merge patch as RFC 7396 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def record_of(hpa=None, **meta):
    hpa_state = stage.autoscaler(hpa=hpa)
    hpa_state.hpa = msgspec.structs.replace(
        hpa_state.hpa, metadata=msgspec.structs.replace(hpa_state.hpa.metadata, **meta)
    )
    stage.decided(hpa_state, 3, given.usage_of(given.pods(3), 50))
    return hpa_state.records[-1]


RULES = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "tolerance": st.sampled_from(["0", "0.05", "0.5"]),
        "policies": st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["Pods", "Percent"]),
                    "value": st.integers(1, 9),
                    "periodSeconds": st.integers(1, 1800),
                }
            ),
            min_size=1,
            max_size=2,
        ),
    },
)
BEHAVIOR = st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES})
EDITS = st.builds(
    Edits,
    min_replicas=st.none() | st.integers(1, 5),
    max_replicas=st.none() | st.integers(5, 20),
    behavior=st.none() | BEHAVIOR,
    selection_strategy=st.none() | st.just("LabelSelector"),
)


@generated(EDITS, st.sampled_from([given.hpa(), stage.busy_hpa()]))
def test_the_patched_object_has_the_spec_that_was_tried(edits, hpa):
    record = record_of(hpa)
    patch = hpa_patch(record, edits, is_native=False)
    stored, tried = (as_json(seen.hpa.spec) for seen in (record.observation, edited(record, edits)))
    assert defaulted(merged({"spec": stored}, patch)["spec"]) == defaulted(tried)
    assert merged({"spec": stored}, patch) != {"spec": stored} or not patch, "a patch without effect is none"


def as_json(spec):
    return wire.decode(wire.encode(spec), dict)


def defaulted(spec):
    shell = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    return wire.convert(hpa_rules.default({**shell, "spec": spec}), HorizontalPodAutoscaler).spec


def test_edits_of_the_input_alone_are_no_patch():
    edits = Edits(metrics=(MetricEdit(0, 90),), replicas=9, forgets=True)
    assert patch_command(record_of(), edits, is_native=False) == ""
    assert (
        patch_command(record_of(), Edits(max_replicas=given.hpa().spec.max_replicas), is_native=False) == ""
    )


def test_a_native_hpa_gets_the_annotation_because_its_kind_has_no_field():
    edits = Edits(selection_strategy="OwnerReference", max_replicas=20)
    assert hpa_patch(record_of(), edits, is_native=True) == {
        "metadata": {"annotations": {ANNOTATION: "OwnerReference"}},
        "spec": {"maxReplicas": 20},
    }


def test_an_annotation_that_contradicts_the_field_is_removed():
    record = record_of(annotations={ANNOTATION: "LabelSelector"})
    assert hpa_patch(record, Edits(selection_strategy="OwnerReference"), is_native=False) == {
        "metadata": {"annotations": {ANNOTATION: None}},
        "spec": {"selectionStrategy": "OwnerReference"},
    }


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_command_is_one_that_a_shell_understands():
    command = patch_command(
        record_of(name="it's $HOME"), Edits(behavior={"scaleUp": {"tolerance": "0.2"}}), is_native=False
    )
    script = f'kubectl() {{ printf "%s\\0" "$@"; }}\n{command}'
    told = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout
    *words, patch, _ = told.split("\0")
    assert shlex.join(words) == shlex.join(
        ["patch", "thpa", "it's $HOME", "-n", "shop", "--type", "merge", "--patch"]
    )
    assert yaml.safe_load(patch) == {"spec": {"behavior": {"scaleUp": {"tolerance": "0.2"}}}}


def test_targets_become_requests_with_memory_in_whole_mebibytes():
    entries = [
        RecommendedContainerResources(
            container_name="app",
            target={"memory": Quantity.parse("9616998332"), "cpu": Quantity.parse("163m")},
        ),
        RecommendedContainerResources(container_name="idle", target={}),
        RecommendedContainerResources(container_name="proxy", target={"memory": Quantity.parse("64Mi")}),
    ]
    assert yaml.safe_load(requests_yaml(entries)) == {
        "containers": [
            {"name": "app", "resources": {"requests": {"cpu": "163m", "memory": "9172Mi"}}},
            {"name": "proxy", "resources": {"requests": {"memory": "64Mi"}}},
        ]
    }
    assert requests_yaml(entries[1:2]) == ""


def test_the_page_of_a_vpa_offers_its_targets():
    async def look(_stage, source):
        (row,) = [row for row in source.rows() if row.name == "lead"]
        page = await source.page(row.id, EVERYTHING)
        assert page is not None
        (container,) = yaml.safe_load(page.requests)["containers"]
        (cpu,) = [view for view in page.amounts if view.resource == "cpu"]
        assert container["name"] == cpu.container
        assert Quantity.parse(container["resources"]["requests"]["cpu"]).as_float() == cpu.target

    play(look)
