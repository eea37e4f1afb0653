"""A password or token appears in no Lease, page, schema, log or error."""

import asyncio
import json
import logging

import pytest
from prometheus_client import CollectorRegistry

from tools.reference import pages
from trimtab import cli
from trimtab.clock import SystemClock
from trimtab.operator.settings.chart import chart_settings
from trimtab.operator.settings.published import settings_annotation
from trimtab.operator.settings.settings import Settings, declared, reject_invalid
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.history_loader import make_history

PLANTED = "pl4nt3d"
SECRETS = tuple(each for each in declared() if each.is_secret)
WAYS = (
    {each.name: PLANTED for each in SECRETS},
    {each.name: f"{PLANTED}\n€" for each in SECRETS},
    {"prometheus_username": "me", "prometheus_password": PLANTED},
)
"""As they are meant, with characters that no header can have, and without the token that precedes a password."""


def test_there_are_secrets():
    assert {each.flag for each in SECRETS} == {"--prometheus-bearer-token", "--password"}


def test_what_is_called_a_secret_is_one():
    words = ("password", "token", "secret", "key")
    called = {each.flag for each in declared() if each.name.endswith(words)}
    assert called == {each.flag for each in SECRETS}


def test_no_lease_no_repr_and_no_schema_has_them():
    settings = Settings.of(**WAYS[0])
    assert PLANTED not in json.dumps(settings_annotation(settings))
    assert PLANTED not in repr(settings)
    assert {each.key for each in SECRETS} & {each.key for each in chart_settings()} == set()


@pytest.mark.parametrize("command", ["run --help-all", "vpa-recommender --help", "vpa-updater --help"])
def test_no_help_and_no_page_has_them(command, monkeypatch, capsys):
    for each in SECRETS:
        for variable in (each.environment, *each.variables):
            monkeypatch.setenv(variable, PLANTED)
    assert cli.answer(command.split()) == 0
    assert PLANTED not in capsys.readouterr().out
    assert PLANTED not in "".join(pages().values())


@pytest.mark.parametrize(
    "mistake", ["--port=99999", "--storage=disk", "--no-such-flag", "--kubeconfig=/none"]
)
@pytest.mark.parametrize("program", ["run", "vpa-recommender"])
def test_no_error_at_the_start_has_them(program, mistake, capsys):
    flags = [f"{each.flag}={PLANTED}" for each in SECRETS]
    assert cli.answer([program, *flags, mistake]) == 2
    assert PLANTED not in "".join(capsys.readouterr())


@pytest.mark.parametrize("way", WAYS, ids=["meant", "with bad characters", "a password"])
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9",
        "http://prometheus.example",
        "nonsense",
        f"https://me:{PLANTED}@prometheus.example",
        f"https://me:a/{PLANTED}@prometheus.example",
    ],
)
def test_no_error_of_prometheus_and_no_log_has_them(way, address, caplog):
    """An address with a password was refused with the whole address."""
    caplog.set_level(logging.DEBUG)
    settings = Settings.of(storage="prometheus", prometheus_address=address, **way)
    reject_invalid(settings)

    async def ask() -> None:
        loader = make_history(SystemClock(), settings.history, RecommenderMetrics(CollectorRegistry()))
        assert loader is not None
        await loader.reader.client.instant("up")

    with pytest.raises(Exception, match=r"\w") as raised:
        asyncio.run(ask())
    assert PLANTED not in f"{raised.value!r} {raised.value.__cause__!r} {caplog.text}"
