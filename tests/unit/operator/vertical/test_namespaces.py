"""One list of namespaces in which no pod is changed, for all vertical loops (RV-H8)."""

import pytest

from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.registration import (
    configuration_name,
    configurations,
    mutating_webhooks,
)
from trimtab.operator.vertical.updater.controller import updater_settings


@pytest.mark.parametrize(
    ("settings", "excluded"),
    [
        pytest.param({}, {"kube-system", "trimtab"}, id="by default"),
        pytest.param({"namespace": "tools"}, {"kube-system", "tools"}, id="our own namespace"),
        pytest.param({"include_kube_system": True}, {"trimtab"}, id="kube-system opted in"),
        pytest.param({"compat": "kubernetes-1.36"}, {"trimtab"}, id="as upstream: kube-system is admitted"),
        pytest.param({"ignored_namespaces": ("a", "b")}, {"kube-system", "trimtab", "a", "b"}, id="ignored"),
        pytest.param(
            {"ignored_namespaces": ("kube-system",), "include_kube_system": True},
            {"kube-system", "trimtab"},
            id="ignored wins over included",
        ),
    ],
)
def test_updater_and_admission_leave_the_same_namespaces_alone(settings, excluded):
    made = Settings.of(**settings)
    pods = next(hook for hook in mutating_webhooks(made, b"") if hook["name"].startswith("pods."))
    (expression,) = pods["namespaceSelector"]["matchExpressions"]
    assert expression["operator"] == "NotIn"
    assert set(expression["values"]) == excluded
    assert set(updater_settings(made.updater, made.namespace_rules).ignored_namespaces) == excluded


NAME = "kubernetes.io/metadata.name"


def selects(selector, namespace):
    """Return whether a namespace is selected, as the API server sees it."""
    for term in selector.get("matchExpressions", ()):
        assert term["key"] == NAME
        is_in = namespace in term.get("values", ())
        if {"In": not is_in, "NotIn": is_in, "DoesNotExist": True}[term["operator"]]:
            return False
    return True


def selected(settings, naming="trimtab"):
    """Return, per webhook, the namespaces that it is called for."""
    made = Settings.of(namespace="own", webhook_naming=naming, **settings)
    hooks = [hook for _, configuration in configurations(made, b"") for hook in configuration["webhooks"]]
    namespaces = ("shop", "web", "other", "kube-system", "own")
    return {
        hook["name"].partition(".")[0]: {
            name for name in namespaces if selects(hook.get("namespaceSelector", {}), name)
        }
        for hook in hooks
    }


@pytest.mark.parametrize(
    ("settings", "pods", "vpas"),
    [
        pytest.param(
            {}, {"shop", "web", "other"}, {"shop", "web", "other", "kube-system", "own"}, id="by default"
        ),
        pytest.param(
            {"ignored_namespaces": ("web",)},
            {"shop", "other"},
            {"shop", "other", "kube-system", "own"},
            id="ignored",
        ),
        pytest.param({"watch_namespaces": ("shop", "web")}, {"shop", "web"}, {"shop", "web"}, id="watched"),
        pytest.param(
            {"watch_namespaces": ("shop", "web", "kube-system"), "ignored_namespaces": ("web",)},
            {"shop"},
            {"shop", "kube-system"},
            id="watched and ignored: VPAs in kube-system recommend only",
        ),
        pytest.param({"watch_namespaces": ("web",), "ignored_namespaces": ("web",)}, set(), set(), id="none"),
    ],
)
def test_n11_all_webhooks_are_called_for_the_namespaces_that_we_work_in(settings, pods, vpas):
    """Those for VPAs and scopes were called in the whole cluster, and refused VPAs of other installations."""
    found = selected(settings)
    assert found == {
        "pods": pods,
        "probe": {"own"},
        "default-vpas": vpas,
        "validate-vpas": vpas,
        "validate-scopes": vpas,
    }
    assert selected(settings, "upstream")["vpa"] == pods


def test_n11_two_installations_have_webhooks_of_their_own():
    names = {
        one["metadata"]["name"]
        for namespace in ("trimtab", "team-a")
        for _, one in configurations(Settings.of(namespace=namespace), b"")
    }
    assert names == {"trimtab-vpa", "team-a-vpa"}
    assert configuration_name("team-a", "upstream") == "vpa-webhook-config"
