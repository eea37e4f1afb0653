"""Objects that are fine alone and not together."""

import pytest

from trimtab.model.bundle import bundle_findings, controlled_resources
from trimtab.model.hpa.dry_run import DRY_RUN, MODE_ANNOTATION
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

OWN = "autoscaling.trimtab.dev/v2"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def hpa(*resources, name="web", namespace="shop", target=WEB, version="autoscaling/v2", **annotations):
    metrics = [{"type": "Resource", "resource": {"name": resource}} for resource in resources]
    spec = {"scaleTargetRef": target, "metrics": metrics}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return wire.convert({"apiVersion": version, "metadata": metadata, "spec": spec}, HorizontalPodAutoscaler)


def vpa(name="web", namespace="shop", **spec):
    data = {"metadata": {"name": name, "namespace": namespace}, "spec": {"targetRef": WEB, **spec}}
    return wire.convert(data, VerticalPodAutoscaler)


def scope(name, namespace="shop", **spec):
    return wire.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, VPAScope)


def policies(*all_policies):
    return {"resourcePolicy": {"containerPolicies": list(all_policies)}}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, {"cpu", "memory"}, id="both by default"),
        pytest.param({"updatePolicy": {"updateMode": "Off"}}, set(), id="Off changes nothing"),
        pytest.param(
            policies({"containerName": "*", "controlledResources": ["memory"]}), {"memory"}, id="memory alone"
        ),
        pytest.param(policies({"containerName": "*", "mode": "Off"}), set(), id="no container is scaled"),
        pytest.param(
            policies(
                {"containerName": "*", "mode": "Off"},
                {"containerName": "app", "controlledResources": ["cpu"]},
            ),
            {"cpu"},
            id="one container is scaled",
        ),
        pytest.param(
            policies({"containerName": "app", "mode": "Off"}),
            {"cpu", "memory"},
            id="containers without policy are scaled",
        ),
    ],
)
def test_what_a_vpa_changes(spec, want):
    assert controlled_resources(vpa(**spec)) == want


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param([hpa("cpu"), vpa()], [(1, "spec.targetRef")], id="HPA and VPA on CPU"),
        pytest.param([hpa(), vpa()], [(1, "spec.targetRef")], id="an HPA without metrics scales on CPU"),
        pytest.param([hpa("cpu", "memory"), vpa()], [(1, "spec.targetRef")] * 2, id="on both"),
        pytest.param(
            [hpa("cpu"), vpa(updatePolicy={"updateMode": "Off"})], [], id="a VPA that only recommends"
        ),
        pytest.param([hpa("cpu"), vpa(namespace="bank")], [], id="in different namespaces"),
        pytest.param(
            [hpa("cpu", target={**WEB, "apiVersion": "apps/v1beta2"}), vpa()],
            [(1, "spec.targetRef")],
            id="the version of the target does not matter",
        ),
        pytest.param(
            [hpa("cpu"), hpa("cpu", name="b")], [(1, "spec.scaleTargetRef")], id="two HPAs on one workload"
        ),
        pytest.param(
            [hpa("cpu"), hpa("cpu", name="b", namespace="bank")],
            [],
            id="on workloads of different namespaces",
        ),
        pytest.param([vpa(), vpa("b")], [(1, "spec.targetRef")], id="two VPAs for the same pods"),
        pytest.param(
            [vpa(), vpa("b", vpaScope={"name": "s"}), scope("s", podSelector={"matchLabels": {"a": "b"}})],
            [],
            id="a scoped VPA beside a base VPA",
        ),
        pytest.param(
            [vpa(vpaScope={"name": "s"})], [(0, "spec.vpaScope.name")], id="a scope that is not there"
        ),
        pytest.param(
            [
                vpa(vpaScope={"name": "s"}),
                scope("s", namespace="bank", nodeSelector={"matchLabels": {"a": "b"}}),
            ],
            [(0, "spec.vpaScope.name")],
            id="a scope in another namespace",
        ),
        pytest.param(
            [scope("s"), scope("t", podSelector={})], [(0, "spec"), (1, "spec")], id="scopes that select all"
        ),
        pytest.param([vpa(), vpa()], [(1, "metadata.name")], id="one object twice"),
        pytest.param(
            [hpa("cpu", version="autoscaling/v1"), hpa("cpu")],
            [(1, "metadata.name")],
            id="one object in two versions",
        ),
        pytest.param(
            [hpa("cpu"), hpa("cpu", version=OWN, **{MODE_ANNOTATION: DRY_RUN})],
            [],
            id="an own HPA in dry run beside a native one",
        ),
    ],
)
def test_doubts_about_a_bundle(members, want):
    assert [(warning.position, warning.field) for warning in bundle_findings(members)] == want


@pytest.mark.parametrize("name", ["web", "b"])
def test_an_own_hpa_beside_a_native_one_is_an_error(name):
    (found,) = bundle_findings([hpa("cpu"), hpa("cpu", name=name, version=OWN)])
    assert (found.position, found.field, found.is_error) == (1, "spec.scaleTargetRef", True)
    assert found.text.startswith("HorizontalPodAutoscaler.autoscaling shop/web scales the same workload")


BYSTANDERS = [
    scope("bystander", namespace="far", podSelector={"matchLabels": {"a": "b"}}),
    hpa("cpu", name="bystander", namespace="far"),
    vpa("bystander", namespace="elsewhere"),
    vpa("bystander-2", namespace="elsewhere", targetRef=None),
]
BUNDLES = {
    "HPA and VPA": [hpa("cpu"), vpa()],
    "two HPAs": [hpa("cpu"), hpa("cpu", name="b")],
    "two VPAs": [vpa(), vpa("b")],
    "two VPAs of one scope": [
        vpa(vpaScope={"name": "s"}),
        vpa("b", vpaScope={"name": "s"}),
        scope("s", nodeSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    ],
    "no such scope": [vpa(vpaScope={"name": "s"})],
    "a scope without selector": [scope("s")],
    "one object twice": [vpa(), vpa()],
}


@pytest.mark.parametrize("members", BUNDLES.values(), ids=list(BUNDLES))
@pytest.mark.parametrize("place", [0, 1], ids=["before", "after"])
@pytest.mark.parametrize("bystander", BYSTANDERS, ids=["scope", "HPA", "VPA", "VPA without target"])
def test_a_bystander_changes_no_doubt(members, place, bystander):
    alone = bundle_findings(members)
    joined = bundle_findings([bystander, *members] if place == 0 else [*members, bystander])
    shift = 1 - place
    assert [(warning.position - shift, warning.field, warning.text) for warning in joined] == [
        (warning.position, warning.field, warning.text) for warning in alone
    ]
    assert alone != []
    assert bundle_findings([bystander]) == []


@pytest.mark.parametrize(
    ("metric", "want"),
    [
        ({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app"}}, 1),
        ({"type": "Pods", "pods": {"metric": {"name": "memory"}}}, 0),
        ({"type": "Resource"}, 0),
    ],
    ids=["of a container", "a custom metric", "no source"],
)
def test_only_metrics_of_resources_meet_a_vpa(metric, want):
    spec = {"scaleTargetRef": WEB, "metrics": [metric]}
    scaler = wire.convert(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, HorizontalPodAutoscaler
    )
    assert len(bundle_findings([scaler, vpa()])) == want


@pytest.mark.parametrize("kind", ["Resource", "ContainerResource", "Pods"])
@pytest.mark.parametrize("source", ["resource", "containerResource"])
def test_a_source_counts_only_under_its_own_type(kind, source):
    metric = {"type": kind, source: {"name": "memory", "container": "app"}}
    spec = {"scaleTargetRef": WEB, "metrics": [metric]}
    scaler = wire.convert(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, HorizontalPodAutoscaler
    )
    matches = kind[0].lower() + kind[1:] == source
    assert len(bundle_findings([scaler, vpa()])) == matches
