"""The objects of an installation hold together: names, ports, flags, rights, and the promises about security."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tools.chart import CHART
from trimtab.adapter.config import load_configuration
from trimtab.adapter.prometheus.rules import read_rules
from trimtab.cli.run import run as run_command
from trimtab.cluster.sharding import MOST_SHARDS
from trimtab.install import ValueProblem, chart_files, manifests, set_values
from trimtab.install.assembly import parts
from trimtab.install.monitoring import ALERTS, PANELS
from trimtab.operator.assembly import HORIZONTAL, VERTICAL
from trimtab.operator.horizontal.telemetry import Telemetry
from trimtab.operator.vertical.admission.keeping import SECRET_NAME
from trimtab.operator.vertical.admission.registration import NAME as WEBHOOKS
from trimtab.operator.vertical.telemetry import AdmissionMetrics, RecommenderMetrics, UpdaterMetrics

EVERYTHING = (
    "adapter.enabled=true",
    "adapter.caBundle=Q0E=",
    "dashboard.enabled=true",
    "dashboard.certificateSecret=trimtab-dashboard-tls",
    "dashboard.hosts=autoscalers.example",
    "horizontal.nativeHpas=true",
    "horizontal.shards=6",
    "vertical.recommender.shards=6",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "grafanaDashboard.enabled=true",
    "tokenSecret=trimtab-token",
    "scalable=[{group: argoproj.io, resource: rollouts}]",
)


@pytest.fixture(scope="module")
def default():
    return manifests(set_values([]))


@pytest.fixture(scope="module")
def everything():
    return manifests(set_values(EVERYTHING))


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def rules(objects):
    for role in of_kind(objects, "Role", "ClusterRole"):
        for rule in role["rules"]:
            yield role["metadata"]["name"], rule


def test_the_chart_is_up_to_date():
    """Run `python -m tools.chart` if this fails."""
    found = {str(path.relative_to(CHART)): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert found == chart_files()


def test_no_object_is_there_twice(everything):
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in everything]
    assert len(keys) == len(set(keys))


def test_each_program_has_an_account_of_its_own(default):
    names = {one["metadata"]["name"] for one in of_kind(default, "ServiceAccount")}
    assert names == {"horizontal", "recommender", "updater", "admission", "adapter", "dashboard"}


def test_every_flag_is_one_of_the_program(everything):
    known = {name for option in run_command.params for name in (*option.opts, *option.secondary_opts)}
    for deployment in of_kind(everything, "Deployment"):
        program, *flags = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        if program == "run":
            assert {flag.partition("=")[0] for flag in flags} <= known


def test_every_component_that_runs_by_default_is_one_of_the_program(default):
    components = {
        name
        for deployment in of_kind(default, "Deployment")
        for flag in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        if flag.startswith("--components=")
        for name in flag.partition("=")[2].split(",")
    }
    assert components == {HORIZONTAL, *VERTICAL}


def dashboard_of(*values):
    objects = manifests(set_values(["dashboard.enabled=true", *values]))
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    container = named["Deployment", "trimtab-dashboard"]["spec"]["template"]["spec"]["containers"][0]
    return named, container["args"]


def test_a_dashboard_without_a_certificate_stays_on_its_pods_loopback():
    named, flags = dashboard_of()
    assert "--components=dashboard" in flags
    assert not any(flag.startswith("--dashboard-address") for flag in flags)
    assert ("Service", "trimtab-dashboard") not in named
    assert named["Deployment", "trimtab-dashboard"]["spec"]["replicas"] == 1
    allowed = named["NetworkPolicy", "trimtab-dashboard"]["spec"]["ingress"]
    assert [port["port"] for rule in allowed for port in rule["ports"]] == [8080]


def test_a_dashboard_with_a_certificate_is_reached_from_the_ingress_only():
    named, flags = dashboard_of("dashboard.certificateSecret=page", "dashboard.hosts=scale.example")
    assert {"--dashboard-address=0.0.0.0", "--dashboard-port=8443", "--dashboard-hosts=scale.example"} <= set(
        flags
    )
    assert named["Service", "trimtab-dashboard"]["spec"]["ports"][0]["targetPort"] == "dashboard"
    allowed = named["NetworkPolicy", "trimtab-dashboard"]["spec"]["ingress"]
    assert [port["port"] for rule in allowed for port in rule["ports"]] == [8080, 8443]


def test_the_adapters_configuration_can_be_read(everything, tmp_path):
    data = next(
        one["data"] for one in everything if one["metadata"]["name"] == "trimtab-adapter" and "data" in one
    )
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    configuration = load_configuration(tmp_path / "adapter.yaml")
    assert configuration.sources[0].prometheus is not None
    assert read_rules(tmp_path / configuration.sources[0].prometheus.rules_file).refused == {}


def test_the_programs_names_are_those_of_the_code(everything):
    assert SECRET_NAME in {one["metadata"]["name"] for one in of_kind(everything, "Secret")}
    named = [
        rule["resourceNames"]
        for _, rule in rules(everything)
        if "mutatingwebhookconfigurations" in rule["resources"]
    ]
    assert named == [[WEBHOOKS]]


def test_no_right_is_a_wildcard_except_over_names_of_metrics(everything):
    for role, rule in rules(everything):
        assert "*" not in rule["verbs"] + rule["apiGroups"], role
        if "*" in rule["resources"]:
            assert rule["apiGroups"][0] in {"custom.metrics.k8s.io", "external.metrics.k8s.io"}, role
            assert rule["verbs"] in (["get"], ["list"]), role


def test_nobody_may_escalate_or_read_secrets(everything):
    forbidden = {"escalate", "bind", "impersonate", "approve", "sign"}
    for role, rule in rules(everything):
        assert not forbidden & set(rule["verbs"]), role
        assert not {"nodes/proxy", "serviceaccounts/token", "pods/exec"} & set(rule["resources"]), role
        if "secrets" in rule["resources"]:
            assert rule["resourceNames"] == [SECRET_NAME], role
            assert role == "trimtab-admission"


def test_a_certificate_of_another_tool_takes_the_last_right_over_secrets_away():
    found = manifests(set_values(["vertical.admission.certificateSecret=mine"]))
    assert not [rule for _, rule in rules(found) if "secrets" in rule["resources"]]
    assert not of_kind(found, "Secret")


def test_the_dashboard_only_reads(everything):
    verbs = {verb for role, rule in rules(everything) if "dashboard" in role for verb in rule["verbs"]}
    created = {
        resource
        for role, rule in rules(everything)
        if "dashboard" in role and "create" in rule["verbs"]
        for resource in rule["resources"]
    }
    assert verbs == {"get", "list", "watch", "create"}
    assert created == {"tokenreviews", "subjectaccessreviews"}


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("trimtab-horizontal", "horizontal.shards"),
        ("trimtab-recommender", "vertical.recommender.shards"),
    ],
)
def test_sharing_out_gives_rights_over_the_leases_of_the_shards_and_no_others(default, program, value):
    def over_leases(objects):
        found = [rule for role, rule in rules(objects) if role == program and "leases" in rule["resources"]]
        return {
            verb: set(rule.get("resourceNames", ["*"])) for rule in found for verb in rule["verbs"]
        }, found

    assert over_leases(default)[0] == {"create": {"*"}, "get": {program}, "update": {program}}
    shared = manifests(set_values([f"{value}=16", "replicas=3"]))
    verbs, found = over_leases(shared)
    named = {name for rule in found if "update" in rule["verbs"] for name in rule["resourceNames"]}
    kinds = [f"{program}-{kind}-{number}" for kind in ("shard", "member") for number in range(MOST_SHARDS)]
    assert named == {program, *kinds}
    assert verbs["list"] == {"*"}
    assert set(verbs) == {"create", "get", "update", "list"}
    deployment = next(one for one in of_kind(shared, "Deployment") if one["metadata"]["name"] == program)
    assert "--shards=16" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert deployment["spec"]["replicas"] == 3
    others = [one for one in of_kind(shared, "Deployment") if one["metadata"]["name"] != program]
    args = [arg for one in others for arg in one["spec"]["template"]["spec"]["containers"][0]["args"]]
    assert not [arg for arg in args if arg.startswith("--shards")]


def test_watching_some_namespaces_gives_rights_in_those_only():
    found = manifests(set_values(["watchNamespaces=shop,search"]))
    bound = {
        (one["metadata"]["namespace"], one["roleRef"]["name"])
        for one in of_kind(found, "RoleBinding")
        if one["roleRef"]["kind"] == "ClusterRole"
    }
    programs = {f"trimtab-{name}" for name in ("horizontal", "recommender", "updater", "admission")}
    assert bound == {(namespace, program) for namespace in ("shop", "search") for program in programs}
    whole = {one["roleRef"]["name"] for one in of_kind(found, "ClusterRoleBinding")}
    assert whole == {f"{program}-cluster" for program in programs - {"trimtab-horizontal"}}


def test_every_binding_names_a_role_and_an_account_that_exist(everything):
    roles = {(one["kind"], one["metadata"]["name"]) for one in of_kind(everything, "Role", "ClusterRole")}
    accounts = {one["metadata"]["name"] for one in of_kind(everything, "ServiceAccount")}
    for binding in of_kind(everything, "RoleBinding", "ClusterRoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        assert binding["subjects"][0]["name"] in accounts


def test_services_and_probes_name_ports_that_their_pods_have(everything):
    ports = {}
    for deployment in of_kind(everything, "Deployment"):
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        component = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        ports[component] = {port["name"] for port in container["ports"]}
        assert container["readinessProbe"]["httpGet"]["port"] in ports[component]
        assert {"limits", "requests"} == set(container["resources"])
    for service in of_kind(everything, "Service"):
        component = service["spec"]["selector"]["app.kubernetes.io/component"]
        assert service["spec"]["ports"][0]["targetPort"] in ports[component]


def test_an_adapter_that_cannot_be_verified_is_refused():
    with pytest.raises(ValueProblem, match=r"adapter\.caBundle"):
        manifests(set_values(["adapter.enabled=true"]))


def test_alerts_and_panels_ask_for_metrics_that_exist():
    registry = CollectorRegistry()
    Telemetry(registry)
    for make in (RecommenderMetrics, UpdaterMetrics, AdmissionMetrics):
        make(registry)
    known = {
        name
        for family in registry.collect()
        for name in (family.name, f"{family.name}_total", f"{family.name}_bucket")
    }
    for expression in (*(alert[2] for alert in ALERTS), *(panel[1] for panel in PANELS)):
        assert any(name in expression for name in known if len(name) > 12), expression


def test_the_grafana_dashboard_is_json(everything):
    board = next(one for one in everything if one["metadata"]["name"] == "trimtab-grafana-dashboard")
    assert json.loads(board["data"]["trimtab.json"])["title"] == "Trimtab"


def test_every_part_has_a_file_in_the_chart():
    assert {f"templates/{name}.yaml" for name in parts()} <= set(chart_files())
    assert Path(CHART, "Chart.yaml").exists()
