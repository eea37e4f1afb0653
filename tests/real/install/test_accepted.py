"""The real kube-apiserver takes the installation without a warning, and gives the accounts exactly their rights."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.real.install.conftest import AGGREGATED, FOREIGN
from tests.unit.install.sets import SETS
from trimtab.install import manifests, set_values

pytestmark = [pytest.mark.real, pytest.mark.versions]
GOLDEN = Path(__file__).parent / "golden"
ACCOUNTS = ("horizontal", "recommender", "updater", "admission", "adapter", "dashboard")


def test_everything_is_accepted_without_a_warning(installed):
    done = installed.apply(installed.objects, "--dry-run=server")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("serverside-applied") == len(installed.objects)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_every_set_of_values_is_accepted_by_strict_validation(installed, values):
    objects = [one for one in manifests(set_values(files=[values])) if one["kind"] not in FOREIGN]
    for namespace in {one["metadata"].get("namespace", "trimtab") for one in objects}:
        installed.kubectl("create", "namespace", namespace)
    done = installed.apply(objects, "--dry-run=server", "--validate=strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("serverside-applied") == len(objects)


def test_the_aggregated_apis_are_among_them(installed):
    assert sum(one["kind"] == AGGREGATED for one in installed.objects) == 3


def test_the_pods_are_admitted_where_pod_security_is_restricted(installed):
    namespace = installed.kubectl("get", "namespace", "trimtab", "-o", "json").stdout
    labels = json.loads(namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **one["spec"]["template"]["metadata"],
                "name": one["metadata"]["name"],
                "namespace": "trimtab",
            },
            "spec": one["spec"]["template"]["spec"],
        }
        for one in installed.objects
        if one["kind"] == "Deployment"
    ]
    done = installed.apply(pods, "--dry-run=server")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(pods) == len(ACCOUNTS)


def test_a_pod_that_is_not_restricted_is_refused_there(installed):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root", "namespace": "trimtab"},
        "spec": {"containers": [{"name": "root", "image": "root"}]},
    }
    assert 'violates PodSecurity "restricted' in installed.apply([pod], "--dry-run=server").stderr


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_rights_are_those_of_the_golden_file(installed, account):
    """Set TRIMTAB_RENEW=1 to write the files anew."""
    told = []
    for namespace in ("shop", "trimtab", "kube-system"):
        # What every account may do, discovery above all, is the cluster's and differs between releases.
        granted = rights(installed, account, namespace) - rights(installed, "without-roles", namespace)
        told += [f"in namespace {namespace}:", *sorted(granted)]
    text = "\n".join(told) + "\n"
    path = GOLDEN / f"{account}.txt"
    if os.environ.get("TRIMTAB_RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def rights(installed, account: str, namespace: str) -> set[str]:
    """Return an account's rights, a line each, with the verbs sorted: rules and bindings have no order."""
    listed = installed.kubectl(
        "auth", "can-i", "--list", "-n", namespace, f"--as=system:serviceaccount:trimtab:trimtab-{account}"
    ).stdout
    lines = [re.sub(r" {2,}", "  ", line.rstrip()) for line in listed.splitlines()[1:]]
    return {re.sub(r"\[([a-z ]+)\]$", _sorted_verbs, line) for line in lines}


def _sorted_verbs(found: re.Match[str]) -> str:
    return f"[{' '.join(sorted(found[1].split()))}]"


QUESTIONS = [
    ("horizontal", False, "create pods/eviction -A"),
    ("horizontal", True, "patch deployments/scale -A"),
    ("horizontal", False, "patch deployments -A"),
    ("horizontal", False, "delete pods -A"),
    ("horizontal", False, "get secrets -A"),
    ("horizontal", False, "patch verticalpodautoscalers/status -A"),
    ("horizontal", False, "update horizontalpodautoscalers.autoscaling -A"),
    ("recommender", False, "create pods/eviction -A"),
    ("recommender", False, "patch pods/resize -A"),
    ("recommender", False, "patch deployments/scale -A"),
    ("recommender", True, "patch verticalpodautoscalers/status -A"),
    ("updater", True, "get leases/vpa-admission-controller -n trimtab"),
    ("updater", False, "get leases/another -n trimtab"),
    ("updater", True, "create pods/eviction -A"),
    ("updater", False, "update pods -A"),
    ("updater", False, "patch deployments -A"),
    # A policy confines it to dry runs.
    ("updater", True, "create pods -n shop"),
    ("updater", False, "delete pods -n shop"),
    ("updater", False, "patch verticalpodautoscalers/status -A"),
    ("admission", False, "create pods/eviction -A"),
    ("admission", False, "get secrets -A"),
    ("admission", False, "get secrets -n trimtab"),
    ("admission", True, "get secret/trimtab-webhook-tls -n trimtab"),
    ("admission", False, "patch mutatingwebhookconfigurations/other"),
    # A policy confines it to the CA bundle.
    ("admission", True, "patch mutatingwebhookconfigurations/trimtab-vpa"),
    ("admission", False, "create mutatingwebhookconfigurations"),
    ("admission", False, "delete mutatingwebhookconfigurations/trimtab-vpa"),
    ("adapter", False, "get secrets -A"),
    ("adapter", False, "patch pods -A"),
    ("dashboard", False, "patch horizontalpodautoscalers.autoscaling.trimtab.dev -A"),
    ("dashboard", False, "create pods/eviction -A"),
    ("dashboard", False, "impersonate users"),
]


@pytest.mark.parametrize(("account", "want", "question"), QUESTIONS, ids=str)
def test_who_may_do_what(installed, account, want, question):
    verb, thing, *where = question.split()
    resource, slash, sub = thing.partition("/")
    if slash and sub in {"eviction", "scale", "status", "resize"}:
        thing, where = resource, [*where, f"--subresource={sub}"]
    assert installed.may(account, verb, thing, *where) is want
