"""The source counts what the query counts, on SQLite."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from sql_queue import count_rows

from trimtab.plugins import DeclinedError, LabelRequirement, MetricRequest
from trimtab.plugins.testing import check_metric_source

QUERIES = {"jobs_waiting": "SELECT count(*) FROM jobs WHERE queue = :queue AND namespace = :namespace"}


@pytest.fixture(autouse=True)
def jobs(tmp_path, monkeypatch):
    """Three jobs in two queues."""
    file = str(tmp_path / "jobs.db")
    monkeypatch.setenv("SQL_QUEUE_DSN", file)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE jobs (queue TEXT, namespace TEXT)")
        rows = [("orders", "shop"), ("orders", "shop"), ("mails", "shop"), ("orders", "other")]
        database.executemany("INSERT INTO jobs VALUES (?, ?)", rows)


def ask(**labels):
    """Return the value and the labels of the answer."""
    selector = tuple(
        LabelRequirement(key=key, operator="=", values=(value,)) for key, value in labels.items()
    )
    request = MetricRequest(
        namespace="shop", metric="jobs_waiting", selector=selector, parameters={"queries": QUERIES}
    )
    (answer,) = asyncio.run(count_rows(request))
    return answer.value, answer.labels


@pytest.mark.parametrize(("queue", "waiting"), [("orders", 2), ("mails", 1), ("none", 0)])
def test_it_counts_the_rows_of_a_queue_in_the_namespace_of_the_request(queue, waiting):
    assert ask(queue=queue) == (waiting, {"queue": queue})


def test_a_label_cannot_choose_another_namespace():
    assert ask(queue="orders", namespace="other")[0] == 2


def test_a_request_without_the_label_is_declined():
    with pytest.raises(DeclinedError, match="the query needs the label queue"):
        ask()


def test_it_keeps_the_protocol():
    check_metric_source(
        count_rows, ["jobs_waiting"], parameters={"queries": QUERIES}, labels={"queue": "orders"}
    )
