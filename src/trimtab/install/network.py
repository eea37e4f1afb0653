"""Services, aggregated APIs, and which connections are allowed (S21)."""

from collections.abc import Sequence
from typing import Any, Final

from trimtab.install import names
from trimtab.install.names import (
    ENABLED,
    HEALTH_PORT,
    cluster_object,
    namespaced_object,
    selector,
    where_enabled,
)
from trimtab.install.template import (
    NAMESPACE,
    Both,
    Each,
    If,
    Item,
    Text,
    Tree,
    Val,
)

ADAPTER_SERVICE: Final = "trimtab-adapter"
_ADAPTER = Val("adapter.enabled")
_NETWORKING: Final = "networking.k8s.io/v1"


def services() -> list[Tree]:
    """Return the Services: metrics of each program, the webhook, the adapter's API."""
    trees: list[Tree] = []
    for component in ENABLED:
        if component != names.ADAPTER:
            trees += where_enabled(
                component,
                _service(f"trimtab-{component}-metrics", component, "metrics", HEALTH_PORT, "health"),
            )
    trees += where_enabled(
        names.ADMISSION, _service(names.WEBHOOK_SERVICE, names.ADMISSION, "webhook", 443, "webhook")
    )
    dashboard = _service("trimtab-dashboard", names.DASHBOARD, "https", 443, "dashboard")
    trees += where_enabled(names.DASHBOARD, If(names.DASHBOARD_CERTIFICATE, dashboard))
    return trees + where_enabled(names.ADAPTER, _service(ADAPTER_SERVICE, names.ADAPTER, "api", 443, "api"))


def _service(name: str, component: str, port_name: str, port: int, target: str) -> Tree:
    return namespaced_object(
        "v1",
        "Service",
        name,
        component,
        spec={
            "selector": selector(component),
            "ports": [{"name": port_name, "port": port, "targetPort": target, "protocol": "TCP"}],
        },
    )


def webhook_secret() -> list[Tree]:
    """Return the empty Secret that admission fills: so it needs no right to create Secrets."""
    secret = namespaced_object("v1", "Secret", names.WEBHOOK_SECRET, names.ADMISSION, type="Opaque")
    return where_enabled(names.ADMISSION, If(names.OWN_CERTIFICATE, secret))


def api_services() -> list[Tree]:
    """Return the registrations of the adapter's APIs."""
    custom, external = Both(_ADAPTER, Val("adapter.custom")), Both(_ADAPTER, Val("adapter.external"))
    return [
        If(custom, _api_service("custom.metrics.k8s.io", "v1beta2", 200)),
        If(custom, _api_service("custom.metrics.k8s.io", "v1beta1", 100)),
        If(external, _api_service("external.metrics.k8s.io", "v1beta1", 100)),
    ]


def _api_service(group: str, version: str, priority: int) -> Tree:
    service = cluster_object(
        "apiregistration.k8s.io/v1",
        "APIService",
        f"{version}.{group}",
        spec={
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": priority,
            "caBundle": If(Val("adapter.caBundle"), Val("adapter.caBundle")),
            "service": {"name": ADAPTER_SERVICE, "namespace": NAMESPACE, "port": 443},
        },
    )
    service["metadata"]["annotations"] = If(
        Val("adapter.injectCaFrom"), {"cert-manager.io/inject-ca-from": Val("adapter.injectCaFrom")}
    )
    return service


def adapter_configuration() -> list[Tree]:
    """Return the adapter's ConfigMap. A Secret adds its certificate to the same directory."""
    configuration = Text(
        "apiVersion: adapter.trimtab.dev/v1alpha1\n"
        "kind: AdapterConfiguration\n"
        f"listen: {{address: '::', port: {names.ADAPTER_PORT}}}\n"
        "tls: {certificateFile: tls.crt, keyFile: tls.key}\n"
        "sources:\n"
        "  - name: prometheus\n"
        "    prometheus:\n"
        '      server: {url: "',
        Val("adapter.prometheus"),
        '"}\n      rulesFile: rules.yaml\n',
    )
    whole = Val("adapter.configuration")
    data = {"adapter.yaml": If(whole, whole, configuration), "rules.yaml": Val("adapter.rules")}
    return where_enabled(
        names.ADAPTER, namespaced_object("v1", "ConfigMap", "trimtab-adapter", names.ADAPTER, data=data)
    )


def policies() -> list[Tree]:
    """Return the NetworkPolicies of all pods. Connections that they do not name are rejected."""
    trees: list[Tree] = [
        namespaced_object(
            _NETWORKING, "NetworkPolicy", "trimtab-default", spec=_policy({}, ingress=[], egress=[])
        )
    ]
    for component in ENABLED:
        spec = _policy(
            {"matchLabels": selector(component)}, ingress=_callers(component), egress=_called(component)
        )
        trees += where_enabled(
            component,
            namespaced_object(_NETWORKING, "NetworkPolicy", f"trimtab-{component}", component, spec=spec),
        )
    return [If(Val("networkPolicy.enabled"), tree) for tree in trees]


def _policy(pods: Tree, *, ingress: Sequence[Tree], egress: Sequence[Tree]) -> Tree:
    if not ingress and not egress:
        # Only our own pods: others may share the namespace.
        pods = {"matchLabels": {"app.kubernetes.io/name": "trimtab"}}
        return {"podSelector": pods, "policyTypes": ["Ingress", "Egress"]}
    return {
        "podSelector": pods,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": list(ingress),
        "egress": list(egress),
    }


def _callers(component: str) -> list[Tree]:
    monitoring = {"namespaceSelector": _named(Val("networkPolicy.monitoringNamespace"))}
    if component == names.ADAPTER:
        return [_allow("from", [_api_server()], [_tcp(names.ADAPTER_PORT)])]
    allowed: list[Tree] = [_allow("from", [monitoring], [_tcp(HEALTH_PORT)])]
    if component == names.ADMISSION:
        allowed.append(_allow("from", [_api_server()], [_tcp(names.WEBHOOK_PORT)]))
    if component == names.DASHBOARD:
        ingress = {"namespaceSelector": _named(Val("dashboard.ingressNamespace"))}
        allowed.append(
            If(names.DASHBOARD_CERTIFICATE, _allow("from", [ingress], [_tcp(names.DASHBOARD_PORT)]))
        )
    return allowed


def _called(component: str) -> list[Tree]:
    dns = {"namespaceSelector": _named("kube-system")}
    allowed: list[Tree] = [
        _allow("to", [dns], [{"protocol": "UDP", "port": 53}, _tcp(53)]),
        _allow(
            "to",
            [_api_server()],
            [Each("networkPolicy.apiServerPorts", {"protocol": "TCP", "port": Item()})],
        ),
    ]
    if component == names.ADAPTER:
        # Where Prometheus is only its address says, so any peer on its port.
        allowed.append({"ports": [_tcp(Val("adapter.prometheusPort"))]})
    return [*allowed, Each(f"{names.VALUES[component]}.extraEgress", Item())]


def _api_server() -> Tree:
    return Each("networkPolicy.apiServerCidrs", {"ipBlock": {"cidr": Item()}})


def _allow(direction: str, peers: list[Tree], ports: list[Tree]) -> dict[str, Any]:
    return {direction: peers, "ports": ports}


def _named(namespace: Tree) -> Tree:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def _tcp(port: Tree) -> Tree:
    return {"protocol": "TCP", "port": port}
