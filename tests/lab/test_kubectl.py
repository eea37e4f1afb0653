"""The real kubectl believes the lab."""

import json
import os
import shutil
import subprocess
from datetime import timedelta

import pytest

from trimtab_lab.metrics.apis import UsageSample

KUBECTL = shutil.which("kubectl") or ""
pytestmark = pytest.mark.skipif(
    not KUBECTL, reason="kubectl is not on the path; install it to run these tests"
)

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {tier: front}}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - {name: main, image: "nginx:1", ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}
"""


def manifest(name, replicas=2):
    return MANIFEST.replace("NAME", name).replace("REPLICAS", str(replicas))


@pytest.fixture
def kubectl(lab):
    def run(*arguments, stdin=None, fails=False, env=None):
        done = subprocess.run(
            [KUBECTL, f"--kubeconfig={lab.kubeconfig}", f"--cache-dir={lab.kubeconfig.parent}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, **(env or {})},
        )
        assert bool(done.returncode) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr if fails else done.stdout

    return run


@pytest.fixture
def app(kubectl, request):
    """A Deployment named after the test, gone afterwards."""
    name = f"app-{abs(hash(request.node.name)) % 100_000}"
    kubectl("apply", "-f", "-", stdin=manifest(name))
    yield name
    kubectl("delete", "deployment", name, "--ignore-not-found")


def replicas(kubectl, name):
    return kubectl("get", "deployment", name, "-o", "jsonpath={.spec.replicas}")


def test_get_shows_tables_wide_and_yaml(kubectl, app):
    wide = kubectl("get", "deployment", app, "-o", "wide")
    assert "READY" in wide
    assert "nginx:1" in wide
    assert "kind: Deployment" in kubectl("get", "deployment", app, "-o", "yaml")


def test_client_side_apply_creates_changes_and_leaves_alone(kubectl, app):
    assert "configured" in kubectl("apply", "-f", "-", stdin=manifest(app, 5))
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest(app, 5))
    assert replicas(kubectl, app) == "5"


def test_server_side_apply_reports_conflicts_and_can_be_forced(kubectl):
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, stdin=manifest("ssa", 2))
    kubectl("scale", "deployment", "ssa", "--replicas=7")
    refused = kubectl(*apply, stdin=manifest("ssa", 2), fails=True)
    assert "conflict" in refused
    assert ".spec.replicas" in refused
    kubectl(*apply, "--force-conflicts", stdin=manifest("ssa", 2))
    assert replicas(kubectl, "ssa") == "2"
    kubectl("delete", "deployment", "ssa")


def test_diff_shows_what_apply_would_change(kubectl, app):
    difference = kubectl("diff", "-f", "-", stdin=manifest(app, 9), fails=True)
    assert "+  replicas: 9" in difference


def test_edit_saves_what_the_editor_wrote(kubectl, app):
    kubectl("edit", "deployment", app, env={"EDITOR": "sed -i s/nginx:1/nginx:2/"})
    path = "jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deployment", app, "-o", path) == "nginx:2"


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        ("strategic", {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}}),
        ("merge", {"metadata": {"labels": {"side": "yes"}}}),
        ("json", [{"op": "add", "path": "/metadata/labels/side", "value": "yes"}]),
    ],
)
def test_patch_in_its_three_forms(kubectl, app, form, patch):
    kubectl("patch", "deployment", app, f"--type={form}", "-p", json.dumps(patch))
    assert "side" in kubectl("get", "deployment", app, "-o", "json")


def test_a_strategic_patch_keeps_the_other_containers(kubectl, app):
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}}
    kubectl("patch", "deployment", app, "-p", json.dumps(patch))
    names = kubectl("get", "deployment", app, "-o", "jsonpath={.spec.template.spec.containers[*].name}")
    assert set(names.split()) == {"main", "side"}


def test_label_and_annotate(kubectl, app):
    kubectl("label", "deployment", app, "colour=red")
    assert "already has a value" in kubectl("label", "deployment", app, "colour=blue", fails=True)
    kubectl("label", "--overwrite", "deployment", app, "colour=blue")
    kubectl("annotate", "deployment", app, "note=hello")
    assert app in kubectl("get", "deployment", "-l", "colour=blue", "-o", "name")


def test_scale_and_autoscale(kubectl, app):
    kubectl("scale", "deployment", app, "--replicas=4")
    assert replicas(kubectl, app) == "4"
    kubectl("autoscale", "deployment", app, "--min=2", "--max=6", "--cpu-percent=70")
    shown = kubectl("get", "hpa", app)
    assert f"Deployment/{app}" in shown
    assert "/70%" in shown
    assert "cpu" in kubectl("describe", "hpa", app)


def test_delete_waits_until_the_object_is_gone(kubectl, app):
    assert "deleted" in kubectl("delete", "deployment", app)
    assert "NotFound" in kubectl("get", "deployment", app, fails=True)


def test_describe_a_deployment(kubectl, app):
    described = kubectl("describe", "deployment", app)
    assert "RollingUpdate" in described
    assert "nginx:1" in described


def test_get_watch_prints_events_as_they_happen(kubectl, lab, app):
    with subprocess.Popen(
        [
            KUBECTL,
            f"--kubeconfig={lab.kubeconfig}",
            "get",
            "deployment",
            app,
            "--watch",
            "--request-timeout=30s",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        header, first = watching.stdout.readline(), watching.stdout.readline()
        kubectl("scale", "deployment", app, "--replicas=8")
        changed = watching.stdout.readline()
        watching.terminate()
    assert header.startswith("NAME")
    assert "0/2" in first
    assert "0/8" in changed


def test_explain_lists_fields(kubectl):
    assert "maxReplicas" in kubectl("explain", "hpa.spec")
    assert "containers" in kubectl("explain", "pod.spec", "--recursive")


def test_api_resources_and_versions(kubectl):
    listed = kubectl("api-resources")
    assert "horizontalpodautoscalers" in listed
    assert "autoscaling/v2" in kubectl("api-versions")


def test_wait_for_a_field(kubectl, app):
    met = kubectl("wait", f"deployment/{app}", "--for=jsonpath={.spec.replicas}=2", "--timeout=20s")
    assert "condition met" in met


def test_auth_can_i_and_whoami(kubectl):
    assert kubectl("auth", "can-i", "delete", "nodes").strip() == "yes"
    assert "no" in kubectl("auth", "can-i", "get", "secrets", "--as=somebody", fails=True)
    assert "system:masters" in kubectl("auth", "whoami")


def test_create_token_logs_in_as_a_service_account(kubectl):
    """kubectl sends the request as protobuf, which was refused although the table of messages has it."""
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=10m").strip()
    whoami = kubectl(f"--token={token}", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert whoami == "system:serviceaccount:default:robot"


def test_get_events(kubectl):
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "Told",
        "message": "something happened",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    kubectl("create", "-f", "-", stdin=json.dumps(event))
    assert "something happened" in kubectl("get", "events")
    assert "something happened" in kubectl("events")


def test_unknown_fields_are_refused(kubectl):
    wrong = manifest("typo").replace("replicas:", "replica:")
    assert 'unknown field "spec.replica"' in kubectl("apply", "-f", "-", stdin=wrong, fails=True)


def test_namespaces_take_their_content_with_them(kubectl):
    kubectl("create", "namespace", "short-lived")
    kubectl("create", "configmap", "inside", "-n", "short-lived", "--from-literal=a=b")
    kubectl("delete", "namespace", "short-lived")
    assert "NotFound" in kubectl("get", "configmap", "inside", "-n", "short-lived", fails=True)


def test_custom_resources_from_definition_to_table(kubectl):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sails.lab.example.com"},
        "spec": {
            "group": "lab.example.com",
            "scope": "Namespaced",
            "names": {"plural": "sails", "kind": "Sail"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"area": {"type": "integer"}}}
                            },
                        }
                    },
                    "additionalPrinterColumns": [
                        {"name": "Area", "type": "integer", "jsonPath": ".spec.area"}
                    ],
                }
            ],
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    kubectl("wait", "--for=condition=Established", "crd/sails.lab.example.com", "--timeout=10s")
    sail = {
        "apiVersion": "lab.example.com/v1",
        "kind": "Sail",
        "metadata": {"name": "main"},
        "spec": {"area": 30},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(sail))
    sail["spec"] = {"area": 40}
    assert "configured" in kubectl("apply", "-f", "-", stdin=json.dumps(sail))
    assert "AREA" in kubectl("get", "sails")
    assert "area" in kubectl("explain", "sail.spec")
    kubectl("delete", "crd", "sails.lab.example.com")
    # kubectl may still remember the resource from its discovery cache; the server does not.
    assert "could not find" in kubectl("get", "--raw", "/apis/lab.example.com/v1/sails", fails=True)


def test_run_exposes_and_deletes_a_pod(kubectl):
    kubectl("run", "one", "--image=busybox", "--port=80")
    kubectl("expose", "pod", "one", "--port=80")
    assert "Pending" in kubectl("get", "pods,services")
    kubectl("delete", "pod,service", "one")


def test_logs_are_refused_politely(kubectl):
    kubectl("run", "quiet", "--image=busybox")
    assert "runs no containers" in kubectl("logs", "quiet", fails=True)
    kubectl("delete", "pod", "quiet")


class SevenMilli:
    """Every pod and node uses the same."""

    def pod_usage(self, namespace, name, now):
        return UsageSample({"main": {"cpu": "7m", "memory": "5Mi"}}, now, timedelta(seconds=15))

    def node_usage(self, name, now):
        return UsageSample({"": {"cpu": "7m", "memory": "5Mi"}}, now, timedelta(seconds=15))


def test_top_and_get_show_usage_in_both_versions(kubectl, lab):
    kubectl("run", "measured", "--image=nginx:1", "--labels=app=measured")
    lab.server.metrics.source = SevenMilli()
    try:
        shown = kubectl("top", "pod", "-l", "app=measured", "--no-headers")
        assert shown.split() == ["measured", "7m", "5Mi"]
        for version in ("v1", "v1beta1"):
            found = json.loads(kubectl("get", f"pods.{version}.metrics.k8s.io", "measured", "-o", "json"))
            assert found["apiVersion"] == f"metrics.k8s.io/{version}"
            assert found["containers"] == [{"name": "main", "usage": {"cpu": "7m", "memory": "5Mi"}}]
        assert {"metrics.k8s.io/v1", "metrics.k8s.io/v1beta1"} <= set(kubectl("api-versions").split())
    finally:
        lab.server.metrics.source = None
        kubectl("delete", "pod", "measured", "--now")
