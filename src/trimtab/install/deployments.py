"""The Deployments: a common pod template, and the flags of each program."""

from dataclasses import dataclass
from typing import Any, Final

from trimtab.install import names
from trimtab.install.names import HEALTH_PORT, OWN_CERTIFICATE, namespaced_object, selector, where_enabled
from trimtab.install.template import (
    NAMESPACE,
    Each,
    Either,
    Entries,
    Given,
    If,
    Item,
    Joined,
    Not,
    Pairs,
    Text,
    Tree,
    Val,
)

_REPLICAS: Final = Val("replicas")
_CERTIFICATE = Val("vertical.admission.certificateSecret")
_CHECK = Val("vertical.updater.admissionCheck")
_CERTIFICATE_DIRECTORY: Final = "/etc/trimtab/webhook"
_ADAPTER_DIRECTORY: Final = "/etc/trimtab/adapter"
_DASHBOARD_DIRECTORY: Final = "/etc/trimtab/dashboard"


@dataclass(frozen=True, slots=True)
class Program:
    """What one Deployment adds to the common template."""

    component: str
    resources: str
    args: tuple[Tree, ...]
    ports: tuple[tuple[str, int], ...] = ()
    volumes: tuple[Tree, ...] = ()
    mounts: tuple[Tree, ...] = ()
    probe: tuple[str, str] = ("health", "HTTP")
    replicas: Tree = _REPLICAS


_EVERY_PROGRAM: Final = (
    Text("--log-format=", Val("logFormat")),
    If(Val("watchNamespaces"), Text("--watch-namespaces=", Joined("watchNamespaces"))),
    If(Val("plugins"), Text("--plugins=", Joined("plugins"))),
)
"""Flags of operator and adapter alike."""


def _runs(components: str, *more: Tree) -> tuple[Tree, ...]:
    return (
        "run",
        f"--components={components}",
        "--bind-address=::",
        f"--port={HEALTH_PORT}",
        Text("--feature-gates=", Pairs("featureGates")),
        *_EVERY_PROGRAM,
        If(Val("compat"), Text("--compat=", Val("compat"))),
        If(Val("dryRun"), "--dry-run"),
        *more,
    )


def _given(flag: str, path: str) -> Tree:
    """Return a flag whose default is left to the program, since `compat` has another."""
    return If(Given(path), Text(flag, Val(path)))


# The name of the Lease is left to the program: a dry run and a recommender with a name have Leases of their own.
_LEADS: Final = Text("--leader-elect-resource-namespace=", NAMESPACE)


_SIZES_PODS: Final = (
    Text("--namespace=", NAMESPACE),
    If(Val("vertical.includeKubeSystem"), "--include-kube-system"),
    If(
        Val("vertical.ignoredNamespaces"),
        Text("--ignored-vpa-object-namespaces=", Joined("vertical.ignoredNamespaces")),
    ),
)
"""Where no pod is changed; the same list for recommender, updater and admission (docs/decisions/apply-only-current-recommendations-to-controlled-resources.md)."""


def _webhook_files() -> tuple[Tree, ...]:
    files = {"tls-cert-file": "tls.crt", "tls-private-key-file": "tls.key", "client-ca-file": "ca.crt"}
    return tuple(
        If(Not(OWN_CERTIFICATE), f"--{flag}={_CERTIFICATE_DIRECTORY}/{file}") for flag, file in files.items()
    )


def _dashboard_over_https() -> tuple[Tree, ...]:
    """Without a certificate it stays on the pod's loopback, where only `kubectl port-forward` comes."""
    flags = (
        "--dashboard-address=::",
        f"--dashboard-port={names.DASHBOARD_PORT}",
        f"--dashboard-cert-file={_DASHBOARD_DIRECTORY}/tls.crt",
        f"--dashboard-private-key-file={_DASHBOARD_DIRECTORY}/tls.key",
    )
    return tuple(If(names.DASHBOARD_CERTIFICATE, flag) for flag in flags)


_MAX_AGE: Final = Text("--metrics-max-age=", Val("horizontal.metricsMaxAge"))

PROGRAMS: Final = (
    Program(
        names.HORIZONTAL,
        "horizontal.resources",
        _runs(
            "horizontal",
            _LEADS,
            Text("--horizontal-pod-autoscaler-sync-period=", Val("horizontal.syncPeriod")),
            _MAX_AGE,
            Text("--status-max-age=", Val("horizontal.statusMaxAge")),
            If(Val("horizontal.nativeHpas"), "--native-hpas"),
            If(Val("horizontal.shards"), Text("--shards=", Val("horizontal.shards"))),
        ),
    ),
    Program(
        names.RECOMMENDER,
        "vertical.recommender.resources",
        _runs(
            "recommender",
            _LEADS,
            *_SIZES_PODS,
            If(
                Val("vertical.recommender.name"),
                Text("--recommender-name=", Val("vertical.recommender.name")),
            ),
            If(Val("vertical.recommender.shards"), Text("--shards=", Val("vertical.recommender.shards"))),
        ),
    ),
    Program(
        names.UPDATER,
        "vertical.updater.resources",
        _runs(
            "updater,roles",
            _LEADS,
            *_SIZES_PODS,
            Text("--min-replicas=", Val("vertical.updater.minReplicas")),
            _given("--max-evictions-per-minute=", "vertical.updater.maxEvictionsPerMinute"),
            If(_CHECK, Text("--admission-check=", _CHECK)),
            If(Not(names.PROVES_REPLACEMENTS), "--replacement-check=none"),
            Text("--node-fit=", Val("vertical.updater.nodeFit")),
            Text("--admission-controller-status-lease-name=", names.STATUS_LEASE),
            names.in_status_namespace("--admission-controller-status-lease-namespace="),
        ),
    ),
    Program(
        names.ADMISSION,
        "vertical.admission.resources",
        _runs(
            "admission",
            "--no-leader-elect",
            *_SIZES_PODS,
            f"--webhook-service={names.WEBHOOK_SERVICE}",
            "--webhook-address=::",
            f"--webhook-port={names.WEBHOOK_PORT}",
            Text("--webhook-timeout-seconds=", Val("vertical.admission.timeoutSeconds")),
            If(names.FAILS_CLOSED, "--webhook-failure-policy-fail"),
            If(Not(names.REGISTERS_ITSELF), "--webhook-registration=ca-bundle"),
            Text("--status-lease-name=", names.STATUS_LEASE),
            names.in_status_namespace("--status-lease-namespace="),
            *_webhook_files(),
        ),
        ports=(("webhook", names.WEBHOOK_PORT),),
        volumes=(
            If(
                _CERTIFICATE,
                {"name": "certificate", "secret": {"secretName": _CERTIFICATE, "defaultMode": 0o440}},
            ),
        ),
        mounts=(
            If(
                _CERTIFICATE,
                {"name": "certificate", "mountPath": _CERTIFICATE_DIRECTORY, "readOnly": True},
            ),
        ),
    ),
    Program(
        names.ADAPTER,
        "adapter.resources",
        ("adapter", f"--config={_ADAPTER_DIRECTORY}/adapter.yaml", *_EVERY_PROGRAM),
        ports=(("api", names.ADAPTER_PORT),),
        volumes=(
            {
                "name": "configuration",
                # One volume, because the adapter reads no file outside its configuration's directory (S13).
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"configMap": {"name": "trimtab-adapter"}},
                        {"secret": {"name": Val("adapter.certificateSecret")}},
                    ],
                },
            },
        ),
        mounts=({"name": "configuration", "mountPath": _ADAPTER_DIRECTORY, "readOnly": True},),
        probe=("api", "HTTPS"),
    ),
    Program(
        names.DASHBOARD,
        "dashboard.resources",
        _runs(
            "dashboard",
            # Where the operator's settings are read from.
            Text("--leader-elect-resource-namespace=", NAMESPACE),
            If(Val("horizontal.nativeHpas"), "--native-hpas"),
            _MAX_AGE,
            If(Val("dashboard.hosts"), Text("--dashboard-hosts=", Joined("dashboard.hosts"))),
            *_dashboard_over_https(),
        ),
        ports=(("dashboard", names.DASHBOARD_PORT),),
        volumes=(
            If(
                names.DASHBOARD_CERTIFICATE,
                {
                    "name": "certificate",
                    "secret": {"secretName": names.DASHBOARD_CERTIFICATE, "defaultMode": 0o440},
                },
            ),
        ),
        mounts=(
            If(
                names.DASHBOARD_CERTIFICATE,
                {"name": "certificate", "mountPath": _DASHBOARD_DIRECTORY, "readOnly": True},
            ),
        ),
        # Sessions are in memory, so a second replica could not serve them.
        replicas=1,
    ),
)


def value_of_flag(component: str, flag: str) -> str:
    """Return the path of the chart's value that a flag of a program comes from."""
    program = next(program for program in PROGRAMS if program.component == component)
    for argument in program.args:
        text = argument.then if isinstance(argument, If) else argument
        if isinstance(text, Text) and text.parts[0] == f"{flag}=":
            return next(part.path for part in text.parts if isinstance(part, Val | Pairs | Joined))
    return f"{names.VALUES[component]}.extraArgs"


def deployments() -> list[Tree]:
    """Return one Deployment per program."""
    return [tree for program in PROGRAMS for tree in where_enabled(program.component, _deployment(program))]


def _deployment(program: Program) -> Tree:
    values = names.VALUES[program.component]
    own = f"{values}.podAnnotations"
    return namespaced_object(
        "apps/v1",
        "Deployment",
        f"trimtab-{program.component}",
        program.component,
        spec={
            "replicas": program.replicas,
            "selector": {"matchLabels": selector(program.component)},
            "template": {
                "metadata": {
                    "labels": {
                        **selector(program.component),
                        Entries(f"{values}.podLabels", "podLabels", "commonLabels"): None,
                    },
                    "annotations": If(
                        Either(Val(own), Val("podAnnotations")), {Entries(own, "podAnnotations"): None}
                    ),
                },
                "spec": _pod(program),
            },
        },
    )


def _pod(program: Program) -> Tree:
    values = names.VALUES[program.component]
    own = {name: Val(f"{values}.{name}", name) for name in ("nodeSelector", "tolerations", "affinity")}
    optional = {name: Val(name) for name in ("imagePullSecrets", "priorityClassName")} | own
    security = Val(f"{values}.podSecurityContext", "podSecurityContext")
    spread = Val(f"{values}.topologySpreadConstraints", "topologySpreadConstraints")
    constraint = {"labelSelector": {"matchLabels": selector(program.component)}, Entries(): None}
    return {
        "serviceAccountName": names.account(program.component),
        "automountServiceAccountToken": True,
        # Variables about Services have the names of settings: TRIMTAB_WEBHOOK_PORT=tcp://10.96.53.214:443.
        "enableServiceLinks": False,
        "securityContext": If(security, security),
        "topologySpreadConstraints": If(spread, [Each(spread.path, constraint, spread.otherwise)]),
        **{name: If(value, value) for name, value in optional.items()},
        "containers": [_container(program)],
        # Private keys pass through files on their way into the TLS library: in memory, never on a disk.
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            *program.volumes,
        ],
    }


def _container(program: Program) -> Tree:
    runs_operator = program.args[0] == "run"
    ports = [("health", HEALTH_PORT), *program.ports] if runs_operator else list(program.ports)
    extras = names.VALUES[program.component]
    security = Val(f"{extras}.securityContext", "securityContext")
    container: dict[str, Any] = {
        "name": program.component,
        "image": names.IMAGE,
        "imagePullPolicy": Val("image.pullPolicy"),
        "args": [*program.args, Each(f"{extras}.extraArgs", Item())],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "livenessProbe": {**_probe(program, "/livez"), "periodSeconds": 10, "failureThreshold": 3},
        "readinessProbe": {**_probe(program, "/readyz"), "periodSeconds": 5},
        # The first lists of a big cluster take their time; nothing is restarted meanwhile.
        "startupProbe": {**_probe(program, "/livez"), "periodSeconds": 2, "failureThreshold": 60},
        "resources": Val(program.resources),
        "securityContext": If(security, security),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *program.mounts],  # noqa: S108 - of the container
    }
    own, more = Val("tokenSecret"), Val(f"{extras}.extraEnv")
    secret = {"name": own, "key": "token"}
    token = (
        [If(own, {"name": "TRIMTAB_TOKEN", "valueFrom": {"secretKeyRef": secret}})] if runs_operator else []
    )
    container["env"] = If(Either(own, more) if token else more, [*token, Each(more.path, Item())])
    return container


def _probe(program: Program, path: str) -> Tree:
    port, scheme = program.probe
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, "timeoutSeconds": 3}


def disruption_budgets() -> list[Tree]:
    """Return PodDisruptionBudgets that keep one replica of each program during node drains."""
    return [
        tree
        for component in names.ENABLED
        for tree in where_enabled(
            component,
            namespaced_object(
                "policy/v1",
                "PodDisruptionBudget",
                f"trimtab-{component}",
                component,
                spec={
                    "maxUnavailable": 1,
                    "selector": {"matchLabels": selector(component)},
                    "unhealthyPodEvictionPolicy": "AlwaysAllow",
                },
            ),
        )
    ]
