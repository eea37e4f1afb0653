"""A metric source that answers with the number which an SQL query returns, such as the length of a queue.

The variable SQL_QUEUE_DSN names the database, `postgresql://user@host/name` or the file of an SQLite database. The
adapter's configuration has a query per metric. Namespace and labels of the request are bound to the names in the query:

    parameters: {queries: {jobs_waiting: "SELECT count(*) FROM jobs WHERE queue = %(queue)s"}}
"""

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import Any

from trimtab.plugins import DeclinedError, MetricRequest, MetricValue

SECONDS = 2


async def count_rows(seen: MetricRequest) -> list[MetricValue]:
    """Return the number that the query of the metric returns."""
    return [MetricValue(value=await asyncio.to_thread(_ask, seen), labels=seen.labels)]


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise DeclinedError(f"the query needs the label {name}; select it, as {name}=...")


def _ask(seen: MetricRequest) -> float:
    names = _Names(seen.labels, namespace=seen.namespace)  # no label replaces the namespace
    query = seen.parameters.get("queries", {}).get(seen.metric)
    if query is None:
        raise DeclinedError(f"no query for the metric {seen.metric} among the parameters")
    with closing(_connect(os.environ["SQL_QUEUE_DSN"])) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(query, names)
        return float(cursor.fetchone()[0])


def _connect(dsn: str) -> Any:
    if not dsn.startswith("postgresql:"):
        return sqlite3.connect(dsn, timeout=SECONDS)
    import psycopg  # noqa: PLC0415 - SQLite needs no driver

    return psycopg.connect(dsn, connect_timeout=SECONDS, options=f"-c statement_timeout={SECONDS}s")
