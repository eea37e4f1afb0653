"""The pod of `helm test`, which asks every installed program whether it is ready.

It is part of the chart only. A NetworkPolicy of the same test lets the pod reach the programs.
Both are deleted after a failed test, too: Helm does not count hooks as parts of a release, so `helm uninstall` would leave them.
"""

from typing import Any, Final

from trimtab.install import names
from trimtab.install.names import ENABLED, HEALTH_PORT, namespaced_object
from trimtab.install.network import ADAPTER_SERVICE
from trimtab.install.template import NAMESPACE, If, Text, Tree, Val

_NAME: Final = "trimtab-readiness-test"
_LABELS: Final = {"app.kubernetes.io/name": _NAME}
_HOOK: Final = {
    "helm.sh/hook": "test",
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded,hook-failed",
}

SCRIPT: Final = """\
import os, ssl, sys, time, urllib.request
# The certificate of the adapter is checked by the API server, which has its CA. Here only the answer counts.
context = ssl._create_unverified_context()
failed = 0
for url in sys.argv[1:]:
    for attempt in range(int(os.environ.get('ATTEMPTS', '10'))):
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:
                print(url, answer.status)
                break
        except OSError as error:
            print(url, error, flush=True)
            time.sleep(3 if attempt else 1)
    else:
        failed += 1
sys.exit(f'{failed} programs are not ready' if failed else 0)
"""


def readiness_test() -> list[Tree]:
    """Return the pod and the NetworkPolicy of `helm test`."""
    return [If(Val("networkPolicy.enabled"), _policy()), _pod()]


def _policy() -> Tree:
    ports = (HEALTH_PORT, names.ADAPTER_PORT)
    return _hook(
        namespaced_object(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            _NAME,
            spec={
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "trimtab"}},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": {"matchLabels": _LABELS}}],
                        "ports": [{"protocol": "TCP", "port": port} for port in ports],
                    }
                ],
            },
        )
    )


def _pod() -> Tree:
    pod = namespaced_object("v1", "Pod", _NAME, spec=_spec())
    # With a name of its own, so that no policy of the installation selects it.
    pod["metadata"]["labels"] = dict(_LABELS)
    return _hook(pod)


def _hook(manifest: dict[str, Any]) -> Tree:
    manifest["metadata"]["annotations"] = dict(_HOOK)
    return manifest


def _spec() -> Tree:
    optional = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": If(Val("podSecurityContext"), Val("podSecurityContext")),
        **{name: If(Val(name), Val(name)) for name in optional},
        "containers": [
            {
                "name": "ready",
                "image": names.IMAGE,
                "imagePullPolicy": Val("image.pullPolicy"),
                "command": ["python", "-c", SCRIPT],
                "args": [If(ENABLED[component], _address(component)) for component in ENABLED],
                "resources": {
                    "requests": {"cpu": "10m", "memory": "32Mi"},
                    "limits": {"cpu": "500m", "memory": "128Mi"},
                },
                "securityContext": If(Val("securityContext"), Val("securityContext")),
            }
        ],
    }


def _address(component: str) -> Text:
    if component == names.ADAPTER:
        return Text(f"https://{ADAPTER_SERVICE}.", NAMESPACE, ".svc/readyz")
    return Text(f"http://trimtab-{component}-metrics.", NAMESPACE, f".svc:{HEALTH_PORT}/readyz")
