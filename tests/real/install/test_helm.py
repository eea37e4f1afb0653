"""The chart is good by helm's own judgement, and renders to what `trimtab install` prints."""

import base64
import json
import subprocess
from datetime import UTC, datetime

import pytest
import yaml

from tests.unit.install import helm_answers
from tests.unit.install.sets import SETS
from tools.chart import CHART
from tools.peers import build
from trimtab.install import manifests, set_values
from trimtab.operator.vertical.admission.certificates import make_authority

pytestmark = pytest.mark.real

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


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_helm_template_equals_the_flat_manifests(tmp_path, values):
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    assert rendered("-f", str(path)) == {key(one): one for one in manifests(set_values(files=[values]))}


def test_the_recorded_answers_are_helms():
    """`python -m tests.unit.install.helm_answers HELM` records them anew."""
    program = build.find("helm")
    if program is None:
        pytest.skip("helm is not built: python -m tools.peers.build helm")
    assert json.loads(helm_answers.ANSWERS.read_text(encoding="utf-8")) == helm_answers.ask(str(program))


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
    values = ("--set", "crds.install=false", "--set", f"settings.watch-namespaces={RELEASE}")
    done = helm("install", "trimtab", str(CHART), *where, "--create-namespace", *values)
    assert done.returncode == 0, done.stderr
    assert f"It ACTS on the namespaces {RELEASE}," in done.stdout
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
        more = ("--reset-then-reuse-values", "--set", "settings.webhook-timeout-seconds=3")
        done = helm("upgrade", "trimtab", str(CHART), *where, *more)
        assert done.returncode == 0, done.stderr
        assert bundles(installed) == [authority] * 3
    finally:
        done = helm("uninstall", "trimtab", *where)
    assert done.returncode == 0, done.stderr
    assert left_over(installed) == set()
