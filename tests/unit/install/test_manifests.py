"""The objects of an installation hold together: names, ports, flags, rights, and the promises about security."""

import json

import pytest
from prometheus_client import CollectorRegistry

from trimtab.adapter.config import load_configuration
from trimtab.adapter.sources.prometheus.rules import load_rules
from trimtab.cli.commands.run import run as run_command
from trimtab.cli.vpa_flags import with_upstream_flags
from trimtab.cluster.leases.family import MOST_SHARDS
from trimtab.install import ValueProblem, manifests, set_values
from trimtab.install.schema import CHART
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.operator import HORIZONTAL, VERTICAL
from trimtab.operator.settings.published import SUFFIX
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.certificates import SECRET_NAME
from trimtab.operator.vertical.admission.registration import NAMINGS, configuration_name, configurations
from trimtab.operator.vertical.metrics import (
    AdmissionMetrics,
    RecommenderMetrics,
    UpdaterMetrics,
)

EVERYTHING = (
    "adapter.enabled=true",
    "adapter.caBundle=Q0E=",
    "dashboard.enabled=true",
    "dashboard.certificateSecret=trimtab-dashboard-tls",
    "settings.dashboard-hosts=autoscalers.example",
    "settings.native-hpas=true",
    "horizontal.settings.shards=6",
    "vertical.recommender.settings.shards=6",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "grafanaDashboard.enabled=true",
    "kubeStateMetrics.enabled=true",
    "tokenSecret=trimtab-token",
    "scalable=[{group: argoproj.io, resource: rollouts}]",
)

VALUES = {
    "horizontal": "trimtab-horizontal",
    "vertical.recommender": "trimtab-recommender",
    "vertical.updater": "trimtab-updater",
    "vertical.admission": "trimtab-admission",
    "adapter": "trimtab-adapter",
    "dashboard": "trimtab-dashboard",
}
"""The Deployment of each program, by where its values are."""


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


def test_what_follows_from_code_is_up_to_date():
    """Run `python -m tools.chart` if this fails."""
    from tools.chart import written

    for name, text in written().items():
        assert (CHART / name).read_text(encoding="utf-8") == text, name


def test_no_object_is_there_twice(everything):
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in everything]
    assert len(keys) == len(set(keys))


def shared_names(*installations):
    """Return what two installations both have outside of their own namespaces."""
    first, second = (
        {
            (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
            for one in installation
            if one["kind"] not in {"CustomResourceDefinition", "APIService"}
        }
        for installation in installations
    )
    return first & second


@pytest.mark.parametrize("values", [(), EVERYTHING, (*EVERYTHING, "settings.watch-namespaces=shop,search")])
def test_two_installations_share_no_object(values):
    """The second one took over the cluster roles and bindings of the first, whose programs then had no rights.

    Definitions are of the whole cluster, and the name of an APIService is that of its group: only one server can hold it.
    """
    ours, theirs = (manifests(set_values(values), name) for name in ("trimtab", "autoscaling"))
    assert shared_names(ours, theirs) == set()


def test_an_installation_in_namespace_trimtab_keeps_its_names(everything):
    """A binding's role cannot be changed, so that a new name would be a new object beside the old one."""
    programs = ("horizontal", "recommender", "updater", "admission", "adapter", "dashboard")
    wanted = {f"trimtab-{name}" for name in (*programs, "view", "edit", "kube-state-metrics")}
    wanted |= {f"trimtab-{name}-cluster" for name in programs}
    assert {one["metadata"]["name"] for one in of_kind(everything, "ClusterRole")} == wanted
    assert {one["metadata"]["name"] for one in of_kind(everything, "ClusterRoleBinding")} == wanted - {
        "trimtab-view",
        "trimtab-edit",
    }
    policies = of_kind(everything, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    leased = {f"trimtab-{name}-leases" for name in ("horizontal", "recommender", "updater", "admission")}
    assert {one["metadata"]["name"] for one in policies} == {
        "trimtab-updater-pods",
        "trimtab-admission-webhooks",
        *leased,
    }


@pytest.mark.parametrize(
    "watched", [(), ("settings.watch-namespaces=shop",)], ids=["everywhere", "in one namespace"]
)
def test_every_reference_is_to_an_object_of_the_same_installation(watched):
    objects = manifests(set_values([*EVERYTHING, *watched]), "autoscaling")
    named = {(one["kind"], one["metadata"]["name"]) for one in objects}
    for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in named
    for binding in of_kind(objects, "ValidatingAdmissionPolicyBinding"):
        assert ("ValidatingAdmissionPolicy", binding["spec"]["policyName"]) in named


def test_each_program_has_an_account_of_its_own(default):
    """They were called `updater` or `dashboard`, as accounts of other charts in the same namespace may be."""
    names = {one["metadata"]["name"] for one in of_kind(default, "ServiceAccount")}
    programs = ("horizontal", "recommender", "updater", "admission", "adapter", "dashboard")
    assert names == {f"trimtab-{program}" for program in programs}
    for deployment in of_kind(default, "Deployment"):
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] in names


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
    named, flags = dashboard_of("dashboard.certificateSecret=page", "settings.dashboard-hosts=scale.example")
    assert {"--dashboard-address=::", "--dashboard-port=8443", "--dashboard-hosts=scale.example"} <= set(
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
    assert load_rules(tmp_path / configuration.sources[0].prometheus.rules_file).refused == {}


def test_the_programs_names_are_those_of_the_code(everything):
    assert SECRET_NAME in {one["metadata"]["name"] for one in of_kind(everything, "Secret")}
    ours, upstreams = (configuration_name("trimtab", naming) for naming in NAMINGS)
    assert webhook_rights() == [(["get", "patch"], [ours])]
    assert webhook_rights("settings.compat=vpa-1.8") == [(["get", "patch"], [upstreams])]
    itself = webhook_rights("vertical.admission.registersItself=true")
    assert itself == [(["get", "create", "patch"], [ours, upstreams])]


def webhook_rights(*values):
    return [
        (rule["verbs"], rule["resourceNames"])
        for _, rule in rules(manifests(set_values(values)))
        if "mutatingwebhookconfigurations" in rule["resources"]
    ]


WEBHOOK_VALUES = [
    [],
    ["settings.compat=vpa-1.8"],
    ["settings.compat=kubernetes-1.36"],
    ["settings.compat=kubernetes-1.36,vpa-1.8", "settings.webhook-timeout-seconds=30"],
    ["settings.watch-namespaces=shop,search"],
    ["settings.watch-namespaces=shop", "settings.ignored-vpa-object-namespaces=shop"],
    ["settings.compat=vpa-1.8", "settings.include-kube-system=false"],
    ["settings.ignored-vpa-object-namespaces=batch,kube-system", "settings.include-kube-system=true"],
    ["settings.webhook-failure-policy-fail=true", "settings.webhook-timeout-seconds=3"],
]


@pytest.mark.parametrize("values", WEBHOOK_VALUES, ids=str)
def test_the_webhook_configurations_are_those_that_admission_would_register(values):
    objects = manifests(set_values(values), "autoscaling")
    installed = of_kind(objects, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    settings = settings_of(objects, "trimtab-admission")
    assert settings.admission.webhook_registration == "ca-bundle"
    for found, (_, wanted) in zip(installed, configurations(settings, b""), strict=True):
        assert (found["kind"], found["metadata"]["name"]) == (wanted["kind"], wanted["metadata"]["name"])
        assert [comparable(webhook) for webhook in found["webhooks"]] == [
            comparable(webhook) for webhook in wanted["webhooks"]
        ]


def settings_of(objects, deployment):
    """Return the settings of a program, as its own command line reads them."""
    (found,) = [one for one in of_kind(objects, "Deployment") if one["metadata"]["name"] == deployment]
    _, *args = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return Settings.of(**with_upstream_flags(run_command.make_context("run", args).params))


def comparable(webhook):
    """Return a webhook without its CA bundle, and with the values of a selector in order."""
    client = {name: value for name, value in webhook["clientConfig"].items() if name != "caBundle"}
    terms = webhook.get("namespaceSelector", {}).get("matchExpressions", [])
    terms = [{**term, "values": sorted(set(term["values"]))} for term in terms]
    return {**webhook, "clientConfig": client, "namespaceSelector": terms}


def test_a_webhook_that_registers_itself_finds_no_configuration_in_the_installation():
    objects = manifests(set_values(["vertical.admission.registersItself=true"]))
    assert not of_kind(objects, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    assert settings_of(objects, "trimtab-admission").admission.webhook_registration == "whole"


def test_in_a_dry_run_the_api_server_calls_no_webhook():
    objects = manifests(set_values(["settings.dry-run=true"]))
    assert not of_kind(objects, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def test_every_flag_of_the_operator_can_be_set_with_what_it_needs():
    """The chart had nine values for the vertical side, and no way to the other flags."""
    egress = "{to: [{namespaceSelector: {}}], ports: [{protocol: TCP, port: 9090}]}"
    for path, program in VALUES.items():
        values = set_values(
            [
                *EVERYTHING,
                f"{path}.settings.kube-api-qps=5",
                f"{path}.extraEnv=[{{name: VARIABLE, value: one}}]",
                f"{path}.extraEgress=[{egress}]",
            ]
        )
        objects = {(one["kind"], one["metadata"]["name"]): one for one in manifests(values)}
        container = objects["Deployment", program]["spec"]["template"]["spec"]["containers"][0]
        assert "--kube-api-qps=5" in container["args"]
        assert container["env"][-1] == {"name": "VARIABLE", "value": "one"}
        assert objects["NetworkPolicy", program]["spec"]["egress"][-1]["ports"][0]["port"] == 9090


def test_the_network_policy_lets_the_api_server_be_reached_by_ipv6_too(default):
    for policy in of_kind(default, "NetworkPolicy"):
        for rule in policy["spec"].get("egress", ()):
            cidrs = {peer["ipBlock"]["cidr"] for peer in rule["to"] if "ipBlock" in peer}
            assert cidrs in (set(), {"0.0.0.0/0", "::/0"})


def test_no_address_of_the_api_server_is_refused():
    """An empty list of peers means every address."""
    with pytest.raises(ValueProblem, match="would allow every address"):
        manifests(set_values(["networkPolicy.apiServerCidrs=[]"]))


def test_programs_listen_on_ipv6_and_ipv4(everything):
    for deployment in of_kind(everything, "Deployment"):
        args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert not [argument for argument in args if "0.0.0.0" in argument]


@pytest.mark.parametrize("namespace", ["kube-system", "elsewhere", ""])
def test_the_updater_may_read_the_lease_that_admission_renews(namespace):
    """With admissionCheck lease nothing was evicted: reading the Lease was forbidden."""
    values = [
        "vertical.admission.statusLease.name=ours",
        f"vertical.admission.statusLease.namespace={namespace}",
    ]
    objects = manifests(set_values([*values, "settings.admission-check=lease"]))
    namespace = namespace or "trimtab"  # the Lease was in kube-system, where it stayed behind
    roles = {
        one["metadata"]["name"]: one["rules"]
        for one in of_kind(objects, "Role")
        if one["metadata"]["namespace"] == namespace
    }
    assert roles["trimtab-updater-status"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get"],
            "resourceNames": ["ours"],
        }
    ]
    assert roles["trimtab-admission-status"][1]["resourceNames"] == ["ours"]
    args = {
        argument
        for one in of_kind(objects, "Deployment")
        for argument in one["spec"]["template"]["spec"]["containers"][0]["args"]
    }
    assert {
        "--admission-check=lease",
        "--status-lease-name=ours",
        f"--status-lease-namespace={namespace}",
        "--admission-controller-status-lease-name=ours",
        f"--admission-controller-status-lease-namespace={namespace}",
    } <= args


def scale_rules(*assignments):
    found = rules(manifests(set_values(assignments)))
    return [rule for role, rule in found if role == "trimtab-horizontal" and "*/scale" in rule["resources"]]


def test_native_hpas_may_target_every_kind_that_has_a_scale():
    """Kubernetes' own controller may, so an HPA on a Rollout goes on when Trimtab takes its place."""
    (rule,) = scale_rules("settings.native-hpas=true")
    assert rule == {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["get", "patch"]}
    assert scale_rules() == []


def test_no_right_is_a_wildcard_except_over_names_of_metrics_and_scales_of_native_hpas(everything):
    for role, rule in rules(everything):
        if rule["resources"] == ["*/scale"]:
            continue
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
        ("trimtab-horizontal", "horizontal.settings.shards"),
        ("trimtab-recommender", "vertical.recommender.settings.shards"),
    ],
)
def test_the_rights_over_leases_are_those_of_the_family_with_any_number_of_shards(default, program, value):
    """In a rollout of another number the old replicas still renew theirs."""

    def over_leases(objects):
        found = [rule for role, rule in rules(objects) if role == program and "leases" in rule["resources"]]
        return {verb: set(rule.get("resourceNames", ["*"])) for rule in found for verb in rule["verbs"]}

    shared = manifests(set_values([f"{value}=16", "replicas=3"]))
    family = {f"{program}-{kind}{number}" for kind in ("", "member-") for number in range(MOST_SHARDS)}
    expected = {"create": {"*"}, "list": {"*"}, "get": family, "update": family}
    for objects in (default, shared):
        assert over_leases(objects) == {**expected, "patch": {f"{program}-settings"}}
    deployment = next(one for one in of_kind(shared, "Deployment") if one["metadata"]["name"] == program)
    assert "--shards=16" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert deployment["spec"]["replicas"] == 3
    others = [one for one in of_kind(shared, "Deployment") if one["metadata"]["name"] != program]
    args = [arg for one in others for arg in one["spec"]["template"]["spec"]["containers"][0]["args"]]
    assert not [arg for arg in args if arg.startswith("--shards")]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", ["", "hot"])
def test_every_program_may_hold_the_lease_that_it_takes(dry_run, name):
    """The chart named the Lease, so that a dry run and a second recommender waited for the live one."""
    chosen = [
        f"settings.dry-run={str(dry_run).lower()}",
        *([f"settings.recommender-name={name}"] if name else []),
    ]
    found = manifests(set_values(chosen))
    taken = {}
    for program, loops in {
        "trimtab-horizontal": ("horizontal",),
        "trimtab-recommender": ("recommender",),
        "trimtab-updater": ("updater", "roles"),
    }.items():
        deployment = next(one for one in of_kind(found, "Deployment") if one["metadata"]["name"] == program)
        flags = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        given = {flag.partition("=")[0]: flag.partition("=")[2] for flag in flags}
        settings = Settings.of(
            components=loops,
            dry_run=given.get("--dry-run") == "true",
            recommender_name=given.get("--recommender-name", "default"),
            leader_elect_resource_name=given.get("--leader-elect-resource-name", ""),
        )
        named = {
            verb: rule["resourceNames"]
            for role, rule in rules(found)
            if role == program and "leases" in rule["resources"] and "resourceNames" in rule
            for verb in rule["verbs"]
        }
        assert f"{settings.lease_name}-0" in named["update"]
        assert named["patch"] == [settings.lease_name + SUFFIX]
        taken[program] = settings.lease_name
    end = "-dry-run" if dry_run else ""
    assert taken == {
        "trimtab-horizontal": f"trimtab-horizontal{end}",
        "trimtab-recommender": f"trimtab-recommender{'-hot' if name else ''}{end}",
        "trimtab-updater": f"trimtab-updater{end}",
    }


def test_watching_some_namespaces_gives_rights_in_those_only():
    found = manifests(set_values(["settings.watch-namespaces=shop,search"]))
    bound = {
        (one["metadata"]["namespace"], one["roleRef"]["name"])
        for one in of_kind(found, "RoleBinding")
        if one["roleRef"]["kind"] == "ClusterRole"
    }
    programs = {f"trimtab-{name}" for name in ("horizontal", "recommender", "updater", "admission")}
    assert bound == {(namespace, program) for namespace in ("shop", "search") for program in programs}
    whole = {one["roleRef"]["name"] for one in of_kind(found, "ClusterRoleBinding")}
    assert whole == {f"{program}-cluster" for program in programs - {"trimtab-horizontal"}}


@pytest.mark.parametrize(
    ("program", "values", "rights"),
    [
        ("horizontal", (), []),
        ("horizontal", ("horizontal.settings.shards=6",), [["namespaces"]]),
        ("horizontal", ("horizontal.settings.shards=6", "settings.watch-namespaces=shop"), []),
        (
            "horizontal",
            ("horizontal.settings.shards=6", "horizontal.watchNodes=true"),
            [["nodes"], ["namespaces"]],
        ),
        ("horizontal", ("vertical.recommender.settings.shards=6",), []),
        ("recommender", ("horizontal.settings.shards=6",), [["nodes"]]),
        ("recommender", ("vertical.recommender.settings.shards=6",), [["nodes"], ["namespaces"]]),
        (
            "recommender",
            ("vertical.recommender.settings.shards=6", "settings.watch-namespaces=shop"),
            [["nodes"]],
        ),
    ],
)
def test_shards_of_all_namespaces_give_the_right_to_list_namespaces(program, values, rights):
    found = [
        one
        for one in of_kind(manifests(set_values(values)), "ClusterRole")
        if one["metadata"]["name"] == f"trimtab-{program}-cluster"
    ]
    assert [rule["resources"] for one in found for rule in one["rules"]] == rights


def test_every_binding_names_a_role_and_an_account_that_exist(everything):
    roles = {(one["kind"], one["metadata"]["name"]) for one in of_kind(everything, "Role", "ClusterRole")}
    accounts = {one["metadata"]["name"] for one in of_kind(everything, "ServiceAccount")}
    accounts.add("kube-state-metrics")  # the account of another program, which reads our objects
    for binding in of_kind(everything, "RoleBinding", "ClusterRoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        if binding["metadata"]["name"] != EVERYBODY_READS:
            assert binding["subjects"][0]["name"] in accounts


EVERYBODY_READS = "trimtab-settings-view"


def test_everybody_may_read_the_leases_with_the_settings_and_nothing_else(everything):
    (binding,) = (one for one in everything if is_named(one, "RoleBinding", EVERYBODY_READS))
    (role,) = (one for one in everything if is_named(one, "Role", EVERYBODY_READS))
    assert [subject["name"] for subject in binding["subjects"]] == ["system:authenticated"]
    assert role["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}
    ]
    assert {one["metadata"]["namespace"] for one in (role, binding)} == {"trimtab"}


def is_named(one, kind, name):
    return one["kind"] == kind and one["metadata"]["name"] == name


def flags_of(objects, program):
    deployment = next(one for one in of_kind(objects, "Deployment") if one["metadata"]["name"] == program)
    given = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return {flag.partition("=")[0]: flag.partition("=")[2] for flag in given}


SIZING = ("trimtab-recommender", "trimtab-updater", "trimtab-admission")


def test_excluded_namespaces_are_the_same_to_every_program_that_sizes_pods(default):
    """They could be set only, one program at a time, and the recommender was not told our own namespace."""
    values = ["settings.include-kube-system=true", "settings.ignored-vpa-object-namespaces=batch,lab"]
    objects = manifests(set_values(values), "autoscaling")
    for program in SIZING:
        given = flags_of(objects, program)
        assert given["--namespace"] == "autoscaling"
        assert given["--ignored-vpa-object-namespaces"] == "batch,lab"
        assert given["--include-kube-system"] == "true"
        assert not {"--include-kube-system", "--ignored-vpa-object-namespaces"} & set(
            flags_of(default, program)
        )
    assert not {"--include-kube-system", "--ignored-vpa-object-namespaces"} & set(
        flags_of(objects, "trimtab-horizontal")
    )


def test_pods_of_kube_system_may_be_changed_where_it_is_watched():
    """With watch-namespaces rights are given there only, kube-system included."""
    values = ["settings.watch-namespaces=kube-system,trimtab", "settings.include-kube-system=true"]
    found = manifests(set_values([*EVERYTHING, *values]))
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found]
    assert len(keys) == len(set(keys)), "the roles that we have there anyway keep their names"
    bound = {
        one["roleRef"]["name"]
        for one in of_kind(found, "RoleBinding")
        if one["metadata"]["namespace"] == "kube-system" and one["roleRef"]["kind"] == "ClusterRole"
    }
    assert set(SIZING) <= bound


UNUSED = {
    "trimtab-dashboard": {("get", "horizontalpodautoscalers")},
    "trimtab-adapter": {("get", "configmaps")},
    "trimtab-recommender": {("list", "limitranges"), ("watch", "limitranges")},
}
"""Rights that the audit log of four installations showed nobody to use, and the code not to need."""


@pytest.mark.parametrize("program", sorted(UNUSED))
def test_rights_that_no_program_needs_are_not_given(everything, program):
    given = {
        (verb, resource)
        for role, rule in rules(everything)
        if role == program
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    assert not given & UNUSED[program]


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


def test_alerts_and_panels_ask_for_metrics_that_exist(everything):
    registry = CollectorRegistry()
    HpaControllerMetrics(registry)
    for make in (RecommenderMetrics, UpdaterMetrics, AdmissionMetrics):
        make(registry)
    known = {
        name
        for family in registry.collect()
        for name in (family.name, f"{family.name}_total", f"{family.name}_bucket")
    }
    (alerts,) = of_kind(everything, "PrometheusRule")
    (group,) = alerts["spec"]["groups"]
    board = json.loads(dashboard_of_grafana(everything))
    panels = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for expression in (*(rule["expr"] for rule in group["rules"]), *panels):
        assert any(name in expression for name in known if len(name) > 12), expression


def dashboard_of_grafana(objects):
    board = next(one for one in objects if one["metadata"]["name"] == "trimtab-grafana-dashboard")
    return board["data"]["trimtab.json"]


def test_the_grafana_dashboard_is_json(everything):
    assert json.loads(dashboard_of_grafana(everything))["title"] == "Trimtab"


@pytest.mark.parametrize(
    ("values", "evictions", "seconds"),
    [
        pytest.param((), None, None, id="by default"),
        pytest.param(("settings.compat=vpa-1.8",), None, None, id="as upstream"),
        pytest.param(
            (
                "settings.compat=vpa-1.8",
                "settings.max-evictions-per-minute=5",
                "settings.webhook-timeout-seconds=9",
            ),
            "5",
            "9",
            id="as upstream, but for what is given",
        ),
        pytest.param(("settings.max-evictions-per-minute=0",), "0", None, id="zero is given"),
    ],
)
def test_brakes_are_passed_only_where_they_are_given(values, evictions, seconds):
    """The chart's own default overrode upstream's rules."""
    objects = manifests(set_values(values))
    assert flags_of(objects, "trimtab-updater").get("--max-evictions-per-minute") == evictions
    assert flags_of(objects, "trimtab-admission").get("--webhook-timeout-seconds") == seconds


PER_PROGRAM = {
    "podLabels": {"tier": "infra"},
    "podAnnotations": {"note": "own"},
    "serviceAccount": {"annotations": {"role": "arn"}},
    "podSecurityContext": {"runAsUser": 1000},
    "securityContext": {"privileged": False},
    "nodeSelector": {"pool": "infra"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAffinity": {}},
    "topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
}


def nested(path, values):
    for name in reversed(path.split(".")):
        values = {name: values}
    return values


@pytest.mark.parametrize("path", VALUES)
def test_a_program_can_have_settings_of_its_own(path):
    """Only some could be set, and for all programs at once."""
    general = {
        "podLabels": {"tier": "all", "team": "a"},
        "podAnnotations": {"note": "all", "more": "b"},
        "nodeSelector": {"pool": "all"},
    }
    files = [general, nested(path, PER_PROGRAM)]
    objects = {
        (one["kind"], one["metadata"]["name"]): one for one in manifests(set_values(EVERYTHING, files=files))
    }
    deployments = {name: one for (kind, name), one in objects.items() if kind == "Deployment"}
    for name, deployment in deployments.items():
        template = deployment["spec"]["template"]
        spec, is_own = template["spec"], name == VALUES[path]
        (container,) = spec["containers"]
        (constraint,) = spec["topologySpreadConstraints"]
        assert template["metadata"]["labels"]["tier"] == ("infra" if is_own else "all")
        assert template["metadata"]["labels"]["team"] == "a"
        assert template["metadata"]["annotations"] == {"note": "own" if is_own else "all", "more": "b"}
        assert spec["nodeSelector"] == {"pool": "infra" if is_own else "all"}
        assert ("tolerations" in spec, "affinity" in spec) == (is_own, is_own)
        assert spec["securityContext"]["runAsUser"] == (1000 if is_own else 65532)
        assert container["securityContext"] == PER_PROGRAM["securityContext"] or not is_own
        assert constraint["topologyKey"] == ("zone" if is_own else "kubernetes.io/hostname")
        assert constraint["labelSelector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]
        annotations = objects["ServiceAccount", name]["metadata"].get("annotations")
        assert annotations == ({"role": "arn"} if is_own else None)


def test_common_labels_are_on_every_object_but_the_definitions():
    for one in manifests(set_values([*EVERYTHING, "commonLabels.team=platform"])):
        if one["kind"] != "CustomResourceDefinition":
            assert one["metadata"]["labels"]["team"] == "platform"
            assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "trimtab"


def test_a_digest_counts_more_than_a_tag():
    digest = f"sha256:{'0a' * 32}"
    for deployment in of_kind(manifests(set_values([f"image.digest={digest}"])), "Deployment"):
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"trimtab@{digest}"


@pytest.mark.parametrize(
    "values",
    [["webhook-naming=upstream"], ["compat=vpa-1.8"], ["compat=vpa-1.8", "webhook-naming=trimtab"], []],
)
def test_webhook_configurations_have_the_name_that_admission_writes_to(values):
    objects = manifests(set_values([f"settings.{value}" for value in values]))
    given = dict(value.split("=") for value in values)
    naming = Settings.of(
        **{name.replace("-", "_"): text for name, text in given.items()}
    ).admission.webhook_naming
    names = {each["metadata"]["name"] for each in objects if each["kind"].endswith("WebhookConfiguration")}
    assert names == {configuration_name("trimtab", naming)}


def test_the_recommender_called_default_has_the_rights_of_the_one_without_a_name():
    named, unnamed = (
        [each for each in manifests(set_values(values)) if each["kind"] == "Role"]
        for values in (["settings.recommender-name=default"], [])
    )
    assert named == unnamed
