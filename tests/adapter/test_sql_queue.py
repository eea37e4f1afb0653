"""The example `sql-queue` in a running adapter, over a real PostgreSQL: what a client gets, and what it gets when the database is gone."""

import threading

import pytest

from tests.adapter.conftest import EXTERNAL, HPA, Caller, running, write_configuration
from tests.plugin_packages import install_example
from tests.postgres import execute, postgres
from trimtab.plugins.registry import load_plugins

JOBS = f"{EXTERNAL}/namespaces/default/jobs_waiting"
QUERY = "SELECT count(*) FROM jobs WHERE queue = %(queue)s AND namespace = %(namespace)s"


@pytest.fixture
def database(monkeypatch):
    with postgres() as dsn:
        monkeypatch.setenv("SQL_QUEUE_DSN", dsn)
        execute(
            dsn,
            "CREATE TABLE jobs (queue text, namespace text)",
            "INSERT INTO jobs SELECT 'orders', 'default' FROM generate_series(1, 12)",
            "INSERT INTO jobs VALUES ('orders', 'other'), ('mails', 'default')",
        )
        yield dsn


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return load_plugins([install_example(tmp_path, "sql-queue")])


async def test_the_rows_of_a_queue_are_a_metric_and_a_lost_database_fails_this_metric_alone(
    cluster, front, tmp_path, database, plugins
):
    source = {
        "name": "jobs",
        "plugin": {
            "name": "example.com/sql-queue", "metrics": ["jobs_waiting"], "cacheFor": "",
            "parameters": {"queries": {"jobs_waiting": QUERY}},
        },
    }  # fmt: skip
    by_hand = {"name": "by-hand", "testing": {"file": "values.yaml"}}
    write_configuration(tmp_path)  # the values of the second source
    configuration = write_configuration(tmp_path, source, by_hand)
    async with running(cluster, configuration, plugins=plugins) as adapter:
        proxy = Caller(adapter, front.proxy)
        status, answer = await proxy.get(f"{JOBS}?labelSelector=queue%3Dorders", HPA)
        assert (status, [(item["value"], item["metricLabels"]) for item in answer["items"]]) == (
            200,
            [("12", {"queue": "orders"})],
        )
        execute(database, "DROP TABLE jobs")
        status, answer = await proxy.get(f"{JOBS}?labelSelector=queue%3Dorders", HPA)
        assert (status, answer["message"]) == (
            503,
            "source jobs gives no usable answer at the moment; the adapter's log says why",
        )
        status, answer = await proxy.get(f"{EXTERNAL}/namespaces/default/sqs_messages", HPA)
        assert (status, answer["items"][0]["value"]) == (200, "40")
        _, metrics = await proxy.get("/metrics", HPA)
        counted = 'plugin="example.com/sql-queue",reason="PluginRaised",version="1.0.0"} 1.0'
        assert any(counted in line for line in metrics.splitlines() if "plugin_failures" in line)
        await proxy.close()
    assert not [
        thread for thread in threading.enumerate() if thread.name == "source jobs" and not thread.daemon
    ]
