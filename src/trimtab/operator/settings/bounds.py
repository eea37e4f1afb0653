"""Rejects settings that are out of range, at start."""

from datetime import timedelta
from typing import Final

from trimtab.model.feature_gates import GateError
from trimtab.model.labels.names import dns1123_label_problems
from trimtab.operator.settings.admission import reject_long_timeout
from trimtab.operator.settings.flags import reject_unknown
from trimtab.operator.settings.settings import Settings, declared

_FRACTIONS: Final = ("eviction_tolerance",)
_NOT_NEGATIVE: Final = ("min_replicas", "recommendation_margin_fraction", "status_visible_change")
_NO_NEGATIVE_TIME: Final = ("status_max_age",)
_ABOVE_ZERO: Final = ("recommender_interval", "updater_interval")
_PORTS: Final = ("port", "webhook_port", "dashboard_port")
_LAST_PORT: Final = 65_535
_NAMESPACES: Final = ("watch_namespaces", "ignored_namespaces")


def reject_invalid(settings: Settings) -> None:
    """Raise ValueError with the flag's name if no process can start with these settings."""
    reject_unknown(settings)
    reject_out_of_range(settings)
    reject_bad_namespaces(settings)
    try:
        _ = settings.gates
    except GateError as error:
        raise ValueError(f"--feature-gates: {error}") from error


def reject_out_of_range(settings: Settings) -> None:
    """Raise ValueError with the flag's name if a setting is out of range."""
    flags = {field.name: flag.name for field, flag in declared()}
    for name in _FRACTIONS:
        if not 0 <= settings.value(name) <= 1:
            raise ValueError(f"{flags[name]}={settings.value(name)}: use a share from 0 to 1")
    for name in _NOT_NEGATIVE:
        if not settings.value(name) >= 0:
            raise ValueError(f"{flags[name]}={settings.value(name)}: use 0 or more")
    for name in _PORTS:
        if not 0 <= settings.value(name) <= _LAST_PORT:
            raise ValueError(f"{flags[name]}={settings.value(name)}: use a port from 0 to {_LAST_PORT}")
    for name in _NO_NEGATIVE_TIME:
        if settings.value(name) < timedelta():
            raise ValueError(f"{flags[name]} must not be negative; 0 writes every change in every sync")
    for name in _ABOVE_ZERO:
        if settings.value(name) <= timedelta():
            raise ValueError(f"{flags[name]} must be longer than zero")
    reject_long_timeout(settings.admission)
    _reject_bad_shards(settings.leases.shards)


def _reject_bad_shards(shards: int) -> None:
    # Imported here: --help does not need the client.
    from trimtab.cluster.leases.family import MOST_SHARDS  # noqa: PLC0415

    if not 1 <= shards <= MOST_SHARDS:
        raise ValueError(f"--shards={shards}: use 1 to {MOST_SHARDS}")


def reject_bad_namespaces(settings: Settings) -> None:
    """Raise ValueError with the flag's name if a text cannot be a namespace.

    The API server answers with an empty list for such a namespace, so that nothing else would show the mistake.
    """
    flags = {field.name: flag.name for field, flag in declared()}
    for name in _NAMESPACES:
        for namespace in settings.value(name):
            if problems := dns1123_label_problems(namespace):
                raise ValueError(
                    f"{flags[name]}: {namespace!r} cannot be a namespace: {'; '.join(problems)}; "
                    "write names separated by commas"
                )
