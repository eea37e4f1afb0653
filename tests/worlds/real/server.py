"""The API server, both controllers as they are killed and started again, and the faults that befall them."""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.worlds.real.hpas import Json
from tests.worlds.real.profiles import Profile
from tests.worlds.world import Happening
from tools.peers import build, processes
from tools.peers.beside import Beside
from tools.peers.cluster import GATES, HOST, RealCluster, User, free_port

SIDES = ("upstream", "ours")
HPA_API = {"upstream": "/apis/autoscaling/v2", "ours": "/apis/autoscaling.trimtab.dev/v2"}
ACCOUNTS = {
    "upstream": ("kube-system", "horizontal-pod-autoscaler"),
    "ours": ("trimtab", "trimtab-horizontal"),
}
LEASES = {"upstream": ("kube-system", "kube-controller-manager"), "ours": ("trimtab", "trimtab-horizontal-0")}
METRICS_GROUPS = ("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io")
VPA_PROGRAMS = ("recommender", "updater", "admission")
UPSTREAM_VPA = User("vpa", "vpa", "system:masters")
VALUES = ("vertical.enabled=false",)
_BUSY = (429, 500, 502, 503, 504)
_FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
_JAIL = "worlds-jail"
_RIGHTS = "/apis/rbac.authorization.k8s.io/v1/namespaces/trimtab"


class ApiError(Exception):
    """The API server refused what the emulator needs, or did not answer in time."""


class Api:
    """The administrator's client. It repeats what fails for a while, so a fault of the server only delays it."""

    def __init__(self, cluster: RealCluster) -> None:
        self._url = cluster.url
        trusted = ssl.create_default_context(cafile=cluster.directory / "ca.crt")
        headers = {"Authorization": f"Bearer {cluster.tokens['admin']}"}
        connector = aiohttp.TCPConnector(ssl=trusted, limit=64)
        self._session = aiohttp.ClientSession(headers=headers, connector=connector)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        patch: str = "merge-patch",
        ok: tuple[int, ...] = (),
    ) -> Any:
        """Return the answer. Statuses in `ok` are no errors."""
        deadline = time.monotonic() + 40
        kind = f"application/{patch}+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body)
        while True:
            try:
                async with self._session.request(
                    method, self._url + path, data=data, headers={"Content-Type": kind},
                    timeout=aiohttp.ClientTimeout(total=15),
                ) as answer:  # fmt: skip
                    text = await answer.text()
                    if answer.status < 300 or answer.status in ok:
                        return json.loads(text)
                    error = f"{answer.status} {text[:300]}"
                    if answer.status not in _BUSY:
                        raise ApiError(f"{method} {path}: {error}")
            except (aiohttp.ClientError, TimeoutError, OSError) as failure:
                error = repr(failure)
            if time.monotonic() > deadline:
                raise ApiError(f"{method} {path}: {error}")
            await asyncio.sleep(0.3)

    async def watch(self, path: str, selector: str, see: Callable[[str, Json], None]) -> None:
        """Pass on every object and every change of it, until cancelled."""
        version = None
        while True:
            with suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError, ApiError):
                if version is None:
                    listed = await self.call("GET", f"{path}?labelSelector={selector}")
                    version = listed["metadata"]["resourceVersion"]
                    for item in listed["items"]:
                        see("ADDED", item)
                query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&labelSelector={selector}"
                async with self._session.get(
                    f"{self._url}{path}?{query}", timeout=aiohttp.ClientTimeout(sock_read=120), read_bufsize=2**22
                ) as stream:  # fmt: skip
                    async for line in stream.content:
                        event = json.loads(line)
                        if stream.status != 200 or event["type"] == "ERROR":
                            version = None
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            see(event["type"], event["object"])
            await asyncio.sleep(0.2)


async def end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks, and raise what went wrong in one of them."""
    for task in tasks:
        task.cancel()
    for failure in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(failure, Exception):
            raise failure


def audit_flags(directory: Path) -> list[str]:
    """Return the API server's flags to log what the controllers write."""
    accounts = [*ACCOUNTS.values(), *(("trimtab", f"trimtab-{name}") for name in VPA_PROGRAMS)]
    users = [
        UPSTREAM_VPA.identity,
        *(f"system:serviceaccount:{namespace}:{name}" for namespace, name in accounts),
    ]
    writes = {"level": "Metadata", "users": users, "verbs": ["create", "update", "patch", "delete"]}
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [writes, {"level": "None"}]}
    path = directory / "audit.json"
    path.write_text(json.dumps({**policy, "omitStages": ["RequestReceived", "ResponseStarted"]}))
    return [f"--audit-policy-file={path}", f"--audit-log-path={directory / 'audit.log'}"]


def count_writes(log: Path, start: int) -> dict[str, dict[str, int]]:
    """Return for each namespace how often each kind of object was written after a position of the log."""
    counts: dict[str, dict[str, int]] = {}
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            entry = json.loads(line)
            about = entry.get("objectRef", {})
            if entry.get("responseStatus", {}).get("code", 0) < 300:
                kind = about.get("subresource") or about.get("resource", "")
                of_namespace = counts.setdefault(about.get("namespace", ""), {})
                of_namespace[kind] = of_namespace.get(kind, 0) + 1
    return counts


class Controllers:
    """Both controllers, one or two copies each."""

    def __init__(self, beside: Beside, api: Api, profile: Profile, logs: Path) -> None:
        self._beside, self._cluster, self._api = beside, beside.cluster, api
        self._profile, self._logs = profile, logs
        self._ours = beside.kubeconfig_of("trimtab-horizontal")
        self._running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._leading = dict.fromkeys(SIDES, 0)
        self._joined = False
        logs.mkdir(parents=True, exist_ok=True)

    def start(self, side: str, copy: int) -> None:
        """Start a copy of a controller."""
        command = self._upstream(copy) if side == "upstream" else self._trimtab(copy)
        log = self._logs / f"{side}-{copy}.log"
        self._running[side, copy] = processes.start(command, self._cluster.directory, log)

    def _upstream(self, copy: int) -> list[str]:
        directory = self._cluster.directory
        config = directory / "controller-manager.kubeconfig"
        return [
            str(build.place_of("kube-controller-manager")), f"--kubeconfig={config}", "--bind-address=127.0.0.1",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            f"--secure-port={free_port()}", f"--cert-dir={directory / f'kcm-certs-{copy}'}", "--leader-elect=true",
            "--controllers=horizontal-pod-autoscaler-controller", "--use-service-account-credentials=true",
            f"--service-account-private-key-file={directory / 'sa.key'}", f"--root-ca-file={directory / 'ca.crt'}",
            "--kube-api-qps=2000", "--kube-api-burst=4000", f"--feature-gates={GATES}", *self._profile.flags,
        ]  # fmt: skip

    def _trimtab(self, copy: int) -> list[str]:
        return [
            sys.executable, "-m", "trimtab", "run", f"--kubeconfig={self._ours}", f"--bind-address={HOST}",
            f"--port={free_port()}", "--leader-elect-resource-namespace=trimtab", f"--feature-gates={GATES}",
            *self._profile.flags, *(["--shards=2"] if self._joined and copy == 1 else []),
        ]  # fmt: skip

    async def wait_for_leaders(self) -> None:
        """Wait until both hold their Leases."""
        for _ in range(120):
            if all([await self._leads(*lease) for lease in LEASES.values()]):
                return
            await asyncio.sleep(0.5)
        raise ApiError(f"a controller does not lead; see {self._logs}")

    async def _leads(self, namespace: str, name: str) -> bool:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        spec = (await self._api.call("GET", path, ok=(404,))).get("spec", {})
        if not spec.get("holderIdentity"):
            return False
        return (datetime.now(UTC) - datetime.fromisoformat(spec["renewTime"])).total_seconds() < 4

    def restart_ended(self) -> None:
        """Start again what has ended by itself, as a kubelet would."""
        for key, process in list(self._running.items()):
            if process.poll() is not None:
                self.start(*key)

    def _end(self, side: str, copy: int, how: signal.Signals) -> None:
        self._running.pop((side, copy)).send_signal(how)

    def stop(self) -> None:
        """Stop all of them."""
        while self._running:
            processes.stop(self._running.popitem()[1])

    async def befall(self, event: Happening) -> None:
        """Let an event befall both sides, and return when it is over."""
        seconds = event.facts.get("for", 0.0)
        if event.what == "kill":
            await self._replace(signal.SIGKILL, seconds)
        elif event.what in ("lead-kill", "lead-term"):
            await self._replace(signal.SIGKILL if event.what == "lead-kill" else signal.SIGTERM, seconds)
            self._leading = {side: 1 - copy for side, copy in self._leading.items()}
        elif event.what == "join":
            await self._join()
        elif event.what == "leave":
            for side in SIDES:
                self._end(side, 0, signal.SIGTERM)
            await asyncio.to_thread(self._beside.install, VALUES, 0)
        elif event.what in ("429", "429-writes"):
            await refuse_requests(self._api, writes_only=event.what == "429-writes")
            await asyncio.sleep(seconds)
            await stop_refusing(self._api)
        else:
            pid = self._cluster.pid_of("etcd" if event.what == "etcd-stop" else "kube-apiserver")
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
            finally:
                os.kill(pid, signal.SIGCONT)

    async def _replace(self, how: signal.Signals, seconds: float) -> None:
        """End the copy that leads on each side, and start it again later."""
        ended = [key for key in self._leading.items() if key in self._running]
        for key in ended:
            self._end(*key, how)
        await asyncio.sleep(seconds)
        for key in ended:
            self.start(*key)

    async def _join(self) -> None:
        """Upgrade ours to two shards while the old copy runs on and keeps its right to its Lease."""
        self._joined = True
        await asyncio.to_thread(self._beside.install, (*VALUES, "horizontal.settings.shards=2"), 0)
        rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "worlds-leases"}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "worlds-leases"}
        account = {"kind": "ServiceAccount", "name": "trimtab-horizontal", "namespace": "trimtab"}
        await self._api.call("POST", f"{_RIGHTS}/roles", {**head, "kind": "Role", "rules": [rule]}, ok=(409,))
        binding = {**head, "kind": "RoleBinding", "roleRef": role, "subjects": [account]}
        await self._api.call("POST", f"{_RIGHTS}/rolebindings", binding, ok=(409,))
        for side in SIDES:
            self.start(side, 1)


async def refuse_requests(api: Api, *, writes_only: bool) -> None:
    """Let the server's own priority and fairness answer 429 to both controllers, but not to their Leases."""
    limits = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    level = {"type": "Limited", "limited": {**limits, "limitResponse": {"type": "Reject"}}}
    subjects = [
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
        for namespace, name in ACCOUNTS.values()
    ]
    refused = {
        "verbs": ["create", "update", "patch", "delete"] if writes_only else ["*"],
        "apiGroups": ["", "apps", "autoscaling", "autoscaling.trimtab.dev", *(() if writes_only else METRICS_GROUPS)],
        "resources": ["*"], "namespaces": ["*"], "clusterScope": True,
    }  # fmt: skip
    rules = [{"subjects": subjects, "resourceRules": [refused]}]
    schema = {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": _JAIL}, "rules": rules}
    head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "metadata": {"name": _JAIL}}
    level_body = {**head, "kind": "PriorityLevelConfiguration", "spec": level}
    await api.call("POST", f"{_FLOW}/prioritylevelconfigurations", level_body, ok=(409,))
    await api.call("POST", f"{_FLOW}/flowschemas", {**head, "kind": "FlowSchema", "spec": schema}, ok=(409,))


async def stop_refusing(api: Api) -> None:
    """Answer both controllers again."""
    await api.call("DELETE", f"{_FLOW}/flowschemas/{_JAIL}", ok=(404,))
    await api.call("DELETE", f"{_FLOW}/prioritylevelconfigurations/{_JAIL}", ok=(404,))
