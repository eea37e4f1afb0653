"""Each program runs on the lab, and reads exactly the settings whose declaration names it."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.matrix.recording import Recorded, recorded, unnoticed
from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from trimtab import cli
from trimtab.adapter.adapter import AdapterComponent
from trimtab.adapter.files import ConfigurationError
from trimtab.cli.commands import adapter, run
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.dashboard.dashboard import Dashboard
from trimtab.dashboard.sources import operator_settings
from trimtab.model.crds import all_crds
from trimtab.operator import operator, process
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.operator import Operator, Parts
from trimtab.operator.settings import declare
from trimtab.operator.settings.chart import PROGRAMS, chart_settings, programs_that_read
from trimtab.operator.settings.declare import ADAPTER_COMMAND, COMMAND, EVERY, SIMULATE
from trimtab.operator.settings.published import combined, settings_annotation
from trimtab.operator.settings.settings import Settings, declared, read_by, reject_invalid
from trimtab.serving.certificates import make_authority
from trimtab_lab.apiserver.server import Server

COMPONENTS = EVERY.split()
SECONDS = 90.0
"""Long enough for a loop of every component."""
ADAPTER = """\
apiVersion: adapter.trimtab.dev/v1alpha1
kind: AdapterConfiguration
listen: {port: 0}
sources: [{name: by-hand, testing: {}}]
"""
KUBECONFIG = """\
{apiVersion: v1, kind: Config, current-context: lab, users: [{name: me, user: {}}],
clusters: [{name: lab, cluster: {server: "http://127.0.0.1:9"}}],
contexts: [{name: lab, context: {cluster: lab, user: me}}]}
"""


def adapter_of(parts: Parts) -> AdapterComponent:
    """Return the component, as `trimtab run` makes it."""
    config, watched = parts.settings.metrics.adapter_config, parts.settings.watch_namespaces
    return AdapterComponent(parts.clock, parts.client, config, namespaces=watched)


def reads(component: str, directory: Path, **settings: Any) -> set[str]:
    """Return the names of the settings that a component reads while it starts and works."""
    clock = VirtualClock()
    (directory / "adapter.yaml").write_text(ADAPTER)
    chosen = recorded(
        Settings.of(
            components=(component,),
            port=0,
            dashboard_port=0,
            webhook_port=0,
            adapter_config=str(directory / "adapter.yaml"),
            dashboard_address_file=str(directory / "address"),
            **settings,
        )
    )

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            await client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
            Recorded.seen.clear()
            beside: Any = {"dashboard": Dashboard, "adapter": adapter_of}
            running = asyncio.ensure_future(Operator(clock, client, chosen, beside=beside).run())
            await clock.sleep(SECONDS)
            assert not running.done(), running.exception()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    clock.run(main())
    return set(Recorded.seen)


@pytest.fixture
def ways(tmp_path: Path) -> list[dict[str, Any]]:
    """Return settings under which others are read, too."""
    made = make_authority("webhook", datetime.now(UTC), timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(made.certificate_pem)
    (tmp_path / "tls.key").write_bytes(made.key_pem)
    files = {
        "tls_cert_file": f"{tmp_path}/tls.crt",
        "tls_key_file": f"{tmp_path}/tls.key",
        "tls_ca_file": f"{tmp_path}/tls.crt",
    }
    return [
        {"dashboard_login": "token"},
        {"storage": "prometheus", "prometheus_username": "me", "prometheus_address": "http://127.0.0.1:9"},
        {"admission_check": "lease", **files},
    ]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_reads_the_settings_that_name_it(
    component: str, tmp_path: Path, ways: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # These look at all settings at once, and go by none of them.
    reject = declare.reject_bad_values
    for module in list(sys.modules.values()):
        if getattr(module, "reject_bad_values", None) is reject:
            monkeypatch.setattr(module, "reject_bad_values", unnoticed(reject))
    monkeypatch.setattr(process, "settings_annotation", unnoticed(settings_annotation))
    monkeypatch.setattr(operator_settings, "combined", unnoticed(combined))
    if component != "horizontal":  # every process checks them at its start
        monkeypatch.setattr(operator, "decision_config", unnoticed(decision_config))
    read = reads(component, tmp_path).union(*(reads(component, tmp_path, **way) for way in ways))
    assert read == {each.name for each in read_by(component)}


class Started(Exception):  # noqa: N818 - says how far a program came
    """A program has read its settings, and would serve now."""


def test_the_command_reads_the_settings_of_the_process_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: Any, **_named: Any) -> None:
        raise Started

    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setattr(operator, "Operator", never)
    monkeypatch.setattr(run, "reject_invalid", unnoticed(reject_invalid))
    settings = recorded(Settings.of(kubeconfig=str(tmp_path / "config")))
    Recorded.seen.clear()
    with pytest.raises(Started):
        run.start(settings)
    assert Recorded.seen == {each.name for each in read_by(COMMAND)}


def test_the_adapters_command_reads_the_settings_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: Any, **_named: Any) -> None:
        raise ConfigurationError("it would serve now")

    (tmp_path / "config").write_text(KUBECONFIG)
    (tmp_path / "adapter.yaml").write_text(ADAPTER)
    monkeypatch.setattr(adapter, "serve", never)
    monkeypatch.setattr(adapter, "reject_invalid", unnoticed(reject_invalid))
    monkeypatch.setattr(
        adapter, "Settings", SimpleNamespace(of=lambda **given: recorded(Settings.of(**given)))
    )
    Recorded.seen.clear()
    arguments = [f"--config={tmp_path}/adapter.yaml", f"--kubeconfig={tmp_path}/config"]
    assert cli.answer(["adapter", *arguments]) == 2
    own = {"kubeconfig", "context"}  # options of every command that asks a cluster
    assert Recorded.seen - own == {each.name for each in read_by(ADAPTER_COMMAND)}


def test_every_reader_is_a_program() -> None:
    known = {*COMPONENTS, COMMAND, ADAPTER_COMMAND, SIMULATE}
    assert {each.name for each in declared() if not each.read_by or each.read_by - known} == set()


def test_the_chart_has_every_setting_that_is_no_secret() -> None:
    chart = {each.key: programs_that_read(each) for each in chart_settings()}
    assert chart == {
        each.key: {program for program, runs in PROGRAMS.items() if runs & each.read_by}
        for each in declared()
        if not each.is_secret
    }
