"""Variables that Kubernetes sets in every pod about the Services of its namespace are not settings."""

import pytest

from trimtab.cli.commands import run as module
from trimtab.install import manifests, set_values
from trimtab.operator.settings.settings import declared


def service_links(name: str, port: int) -> dict[str, str]:
    """Return what a kubelet sets for a Service, unless the pod has `enableServiceLinks: false`."""
    prefix, address = name.upper().replace("-", "_"), "10.96.53.214"
    link = f"tcp://{address}:{port}"
    return {
        f"{prefix}_SERVICE_HOST": address,
        f"{prefix}_SERVICE_PORT": str(port),
        f"{prefix}_PORT": link,
        f"{prefix}_PORT_{port}_TCP": link,
        f"{prefix}_PORT_{port}_TCP_PROTO": "tcp",
        f"{prefix}_PORT_{port}_TCP_PORT": str(port),
        f"{prefix}_PORT_{port}_TCP_ADDR": address,
    }


def started_with(arguments, variables, monkeypatch):
    """Return the options of a start with these variables, as the program itself parses them."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return module.run.make_context("run", list(arguments)).params


INSTALLED = manifests(set_values(["dashboard.enabled=true"]))
PROGRAMS = [
    pytest.param(container["args"][1:], id=container["name"])
    for manifest in INSTALLED
    if manifest["kind"] == "Deployment"
    for container in manifest["spec"]["template"]["spec"]["containers"]
    if container["args"][0] == "run"
]


@pytest.mark.parametrize("arguments", PROGRAMS)
def test_every_program_starts_beside_the_services_of_its_installation(arguments, monkeypatch):
    """All but admission ended with "Invalid value for '--webhook-port': 'tcp://10.96.53.214:443'" in every real cluster."""
    services = [manifest for manifest in INSTALLED if manifest["kind"] == "Service"]
    assert services
    links: dict[str, str] = {}
    for service in services:
        links |= service_links(service["metadata"]["name"], service["spec"]["ports"][0]["port"])
    without = started_with(arguments, {}, monkeypatch)
    assert started_with(arguments, links, monkeypatch) == without


NUMBERS = [each.environment for each in declared() if each.type is int and each.environment.endswith("_PORT")]


@pytest.mark.parametrize("variable", NUMBERS)
def test_a_service_with_the_name_of_a_setting_sets_nothing(variable, monkeypatch):
    name = variable.removesuffix("_PORT").lower().replace("_", "-")
    links = service_links(name, 443)
    assert variable in links
    without = started_with([], {}, monkeypatch)
    assert started_with([], links, monkeypatch) == without


def test_no_pod_of_an_installation_gets_such_variables():
    pods = [
        manifest["spec"]["template"]["spec"] for manifest in INSTALLED if manifest["kind"] == "Deployment"
    ]
    assert pods
    assert all(pod["enableServiceLinks"] is False for pod in pods)
