"""The lines that `trimtab up` prints about replicas: what changed, and what is held and why."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trimtab.decide.horizontal.reasons import Code
from trimtab.model.hpa.dry_run import DRY_RUN

_HOLDS: Final = frozenset(
    {
        Code.PLUGIN_FAILED,
        Code.OWNERS_UNREAD,
        Code.CACHES_STALE,
        Code.ALL_LEFT_OUT,
        Code.SCALE_NOT_WRITTEN,
    }
)
"""Reasons that keep replicas although nothing of the HPA's own spec does."""

Key = tuple[str, str, str]


class ReplicaChanges:
    """Compares the rows of `trimtab top` with those of the last call."""

    def __init__(self) -> None:
        self._replicas: dict[Key, int] = {}
        self._holds: dict[Key, tuple[int, str]] = {}

    def lines(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a line for each HPA whose replicas changed since the last call, or that is held from now on."""
        lines: list[str] = []
        for row in rows:
            if row.get("current") is not None:  # VPAs have no replicas
                lines += self._of(row)
        return lines

    def _of(self, row: Mapping[str, Any]) -> Iterable[str]:
        key, name = (row["kind"], row["namespace"], row["name"]), f"{row['namespace']}/{row['name']}"
        now = _replicas(row)
        before = self._replicas.get(key, row["current"])
        self._replicas[key] = now
        if before != now:
            yield f"{name}: {before} -> {now}"
        hold = _hold(row)
        if hold and self._holds.get(key) != (now, row["reason"]):
            yield f"{name}: held at {now}, {hold}"
        self._holds[key] = (now, row["reason"]) if hold else (now, "")


def _replicas(row: Mapping[str, Any]) -> int:
    """Return the replicas after the last decision. In a dry run the desired ones are never written."""
    is_written = row["decided"] and row["active"] == "True" and not row["mode"].startswith(DRY_RUN)
    return int(row["desired"] if is_written else row["current"])


def _hold(row: Mapping[str, Any]) -> str:
    """Return what holds the replicas, or an empty text."""
    reason = " ".join(f"{row['reason']}: {row['message']}".split())
    if row["mode"].startswith(DRY_RUN) and row["decided"] and row["desired"] != row["current"]:
        return f"{row['mode']}: {row['desired']} is wanted"
    return reason if row["reason"] in _HOLDS else ""
