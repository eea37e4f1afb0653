"""An installation on the real kube-apiserver, as `trimtab install` prints it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.peers import build
from tools.peers.cluster import RealCluster, available
from trimtab.install import manifests, set_values

FOREIGN = ("ServiceMonitor", "PrometheusRule")
"""Kinds whose definitions other projects install."""
AGGREGATED = "APIService"
"""Only tried, not kept: with nobody behind them they would spoil discovery for everyone else on this server."""
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
"""Kept by tests of them only: nobody answers behind them, and pods of other tests would wait for that."""
VALUES = ("adapter.enabled=true", "adapter.caBundle=Q0E=", "dashboard.enabled=true")
ROLES = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


class Installed:
    """A cluster with Trimtab's objects in it."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.objects = [one for one in manifests(set_values(VALUES)) if one["kind"] not in FOREIGN]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator and keep its warnings apart."""
        program = [str(build.find("kubectl")), f"--kubeconfig={self.cluster.kubeconfig}", *arguments]
        return subprocess.run(program, input=stdin, capture_output=True, text=True, check=False, timeout=120)

    def apply(self, objects, *flags: str) -> subprocess.CompletedProcess[str]:
        """Apply objects as the documentation says, and return what kubectl said."""
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        return self.kubectl("apply", "--server-side", "--force-conflicts", *flags, "-f", "-", stdin=body)

    @contextmanager
    def narrowed_to(self, namespace: str, *values: str) -> Iterator[None]:
        """Have the rights of an installation with `settings.watch-namespaces`, and no others, while the context lasts."""
        narrow = self._rights(*VALUES, *values, f"settings.watch-namespaces={namespace}")
        kept = {_key(one) for one in narrow}
        try:
            done = self.apply(narrow)
            assert done.returncode == 0, done.stderr
            for one in self._rights(*VALUES):
                if _key(one) not in kept:
                    self.kubectl("delete", one["kind"], one["metadata"]["name"], *_where(one))
            yield
        finally:
            done = self.apply(self._rights(*VALUES))
            assert done.returncode == 0, done.stderr

    @staticmethod
    def _rights(*values: str) -> list[dict[str, Any]]:
        return [one for one in manifests(set_values(values)) if one["kind"] in ROLES]

    def may(self, account: str, *question: str) -> bool:
        """Ask whether an account may do something."""
        account = f"--as=system:serviceaccount:trimtab:trimtab-{account}"
        return self.kubectl("auth", "can-i", *question, account).stdout.strip() == "yes"


def _key(thing: dict[str, Any]) -> tuple[str, str, str]:
    meta = thing["metadata"]
    return thing["kind"], meta.get("namespace", ""), meta["name"]


def _where(thing: dict[str, Any]) -> list[str]:
    namespace = thing["metadata"].get("namespace")
    return ["-n", namespace] if namespace else []


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A server of its own: what is installed here is asked about to the last right, so nothing else may be there."""
    why_not = available()
    if why_not:
        pytest.skip(why_not)
    with RealCluster(Path(tmp_path_factory.mktemp("install"))) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def installed(real_cluster: RealCluster):
    found = Installed(real_cluster)
    kept = [one for one in found.objects if one["kind"] not in (AGGREGATED, *WEBHOOKS)]
    # Kinds first, as anyone would: their objects' rules name nothing that has to exist, but watches do.
    done = found.apply(kept)
    assert done.returncode == 0, done.stderr
    names = [f"crd/{one['metadata']['name']}" for one in kept if one["kind"] == "CustomResourceDefinition"]
    found.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    found.kubectl("create", "namespace", "shop")
    return found


@pytest.fixture
def kubeconfig_of(installed, tmp_path):
    """Return a kubeconfig with an account's own token, made by TokenRequest."""

    def make(account: str):
        config = json.loads(installed.cluster.kubeconfig.read_text())
        token = installed.kubectl(
            "create", "token", f"trimtab-{account}", "-n", "trimtab", "--duration=1h"
        ).stdout.strip()
        config["users"][0]["user"] = {"token": token}
        path = tmp_path / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    return make
