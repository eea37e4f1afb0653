"""The chart is good by helm's own judgement, and renders to what `trimtab install` prints."""

import base64
import json
import subprocess
from datetime import UTC, datetime

import pytest
import yaml

from tools.chart import CHART
from tools.peers import build
from trimtab.install import manifests, set_values
from trimtab.operator.vertical.admission.certificates import make_authority

pytestmark = pytest.mark.real

CASES = {
    "as it comes": [],
    "with everything": [
        "adapter.enabled=true",
        "adapter.injectCaFrom=trimtab/adapter",
        "dashboard.enabled=true",
        "horizontal.nativeHpas=true",
        "serviceMonitor.enabled=true",
        "prometheusRule.enabled=true",
        "grafanaDashboard.enabled=true",
        "tokenSecret=trimtab-token",
        "vertical.admission.certificateSecret=mine",
        "compat=kubernetes-1.36",
        "dryRun=true",
        "priorityClassName=system-cluster-critical",
    ],
    "as upstream": ["compat=vpa-1.8", "vertical.admission.timeoutSeconds=30"],
    "registering itself": [
        "vertical.admission.registersItself=true",
        "vertical.admission.failurePolicy=Fail",
    ],
    "with little": ["vertical.enabled=false", "networkPolicy.enabled=false", "crds.install=false"],
}
LISTS = {
    "watchNamespaces": ["shop", "search"],
    "nodeSelector": {"pool": "infra"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "registry"}],
    "podAnnotations": {"note": 'it\'s: "quoted" {{ and }} odd'},
    "scalable": [{"group": "argoproj.io", "resource": "rollouts"}],
    "featureGates": {"HPAScaleToZero": False},
    "vertical": {"ignoredNamespaces": ["batch", "lab"], "includeKubeSystem": True},
    "networkPolicy": {"apiServerCidrs": ["10.0.0.1/32", "10.0.0.2/32"], "apiServerPorts": [6443]},
}


TEMPLATE = ("template", "trimtab", str(CHART), "-n", "trimtab", "--kube-version=1.36.0", "--skip-tests")
"""A helm that was built without its release's stamps takes every cluster for an old one, hence the version."""


def helm(*arguments):
    program = build.find("helm")
    if program is None:
        pytest.skip("helm is not built: python -m tools.peers.build helm")
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def rendered(*arguments):
    done = helm(*TEMPLATE, "--set", "namespace.create=true", *arguments)
    assert done.returncode == 0, done.stderr
    return {key(one): one for one in yaml.safe_load_all(done.stdout) if one}


def key(one):
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def test_helm_lint_finds_nothing():
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_helm_template_equals_the_flat_manifests(settings):
    flags = [flag for setting in settings for flag in ("--set", setting)]
    assert rendered(*flags) == {key(one): one for one in manifests(set_values(settings))}


def test_lists_and_maps_come_out_as_they_went_in(tmp_path):
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(LISTS))
    values = set_values([])
    for name, value in LISTS.items():
        values[name] = {**values[name], **value} if isinstance(value, dict) else value
    assert rendered("-f", str(path)) == {key(one): one for one in manifests(values)}


def test_an_adapter_that_cannot_be_verified_is_refused():
    done = helm(*TEMPLATE, "--set", "adapter.enabled=true")
    assert done.returncode == 1
    assert "adapter.enabled needs adapter.caBundle" in done.stderr


def test_two_releases_share_no_object_of_the_cluster():
    """The second release could not be installed: helm refuses objects that belong to another one."""
    of_cluster = []
    for release in ("one", "two"):
        done = helm("template", release, str(CHART), "-n", release, "--kube-version=1.36.0", "--skip-tests")
        assert done.returncode == 0, done.stderr
        objects = [one for one in yaml.safe_load_all(done.stdout) if one]
        foreign = [key(one) for one in objects if one["metadata"].get("namespace") != release]
        of_cluster.append({one for one in foreign if one[0] != "CustomResourceDefinition"})
    assert all(of_cluster)
    assert of_cluster[0] & of_cluster[1] == set()


RELEASE = "released"
REMOVED = (
    "clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,service,deployment,networkpolicy,secret,"
    "poddisruptionbudget,mutatingwebhookconfiguration,validatingwebhookconfiguration,"
    "validatingadmissionpolicy,validatingadmissionpolicybinding"
)


def left_over(installed):
    """Return the objects of the release, of all kinds that the chart has."""
    listed = installed.kubectl(
        "get", REMOVED, "-A", "-l", "app.kubernetes.io/name=trimtab", "-o", "json"
    ).stdout
    return {key(one) for one in json.loads(listed)["items"] if RELEASE in json.dumps(key(one))}


def bundles(installed):
    listed = installed.kubectl("get", "mutatingwebhookconfiguration", f"{RELEASE}-vpa", "-o", "json").stdout
    return [hook["clientConfig"].get("caBundle") for hook in json.loads(listed)["webhooks"]]


def test_an_upgrade_keeps_the_ca_bundle_and_an_uninstall_leaves_nothing(installed):
    """The webhook configurations stayed behind: the program had made them."""
    where = (f"--kubeconfig={installed.cluster.kubeconfig}", "-n", RELEASE)
    # Nobody answers behind the webhooks, so they are asked about one namespace that has no pods.
    values = ("--set", "crds.install=false", "--set", f"watchNamespaces={{{RELEASE}}}")
    done = helm("install", "trimtab", str(CHART), *where, "--create-namespace", *values)
    assert done.returncode == 0, done.stderr
    try:
        assert ("MutatingWebhookConfiguration", "", f"{RELEASE}-vpa") in left_over(installed)
        authority = base64.b64encode(make_authority(datetime.now(UTC)).certificate_pem).decode()
        add = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": authority}
            for index in range(3)
        ]
        patch = ("--type=json", "-p", json.dumps(add))
        patched = installed.kubectl("patch", "mutatingwebhookconfiguration", f"{RELEASE}-vpa", *patch)
        assert patched.returncode == 0, patched.stderr
        more = ("--reset-then-reuse-values", "--set", "vertical.admission.timeoutSeconds=3")
        done = helm("upgrade", "trimtab", str(CHART), *where, *more)
        assert done.returncode == 0, done.stderr
        assert bundles(installed) == [authority] * 3
    finally:
        done = helm("uninstall", "trimtab", *where)
    assert done.returncode == 0, done.stderr
    assert left_over(installed) == set()
