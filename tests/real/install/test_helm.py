"""The chart is good by helm's own judgement, and renders to what `trimtab install` prints."""

import subprocess

import pytest
import yaml

from tools.chart import CHART
from tools.peers import build
from trimtab.install import manifests, set_values

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


TEMPLATE = ("template", "trimtab", str(CHART), "-n", "trimtab", "--kube-version=1.36.0")
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
        done = helm("template", release, str(CHART), "-n", release, "--kube-version=1.36.0")
        assert done.returncode == 0, done.stderr
        objects = [one for one in yaml.safe_load_all(done.stdout) if one]
        foreign = [key(one) for one in objects if one["metadata"].get("namespace") != release]
        of_cluster.append({one for one in foreign if one[0] != "CustomResourceDefinition"})
    assert all(of_cluster)
    assert of_cluster[0] & of_cluster[1] == set()
